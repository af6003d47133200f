"""The ways into a cluster, each against a real TLS server, and each bad field refused by name."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from skedge.client.clientconfig import ClientConfig, load_in_cluster, load_kubeconfig, proxy_from_environment
from skedge.client.credentials import TokenFile
from skedge.client.errors import CertificateError, ConnectionRefused, KubeconfigError, Unauthorized
from skedge.client.rest import RestClient
from skedge.clock import VirtualClock

from .tlsserver import Authority, Recorder, Seen, b64, connect_proxy, recording

PLUGIN = """
import json, os, sys
runs = open({runs!r}, "a"); runs.write(os.environ["KUBERNETES_EXEC_INFO"] + "\\n"); runs.close()
n = len(open({runs!r}).readlines())
status = json.loads(open({status!r}).read().replace("RUN", str(n)))
print(json.dumps({{"kind": "ExecCredential", "apiVersion": {version!r}, "status": status}}))
"""


class Kube:
    """Builds a kubeconfig file for a server, field by field."""

    def __init__(self, directory: Path, ca: Authority, server: Recorder) -> None:
        self.directory, self.ca, self.server = directory, ca, server
        self.cluster: dict[str, Any] = {"server": server.url, "certificate-authority-data": b64(ca.pem)}
        self.user: dict[str, Any] = {}
        self.context: dict[str, Any] = {"cluster": "c", "user": "u"}

    def write(self, name: str = "kubeconfig") -> Path:
        path = self.directory / name
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "x",
                    "clusters": [{"name": "c", "cluster": self.cluster}],
                    "users": [{"name": "u", "user": self.user}],
                    "contexts": [{"name": "x", "context": self.context}],
                }
            )
        )
        return path

    def load(self, **options: Any) -> ClientConfig:
        return load_kubeconfig(self.write(), env={}, **options)

    def plugin(self, status: dict[str, Any], version: str = "v1", **fields: Any) -> None:
        version = f"client.authentication.k8s.io/{version}"
        script, self.status_file, self.runs = (self.directory / n for n in ("plugin.py", "status.json", "runs"))
        self.status_file.write_text(json.dumps(status))
        script.write_text(PLUGIN.format(runs=str(self.runs), status=str(self.status_file), version=version))
        self.user["exec"] = {"apiVersion": version, "command": sys.executable, "args": [str(script)]} | fields
        if version.endswith("v1"):
            self.user["exec"].setdefault("interactiveMode", "Never")

    def infos(self) -> list[dict[str, Any]]:
        """What the plugin was told, run by run."""
        return [json.loads(line) for line in self.runs.read_text().splitlines()]


@pytest.fixture
def accept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


async def ask(config: ClientConfig, path: str = "/api", times: int = 1) -> None:
    async with RestClient.connect(config) as client:
        for _ in range(times):
            await client.get(path)


def only(token: str) -> Any:
    """A server that knows one bearer token."""

    def answer(seen: Seen) -> tuple[int, Any]:
        if seen.header("Authorization") == f"Bearer {token}":
            return 200, {}
        return 401, {"kind": "Status", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"}

    return answer


@pytest.mark.asyncio
async def test_token(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.user = {"token": "secret"}
        await ask(kube.load())
        assert server.seen[0].header("Authorization") == "Bearer secret"
        assert server.seen[0].header("Accept-Encoding") is None


@pytest.mark.asyncio
@pytest.mark.parametrize("as_files", [False, True])
async def test_client_certificate(tmp_path: Path, ca: Authority, as_files: bool) -> None:
    """Data, or files given relative to the kubeconfig."""
    async with recording(tmp_path, ca) as server:
        kube, pair = Kube(tmp_path, ca, server), ca.issue("jane")
        if as_files:
            (tmp_path / "pki").mkdir()
            for name, data in (("ca", ca.pem), ("cert", pair.cert), ("key", pair.key)):
                (tmp_path / "pki" / name).write_bytes(data)
            kube.cluster = {"server": server.url, "certificate-authority": "pki/ca"}
            kube.user = {"client-certificate": "pki/cert", "client-key": "pki/key"}
        else:
            kube.user = {"client-certificate-data": b64(pair.cert), "client-key-data": b64(pair.key)}
        await ask(kube.load())
        assert server.seen[0].user == "jane"


@pytest.mark.asyncio
async def test_rotated_certificate_files_are_read_again(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        kube, clock = Kube(tmp_path, ca, server), VirtualClock()
        kube.user = {"client-certificate": "cert", "client-key": "key"}

        def write(name: str) -> None:
            pair = ca.issue(name)
            (tmp_path / "cert").write_bytes(pair.cert)
            (tmp_path / "key").write_bytes(pair.key)

        write("first")
        async with RestClient.connect(kube.load(), clock=clock) as client:
            await client.get("/api")
            write("second")
            await client.get("/api")
            clock.advance(61)
            await client.get("/api")
        assert [seen.user for seen in server.seen] == ["first", "first", "second"]


@pytest.mark.asyncio
async def test_path_prefix(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.cluster["server"] = f"{server.url}/k8s/clusters/c-1/"
        await ask(kube.load(), "/api/v1/pods")
        assert server.seen[0].path == "/k8s/clusters/c-1/api/v1/pods"


@pytest.mark.asyncio
async def test_insecure_skip_tls_verify(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca, "elsewhere.example") as server:
        kube = Kube(tmp_path, ca, server)
        kube.cluster = {"server": server.url, "insecure-skip-tls-verify": True}
        await ask(kube.load())
        assert len(server.seen) == 1


@pytest.mark.asyncio
async def test_untrusted_and_misnamed_certificates_are_refused(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca, "elsewhere.example") as server:
        kube = Kube(tmp_path, ca, server)
        with pytest.raises(CertificateError, match=r"cannot connect to 127.0.0.1:\d+: the server's certificate is not"):
            await ask(kube.load())
        kube.cluster["certificate-authority-data"] = b64(Authority().pem)
        kube.cluster["tls-server-name"] = "elsewhere.example"
        with pytest.raises(CertificateError, match="not accepted"):
            await ask(kube.load())
        assert not server.seen


@pytest.mark.asyncio
async def test_trust_as_go_has_it(tmp_path: Path, ca: Authority) -> None:
    """Text around the certificates of a bundle is skipped; a server certificate trusted itself needs no authority."""
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        bundle = "# Größe\n".encode() + Authority("other-ca").pem + b"text\n" + ca.pem
        kube.cluster["certificate-authority-data"] = b64(bundle)
        await ask(kube.load())
        leaf = (tmp_path / "server.pem").read_bytes()
        kube.cluster["certificate-authority-data"] = b64(leaf)
        await ask(kube.load())


@pytest.mark.asyncio
async def test_tls_server_name(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca, "kube.internal") as server:
        kube = Kube(tmp_path, ca, server)
        kube.cluster["tls-server-name"] = "kube.internal"
        await ask(kube.load())
        assert server.seen[0].server_name == "kube.internal"


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_exec_token(tmp_path: Path, ca: Authority, version: str) -> None:
    """The plugin runs once, is told its API version, and its token is used until told otherwise."""
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.plugin({"token": "t-RUN"}, version, env=[{"name": "A", "value": "1"}])
        await ask(kube.load(), times=2)
        assert [seen.header("Authorization") for seen in server.seen] == ["Bearer t-1"] * 2
        (info,) = kube.infos()
        assert info == {
            "kind": "ExecCredential",
            "apiVersion": f"client.authentication.k8s.io/{version}",
            "spec": {"interactive": False},
        }


@pytest.mark.asyncio
async def test_exec_is_run_again_when_expired(tmp_path: Path, ca: Authority) -> None:
    clock = VirtualClock(start=1_700_000_000)
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.plugin({"token": "t-RUN", "expirationTimestamp": "2023-11-14T22:14:20Z"})  # a minute after the start
        async with RestClient.connect(kube.load(clock=clock), clock=clock) as client:
            await client.get("/api")
            clock.advance(59)
            await client.get("/api")
            clock.advance(2)
            await client.get("/api")
        assert [seen.header("Authorization") for seen in server.seen] == ["Bearer t-1", "Bearer t-1", "Bearer t-2"]


@pytest.mark.asyncio
async def test_exec_is_run_again_after_401_once_for_all(tmp_path: Path, ca: Authority) -> None:
    """Ten requests start together and are refused together: one run for the first token, one for the second."""
    async with recording(tmp_path, ca) as server:
        server.answer = only("t-2")
        kube = Kube(tmp_path, ca, server)
        kube.plugin({"token": "t-RUN"})
        async with RestClient.connect(kube.load()) as client:
            await asyncio.gather(*(client.get("/api") for _ in range(10)))
        assert len(kube.infos()) == 2


@pytest.mark.asyncio
async def test_exec_that_cannot_help_leaves_the_401(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        server.answer = only("other")
        kube = Kube(tmp_path, ca, server)
        kube.plugin({"token": "same"})
        with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
            await ask(kube.load())
        assert len(server.seen) == 1


@pytest.mark.asyncio
async def test_exec_certificate(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        kube, pair = Kube(tmp_path, ca, server), ca.issue("plugin-user")
        kube.plugin({"clientCertificateData": pair.cert.decode(), "clientKeyData": pair.key.decode()})
        await ask(kube.load())
        assert server.seen[0].user == "plugin-user"


@pytest.mark.asyncio
async def test_exec_cluster_info(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "prod"}}
        kube.cluster |= {"tls-server-name": "127.0.0.1", "extensions": [extension]}
        kube.plugin({"token": "t"}, provideClusterInfo=True)
        await ask(kube.load())
        assert kube.infos()[0]["spec"]["cluster"] == {
            "server": server.url,
            "tls-server-name": "127.0.0.1",
            "certificate-authority-data": b64(ca.pem),
            "config": {"audience": "prod"},
        }


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("status", "fields", "message"),
    [
        ({}, {}, "returned neither a token nor a certificate and key"),
        ({"clientKeyData": "k"}, {}, "returned only a certificate or key, not both"),
        (
            {"token": 5},
            {},
            r"printed no ExecCredential object in JSON: Expected `str`, got `int` - at `\$.status.token`",
        ),
        (None, {}, "returned no status"),
        ({}, {"command": "/no/such/plugin", "installHint": "install\nit"}, "cannot run .*: no such file.*; install it"),
        ({}, {"args": ["-c", "raise SystemExit(3)"]}, "failed with exit code 3"),
        ({}, {"args": ["-c", "print('x')"]}, "printed no ExecCredential object"),
        ({}, {"args": ["-c", "print('{}')"]}, "returned no kind of version"),
    ],
)
async def test_exec_failures(
    tmp_path: Path, ca: Authority, status: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.plugin(status, **fields)
        with pytest.raises(KubeconfigError, match=message) as caught:
            await ask(kube.load())
        assert f'{tmp_path}/kubeconfig: users["u"].user.exec: ' in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.asyncio
async def test_several_kubeconfig_files(tmp_path: Path, ca: Authority) -> None:
    """The first file to name an entry wins, missing files are skipped, paths are relative to their own file."""
    async with recording(tmp_path, ca) as server:
        one, two = tmp_path / "one", tmp_path / "two"
        one.mkdir()
        two.mkdir()
        (two / "token").write_text("from-two\n")
        (one / "config").write_text(yaml.safe_dump({"current-context": "x", "users": [{"name": "a", "user": {}}]}))
        kube = Kube(two, ca, server)
        kube.user = {"tokenFile": "token"}
        second = kube.write()
        text = f"{one / 'config'}:{tmp_path / 'missing'}::{second}"
        await ask(load_kubeconfig(env={"KUBECONFIG": text}))
        assert server.seen[0].header("Authorization") == "Bearer from-two"


@pytest.mark.asyncio
async def test_proxy_url(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server, connect_proxy() as (proxy, targets):
        kube = Kube(tmp_path, ca, server)
        kube.cluster["proxy-url"] = proxy
        kube.user = {"token": "t"}
        await ask(kube.load())
        assert targets == [server.host]
        assert server.seen[0].header("Authorization") == "Bearer t"


@pytest.mark.asyncio
async def test_impersonation(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.user = {
            "token": "t",
            "as": "jane",
            "as-uid": "42",
            "as-groups": ["dev", "ops"],
            "as-user-extra": {"Acme.com/Project": ["a", "b"]},
        }
        await ask(kube.load())
        assert server.seen[0].all("Impersonate-") == [
            ("impersonate-user", "jane"),
            ("impersonate-uid", "42"),
            ("impersonate-group", "dev"),
            ("impersonate-group", "ops"),
            ("impersonate-extra-acme.com%2fproject", "a"),
            ("impersonate-extra-acme.com%2fproject", "b"),
        ]


def jwt(expires: float, name: str) -> str:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'exp': expires, 'name': name})}.x"


@pytest.mark.asyncio
async def test_oidc_refresh(tmp_path: Path, ca: Authority) -> None:
    """An expired ID token is renewed at the issuer, used, and written back together with the new refresh token."""
    fresh = jwt(time.time() + 3600, "fresh")
    async with recording(tmp_path, ca) as server:

        def answer(seen: Seen) -> tuple[int, Any]:
            if seen.path == "/.well-known/openid-configuration":
                return 200, {"token_endpoint": f"{server.url}/token"}
            if seen.path == "/token":
                return 200, {"id_token": fresh, "refresh_token": "r2"}
            return only(fresh)(seen)

        server.answer = answer
        kube = Kube(tmp_path, ca, server)
        provider = {
            "idp-issuer-url": server.url,
            "client-id": "kube",
            "client-secret": "s",
            "idp-certificate-authority-data": b64(ca.pem),
            "id-token": jwt(time.time() - 5, "old"),
            "refresh-token": "r1",
        }
        kube.user = {"auth-provider": {"name": "oidc", "config": provider}}
        await ask(kube.load(), times=2)
        assert [seen.path for seen in server.seen] == ["/.well-known/openid-configuration", "/token", "/api", "/api"]
        written = yaml.safe_load((tmp_path / "kubeconfig").read_text())["users"][0]["user"]["auth-provider"]["config"]
        assert written == provider | {"id-token": fresh, "refresh-token": "r2"}
        assert sorted(os.listdir(tmp_path)) == ["kubeconfig", "server.pem"]  # nothing temporary is left


@pytest.mark.asyncio
async def test_oidc_valid_token_is_used_as_it_is(tmp_path: Path, ca: Authority) -> None:
    token = jwt(time.time() + 3600, "still good")
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        config = {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "k", "id-token": token}
        kube.user = {"auth-provider": {"name": "oidc", "config": config}}
        await ask(kube.load())
        assert server.seen[0].header("Authorization") == f"Bearer {token}"
        config["id-token"] = jwt(0, "old")
        with pytest.raises(
            KubeconfigError, match=r"config.id-token: is missing or expired, and there is no refresh-token"
        ):
            await ask(kube.load())
        config["refresh-token"] = "r"
        with pytest.raises(KubeconfigError, match=r"config.idp-issuer-url: cannot renew the token: "):
            await ask(kube.load())


@pytest.mark.asyncio
async def test_token_file_is_read_again(tmp_path: Path, ca: Authority) -> None:
    """After a 401 at once, otherwise after a minute; a file that vanished keeps the last token."""
    clock, file = VirtualClock(), tmp_path / "token"
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.user = {"tokenFile": "token"}
        file.write_text("one\n")
        async with RestClient.connect(kube.load(clock=clock), clock=clock) as client:
            await client.get("/api")
            file.write_text("two")
            server.answer = only("two")
            await client.get("/api")
            file.write_text("three")
            clock.advance(61)
            server.answer = only("three")
            await client.get("/api")
            file.unlink()
            clock.advance(61)
            await client.get("/api")
    tokens = [str(seen.header("Authorization")).split()[1] for seen in server.seen]
    assert tokens == ["one", "one", "two", "three", "three"]


@pytest.mark.asyncio
async def test_in_cluster(tmp_path: Path, ca: Authority) -> None:
    (tmp_path / "token").write_text("one")
    (tmp_path / "ca.crt").write_bytes(ca.pem)
    (tmp_path / "namespace").write_text("kube-system")
    async with recording(tmp_path, ca) as server:
        port = server.host.partition(":")[2]
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
        config = load_in_cluster(env=env, directory=tmp_path)
        assert config.namespace == "kube-system"
        async with RestClient.connect(config) as client:
            await client.get("/api")
            (tmp_path / "token").write_text("two")
            server.answer = only("two")
            await client.get("/api")
        assert [seen.header("Authorization") for seen in server.seen] == ["Bearer one", "Bearer one", "Bearer two"]
    with pytest.raises(KubeconfigError, match="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"):
        load_in_cluster(env={}, directory=tmp_path)
    with pytest.raises(KubeconfigError, match="token cannot be read"):
        load_in_cluster(env=env, directory=tmp_path / "none")
    assert (
        load_in_cluster(env=env | {"KUBERNETES_SERVICE_HOST": "::1"}, directory=tmp_path).server
        == f"https://[::1]:{port}"
    )


@pytest.mark.asyncio
async def test_basic_auth(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.user = {"username": "jane", "password": "pä:ss"}
        await ask(kube.load())
        assert server.seen[0].header("Authorization") == "Basic " + b64("jane:pä:ss".encode())


@pytest.mark.asyncio
async def test_context_without_user(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.context = {"cluster": "c", "namespace": "ns"}
        config = kube.load()
        await ask(config)
        assert server.seen[0].header("Authorization") is None
        assert config.namespace == "ns"


@pytest.mark.asyncio
async def test_token_beside_exec_wins_and_says_so(tmp_path: Path, ca: Authority, logged: Callable[[], str]) -> None:
    async with recording(tmp_path, ca) as server:
        kube = Kube(tmp_path, ca, server)
        kube.plugin({"token": "t-RUN"})
        kube.user["token"] = "mine"
        await ask(kube.load())
        assert server.seen[0].header("Authorization") == "Bearer mine"
        assert f'field={tmp_path}/kubeconfig: users["u"].user.exec' in logged()


@pytest.mark.asyncio
async def test_nobody_listens(tmp_path: Path, ca: Authority) -> None:
    async with recording(tmp_path, ca) as server:
        config = Kube(tmp_path, ca, server).load()
    with pytest.raises(ConnectionRefused, match=r"^cannot connect to 127.0.0.1:\d+: connection refused$"):
        await ask(config)


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "p", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("cluster", "user", "context", "message"),
    [
        ({"server": ""}, {}, {}, 'clusters["c"].cluster.server: must be set'),
        ({"server": "ftp://x"}, {}, {}, 'clusters["c"].cluster.server: ftp://x is not a URL or host:port'),
        ({"server": 5}, {}, {}, 'clusters["c"].cluster.server: expected a string, got a number (quote it)'),
        ({"certificate-authority-data": "!"}, {}, {}, "certificate-authority-data: is not valid base64"),
        ({"certificate-authority-data": "eA=="}, {}, {}, "certificate-authority-data: holds no usable PEM certificate"),
        ({"certificate-authority": "gone"}, {}, {}, "cluster.certificate-authority: {dir}/gone: no such file"),
        ({"insecure-skip-tls-verify": "yes"}, {}, {}, "insecure-skip-tls-verify: expected true or false, got a string"),
        ({"proxy-url": "socks5://h:1"}, {}, {}, "cluster.proxy-url: scheme socks5 is not supported"),
        ({"sever": "x"}, {}, {}, 'clusters["c"].cluster.sever: this field is not supported'),
        ({}, {"tokn": "x"}, {}, 'users["u"].user.tokn: this field is not supported'),
        ({}, {"token": 12345}, {}, 'users["u"].user.token: expected a string, got a number (quote it)'),
        ({}, {"tokenFile": "gone", "username": "x"}, {}, "user.username: basic auth is set together with a token"),
        ({}, {"client-certificate-data": "eA=="}, {}, "user.client-key: must be set (or client-key-data)"),
        ({}, {"client-key-data": "eA=="}, {}, "user.client-certificate: must be set"),
        ({}, {"client-certificate-data": "eA==", "client-key-data": "eA=="}, {}, "client-certificate-data: the client"),
        ({}, {"as-groups": ["g"]}, {}, "user.as-groups: cannot be used without as"),
        ({}, {"as": "u", "as-groups": [1]}, {}, "user.as-groups[0]: expected a string, got a number"),
        ({}, {"auth-provider": {"name": "gcp"}}, {}, 'auth-provider.name: "gcp" is not supported, use an exec plugin'),
        ({}, {"auth-provider": {"name": "oidc"}}, {}, "auth-provider.config.idp-issuer-url: must be set"),
        ({}, {"exec": {"command": "x"}}, {}, "user.exec.apiVersion: must be set"),
        ({}, {"exec": EXEC | {"apiVersion": "client.authentication.k8s.io/v1alpha1"}}, {}, "v1alpha1 is not supported"),
        ({}, {"exec": EXEC | {"command": ""}}, {}, "user.exec.command: must be set"),
        ({}, {"exec": EXEC | {"interactiveMode": ""}}, {}, "exec.interactiveMode: must be set to Never"),
        (
            {},
            {"exec": EXEC | {"interactiveMode": "Always"}},
            {},
            "interactiveMode: Always: standard input is not a term",
        ),
        ({}, {"exec": EXEC | {"env": [{"value": "x"}]}}, {}, "user.exec.env[0].name: must be set"),
        ({}, {"exec": EXEC, "auth-provider": {"name": "oidc"}}, {}, "auth-provider: is set together with exec"),
        ({}, {}, {"cluster": "nope"}, 'contexts["x"].context.cluster: cluster "nope" does not exist'),
        ({}, {}, {"user": "nope"}, 'contexts["x"].context.user: user "nope" does not exist'),
        ({}, {}, {"namepace": "n"}, 'contexts["x"].context.namepace: this field is not supported'),
    ],
)
def test_refusals_name_the_field(
    tmp_path: Path,
    ca: Authority,
    cluster: dict[str, Any],
    user: dict[str, Any],
    context: dict[str, Any],
    message: str,
) -> None:
    kube = Kube(tmp_path, ca, Recorder(url="https://127.0.0.1:1"))
    if "certificate-authority" in cluster or "insecure-skip-tls-verify" in cluster:
        del kube.cluster["certificate-authority-data"]
    kube.cluster |= cluster
    kube.user |= user
    kube.context |= context
    with pytest.raises(KubeconfigError) as caught:
        kube.load()
    text = str(caught.value)
    assert text.startswith(f"{tmp_path}/kubeconfig: ")
    assert message.replace("{dir}", str(tmp_path)) in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [1\nb: 2\n", r"^kubeconfig .*/kubeconfig, line \d: "),
        ("- 1", "^kubeconfig .*/kubeconfig: expected a mapping, got a list"),
        ("token: x", "/kubeconfig: token: this field is not supported"),
        ("users: [{name: u, name: v}]", "line 1: key name is given twice"),
        (
            "current-context: x\nclusters: [{name: c, cluster: {server: a}}]\n"
            "contexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}, token: x}]",
            r"/kubeconfig: users\[0\].token: this field is not supported",
        ),
        ("kind: Pod", "kind: expected Config, got Pod"),
        ("apiVersion: v1", "clusters: no cluster is defined"),
        ("clusters: [{name: c, cluster: {}}]", "current-context: is not set"),
        ("current-context: y", 'contexts: context "y" does not exist'),
        ("clusters: {}", "clusters: expected a list, got a mapping"),
        ("\x00", "is not valid YAML"),
    ],
)
def test_broken_files(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "kubeconfig").write_text(content)
    with pytest.raises(KubeconfigError, match=message) as caught:
        load_kubeconfig(tmp_path / "kubeconfig")
    assert "\n" not in str(caught.value)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"^kubeconfig /no/such: no such file or directory$"):
        load_kubeconfig("/no/such")
    with pytest.raises(KubeconfigError, match="is a directory"):
        load_kubeconfig(tmp_path)
    with pytest.raises(KubeconfigError, match=r"^no kubeconfig found: .*/\.kube/config does not exist$"):
        load_kubeconfig(env={"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("server", "env", "proxy"),
    [
        ("https://kube.example", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://kube.example", {"https_proxy": "p:1"}, "http://p:1"),
        ("http://kube.example", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://kube.example", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other, .example"}, ""),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://11.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://p:1"),
        ("https://127.0.0.1", {"HTTPS_PROXY": "http://p:1"}, ""),
        ("https://a.b", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, ""),
    ],
)
def test_proxy_from_environment(server: str, env: dict[str, str], proxy: str) -> None:
    from urllib.parse import urlsplit

    assert proxy_from_environment(urlsplit(server), env) == proxy


@pytest.mark.asyncio
async def test_token_file_that_never_was(tmp_path: Path) -> None:
    missing = TokenFile(str(tmp_path / "none"), "users[u].user.tokenFile")
    with pytest.raises(KubeconfigError, match=r"^users\[u\].user.tokenFile: .*none: no such file"):
        await missing.refresh()
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(KubeconfigError, match="the file holds no token"):
        await TokenFile(str(tmp_path / "empty"), "x").refresh()
    fallback = TokenFile(str(tmp_path / "none"), "x", fallback="f")
    assert await fallback.refresh()
    assert fallback.authorization == "Bearer f"
