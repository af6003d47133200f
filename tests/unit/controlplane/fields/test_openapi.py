"""The documents, by themselves and in the eyes of kubectl."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from skedge.controlplane import fields
from skedge.controlplane.fields.openapi import definition_name

KUBECTL = str(Path(sys.executable).with_name("kubectl"))
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
RESOURCES = {
    "v1": [{"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": VERBS}],
    "apps/v1": [
        {"name": "deployments", "singularName": "deployment", "namespaced": True, "kind": "Deployment", "verbs": VERBS}
    ],
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
    },
}


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from refs(item)


@pytest.mark.parametrize("path", fields.openapi_v3_index()["paths"])
def test_v3_is_closed_and_complete(path: str) -> None:
    version = path.split("/", 1)[1]
    doc = json.loads(fields.openapi_v3(version))
    schemas = doc["components"]["schemas"]
    assert set(refs(doc)) <= {f"#/components/schemas/{name}" for name in schemas}
    for gvk, kind in fields.table().kinds.items():
        if gvk.rpartition("/")[0] == version:
            assert schemas[definition_name(kind.name)]["x-kubernetes-group-version-kind"]
    assert fields.openapi_v3(version) is fields.openapi_v3(version)


def test_v2_is_closed_and_complete() -> None:
    doc = json.loads(fields.openapi_v2())
    assert set(refs(doc)) <= {f"#/definitions/{name}" for name in doc["definitions"]}
    assert {definition_name(name) for name in fields.table().types} <= set(doc["definitions"])


def test_merge_metadata() -> None:
    schemas = json.loads(fields.openapi_v3("v1"))["components"]["schemas"]
    spec = schemas["io.k8s.api.core.v1.PodSpec"]
    assert spec["required"] == ["containers"]
    assert spec["properties"]["containers"] == {
        "type": "array",
        "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }
    assert schemas["io.k8s.api.core.v1.NodeSelector"]["x-kubernetes-map-type"] == "atomic"


def test_unknown_group() -> None:
    with pytest.raises(fields.UnknownKind):
        fields.openapi_v3("nope/v1")


class Server(ThreadingHTTPServer):
    """Discovery, OpenAPI, and one store of objects by path; `seen` has (method, path, query, body)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.objects: dict[str, dict[str, Any]] = {}


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def answer(self, body: Any, code: int = 200) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def fail(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        self.answer({**status, "code": code, "reason": reason, "message": message}, code)

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/api":
            self.answer({"kind": "APIVersions", "versions": ["v1"]})
        elif path == "/apis":
            version = {"groupVersion": "apps/v1", "version": "v1"}
            group = {"name": "apps", "versions": [version], "preferredVersion": version}
            self.answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]})
        elif path in ("/api/v1", "/apis/apps/v1"):
            version = path.split("/", 2)[2]
            self.answer({"kind": "APIResourceList", "groupVersion": version, "resources": RESOURCES[version]})
        elif path == "/openapi/v3":
            self.answer(fields.openapi_v3_index())
        elif path.startswith("/openapi/v3/"):
            self.answer(fields.openapi_v3(path.split("/", 4)[4]))
        elif path in self.server.objects:
            self.answer(self.server.objects[path])
        else:
            self.fail(404, "NotFound", "not found")

    def do_POST(self) -> None:
        self.write(lambda gvk, path, body: (f"{path}/{body['metadata']['name']}", body))

    def do_PATCH(self) -> None:
        def patch(gvk: str, path: str, body: Any) -> tuple[str, dict[str, Any]]:
            old = self.server.objects.get(path)
            if "apply-patch" in self.headers["Content-Type"]:
                return path, fields.apply(gvk, old, body, "kubectl", False, "2026-01-01T00:00:00Z")
            assert old is not None
            return path, fields.strategic_merge(gvk, old, body)

        self.write(patch)

    def write(self, change: Callable[[str, str, Any], tuple[str, dict[str, Any]]]) -> None:
        url = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        body = yaml.safe_load(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.command, url.path, query, body))
        gvk = "v1/Pod" if "/pods" in url.path else "apps/v1/Deployment"
        path, new = change(gvk, url.path, body)
        strict = fields.unknown_fields(gvk, new)
        if strict and query.get("fieldValidation") == "Strict":
            self.fail(400, "BadRequest", f"strict decoding error: {', '.join(strict)}")
            return
        if "dryRun" not in query:
            self.server.objects[path] = new
        self.answer(new, 201)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def kubectl(server: Server, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    binary = KUBECTL

    def run(*args: str, manifest: Any = None) -> subprocess.CompletedProcess[str]:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        return subprocess.run(
            [binary, f"--server={url}", *args],
            input=None if manifest is None else yaml.safe_dump(manifest),
            stdin=subprocess.DEVNULL if manifest is None else None,
            capture_output=True,
            text=True,
            timeout=50,
            env={"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "none")},
        )

    return run


Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


def test_kubectl_explains(kubectl: Kubectl) -> None:
    done = kubectl("explain", "pod.spec.containers")
    assert done.returncode == 0, done.stderr
    words = [line.split() for line in done.stdout.splitlines()]
    assert ["FIELD:", "containers", "<[]Container>"] in words
    assert ["name", "<string>", "-required-"] in words
    assert ["env", "<[]EnvVar>"] in words
    deep = kubectl("explain", "deployment.spec.template.spec.tolerations.operator")
    assert "FIELD: operator <string>" in deep.stdout, deep.stderr
    everything = kubectl("explain", "deployment", "--recursive")
    assert "topologySpreadConstraints\t<[]TopologySpreadConstraint>" in everything.stdout, everything.stderr


def test_kubectl_applies(kubectl: Kubectl, server: Server) -> None:
    """Validation by the server, then a strategic patch made with the merge keys of the document."""
    done = kubectl("apply", "-f", "-", manifest=DEPLOYMENT)
    assert done.returncode == 0, done.stderr
    changed = json.loads(json.dumps(DEPLOYMENT))
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    again = kubectl("apply", "-f", "-", manifest=changed)
    assert again.returncode == 0, again.stderr
    (_, _, created, _), (_, _, patched, body) = server.seen
    assert (created["fieldValidation"], patched["fieldValidation"]) == ("Strict", "Strict")
    assert body["spec"] == {
        "template": {
            "spec": {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "c", "image": "nginx:2"}]}
        }
    }


def test_kubectl_reports_unknown_fields(kubectl: Kubectl) -> None:
    done = kubectl("apply", "-f", "-", manifest={**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicaz": 1}})
    assert done.returncode == 1
    assert 'unknown field "spec.replicaz"' in done.stderr


def test_kubectl_dry_run_and_server_side(kubectl: Kubectl, server: Server) -> None:
    done = kubectl("apply", "--dry-run=server", "-f", "-", manifest=DEPLOYMENT)
    assert done.returncode == 0, done.stderr
    assert server.seen[0][2]["dryRun"] == "All"
    assert server.objects == {}
    done = kubectl("apply", "--server-side", "-f", "-", manifest=DEPLOYMENT)
    assert done.returncode == 0, done.stderr
    stored = server.objects["/apis/apps/v1/namespaces/default/deployments/web"]
    assert [entry["manager"] for entry in stored["metadata"]["managedFields"]] == ["kubectl"]
