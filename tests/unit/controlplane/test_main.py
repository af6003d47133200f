"""The server as a process: ready line, certificates that kubectl takes, errors in one line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from skedge.controlplane.__main__ import main, read_tokens
from skedge.controlplane.access import User

KUBECTL = str(Path(sys.executable).with_name("kubectl"))


async def _output(*command: str, **environment: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **environment},
    )
    output, _ = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode or 0, output.decode()


@pytest.mark.asyncio
async def test_kubectl_with_client_certificate_and_token(tmp_path: Path) -> None:
    tokens, certs = tmp_path / "tokens.csv", tmp_path / "tls"
    tokens.write_text('t0k,jane,u1,"readers,writers"\n')
    arguments = ("-m", "skedge.controlplane", "--tls-dir", str(certs), "--token-file", str(tokens))
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().split()[1]
        for user, word in (
            (
                {"client-certificate": str(certs / "admin.crt"), "client-key": str(certs / "admin.key")},
                "system:masters",
            ),
            ({"token": "t0k"}, "[readers writers system:authenticated]"),
        ):
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": str(certs / "ca.crt")}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "users": [{"name": "u", "user": user}],
                "current-context": "x",
            }
            file = tmp_path / "config"
            file.write_text(json.dumps(config))
            code, output = await _output(KUBECTL, "auth", "whoami", KUBECONFIG=str(file), HOME=str(tmp_path))
            assert code == 0, output
            assert word in output
        code, output = await _output(KUBECTL, "get", "nodes", KUBECONFIG=str(file), HOME=str(tmp_path))
        assert (code, 'User "jane" cannot list resource "nodes"' in output) == (1, True)
    finally:
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 10) == 0


def test_tokens(tmp_path: Path) -> None:
    file = tmp_path / "t"
    file.write_text('a,u,1\n\nb,v,2,"g1, g2"\n')
    assert read_tokens(file) == {"a": User("u", (), "1"), "b": User("v", ("g1", "g2"), "2")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--token-file", "{dir}/missing"], "missing"),
        (["--token-file", "{dir}/bad"], "bad, line 1: expected token,user,uid"),
        (["--port", "{port}"], "cannot serve on 127.0.0.1:"),
        (["--host", "256.1.1.1"], "cannot serve on 256.1.1.1:0"),
        (["--data-dir", "{dir}/bad"], "cannot serve on"),
    ],
)
def test_errors_take_one_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").write_text("only\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code = main([a.format(dir=tmp_path, port=port) for a in arguments])
    error = capsys.readouterr().err
    assert code == 1
    assert words in error
    assert error.count("\n") == 1
