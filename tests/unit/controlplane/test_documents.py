"""OpenAPI over HTTP: media types, hashes and what clients may keep."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from plane import running
from skedge.controlplane import fields

pytestmark = pytest.mark.asyncio

KUBECTL = str(Path(sys.executable).with_name("kubectl"))
OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
NEW = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


@pytest.mark.parametrize("accept", [OLD, NEW, f"{NEW}, application/json;q=0.5"])
async def test_v2_in_protobuf(accept: str) -> None:
    async with running() as c, c.session.get("/openapi/v2", headers={"Accept": accept}) as answer:
        assert (answer.status, answer.headers["Content-Type"], answer.headers["Vary"]) == (200, NEW, "Accept")
        assert await answer.read() == fields.openapi_v2_protobuf()


async def test_v2_in_json_or_not_at_all() -> None:
    async with running() as c:
        for accept in ("*/*", "application/json, */*", "application/*"):
            async with c.session.get("/openapi/v2", headers={"Accept": accept}) as answer:
                assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
                assert await answer.read() == fields.openapi_v2()
        etag = {"If-None-Match": answer.headers["ETag"], "Accept": NEW}
        async with c.session.get("/openapi/v2", headers=etag) as answer:
            assert answer.status == 200, "the bytes of another media type are not those the client has"
        etag = {"If-None-Match": answer.headers["ETag"], "Accept": NEW}
        async with c.session.get("/openapi/v2", headers=etag) as answer:
            assert answer.status == 304
        async with c.session.get("/openapi/v2", headers={"Accept": "text/html"}) as answer:
            assert answer.status == 406
        async with c.session.get("/openapi/v3/api/v1", headers={"Accept": "text/html"}) as answer:
            assert answer.status == 406


async def test_v3_under_its_hash_is_kept_for_ever() -> None:
    async with running() as c:
        async with c.session.get("/openapi/v3") as answer:
            assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
            index = await answer.json(content_type=None)
        url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
        async with c.session.get(url) as answer:
            assert answer.headers["Cache-Control"] == "public, immutable"
            assert answer.headers["ETag"].strip('"') == url.partition("?hash=")[2]
            assert await answer.read() == fields.openapi_v3("apps/v1")
        async with c.session.get("/openapi/v3/apis/apps/v1") as answer:
            assert answer.headers["Cache-Control"] == "no-cache, private"
        async with c.session.get("/openapi/v3/apis/apps/v1?hash=OLD", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (301, url)
        async with c.session.get("/openapi/v3/apis/nope/v1") as answer:
            assert answer.status == 404


async def test_kubectl_reads_the_protobuf(tmp_path: Path) -> None:
    async with running() as c:
        command = [KUBECTL, f"--server={c.plane.url}", "explain", "pod.spec", "--output=plaintext-openapiv2"]
        environment = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")}
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, err = await process.communicate()
    assert process.returncode == 0, err
    words = [line.split() for line in out.decode().splitlines()]
    assert ["containers", "<[]Object>", "-required-"] in words
