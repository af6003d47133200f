"""`skedge explain`: arguments, files, a cluster, errors in one line."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plane import MERGE, node, pod, running
from skedge.cli.explain import ExplainError, fetch, pod_name
from skedge.cli.main import main
from skedge.client.errors import Forbidden, NotFound, Status
from skedge.config.gates import FeatureGates
from skedge.simulate.objects import Objects

DUMP: dict[str, Any] = {
    "kind": "List",
    "items": [
        {
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 9}},
        },
        {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"requests": {"cpu": "9"}}}]}},
        {"kind": "Pod", "metadata": {"name": "q", "namespace": "x"}, "spec": {}},
    ],
}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(DUMP))
    return str(path)


@pytest.mark.parametrize(
    ("words", "namespace", "expected"),
    [
        (["pod", "x/p"], "", ("x", "p")),
        (["x/p"], "", ("x", "p")),
        (["pod/p"], "", ("", "p")),
        (["po", "p"], "", ("", "p")),
        (["p"], "x", ("x", "p")),
        (["x/p"], "x", ("x", "p")),
        (["pods", "pod/p"], "", ("pod", "p")),
    ],
)
def test_names_of_pods(words: list[str], namespace: str, expected: tuple[str, str]) -> None:
    assert pod_name(words, namespace) == expected


@pytest.mark.parametrize(
    ("words", "namespace", "message"),
    [
        (["a", "b"], "", "expected one pod, as in `skedge explain pod NAMESPACE/NAME`, got 'a b'"),
        (["a/b/c"], "", "'a/b/c' is no pod: expected NAMESPACE/NAME"),
        (["/b"], "", "'/b' is no pod: expected NAMESPACE/NAME"),
        (["a/b"], "c", "--namespace c contradicts 'a/b'"),
    ],
)
def test_names_that_are_none(words: list[str], namespace: str, message: str) -> None:
    with pytest.raises(ExplainError) as raised:
        pod_name(words, namespace)
    assert str(raised.value) == message


def test_offline_as_text(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "pod", "default/p", "-f", dump]) == 0
    out = capsys.readouterr()
    assert out.out.startswith(
        "Pod default/p: Unschedulable (scheduler default-scheduler)\n  0/1 nodes are available: 1 "
    )
    assert "ask for cpu 4 instead of 9: 1 node fits (n)" in out.out
    assert out.err == ""


def test_offline_as_json(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "q", "-n", "x", "-f", dump, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "pod": "x/q",
        "scheduler": "default-scheduler",
        "verdict": "Schedulable",
        "nodes": 1,
        "fits": 1,
        "feasible": [{"node": "n"}],
        "best": ["n"],
    }


def test_stdin_and_several_files(
    dump: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "kind: Pod\nmetadata: {name: r}\n---\nkind: Node\nmetadata: {name: m}\nspec: {unschedulable: true}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["explain", "r", "-f", dump, "-f", "-", "--no-hints"]) == 0
    assert "1  node(s) were unschedulable  NodeUnschedulable" in capsys.readouterr().out


def test_the_configuration_counts(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: mine}]\n"
    )
    assert main(["explain", "p", "-f", dump, "--config", str(config)]) == 0
    assert "Ignored" in capsys.readouterr().out
    policy = tmp_path / "policy.yaml"
    policy.write_text("kind: Policy\napiVersion: v1\npredicates: []\npriorities: []\n")
    assert main(["explain", "p", "-f", dump, "--policy-config-file", str(policy)]) == 0
    assert "Schedulable" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody", "-f", "{dump}"], 'pods "nobody" not found in namespace "default"'),
        (["p", "-f", "{tmp}/absent"], "{tmp}/absent: No such file or directory"),
        (["p", "-f", "{tmp}"], "{tmp}: Is a directory"),
        (["p", "-f", "{tmp}/broken.yaml"], "{tmp}/broken.yaml: line 2: mapping values are not allowed"),
        (["p", "-f", "{tmp}/odd.yaml"], "{tmp}/odd.yaml: expected an object, got str"),
        (["p", "-f", "{tmp}/binary"], "{tmp}/binary: "),
        (["p", "--kubeconfig", "{tmp}/absent"], "kubeconfig {tmp}/absent: no such file or directory"),
        (["p", "--kubeconfig", "{tmp}/odd.yaml"], "{tmp}/odd.yaml: expected a mapping, got a string"),
        (["p", "-f", "{dump}", "--config", "{tmp}/absent"], "open {tmp}/absent: no such file or directory"),
        (["p", "-f", "{dump}", "--config", "{tmp}/odd.yaml"], "couldn't get version/kind; json parse error"),
        (["p", "-f", "{dump}", "--feature-gates", "Nonsense=true"], "unrecognized feature gate: Nonsense"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], message: str, dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.yaml").write_text("a: 1\n b: 2\n")
    (tmp_path / "odd.yaml").write_text("text\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    filled = [word.replace("{dump}", dump).replace("{tmp}", str(tmp_path)) for word in arguments]
    assert main(["explain", *filled]) == 1
    out = capsys.readouterr()
    assert out.out == ""
    wanted = message.replace("{tmp}", str(tmp_path))
    assert out.err.startswith("Error: ")
    assert wanted in out.err
    assert out.err.count("\n") == 1


# --- a cluster --------------------------------------------------------------------------------------------------------


class Server:
    """The embedded API server on a loop of its own."""

    def __init__(self) -> None:
        self.url = ""
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        async with running() as client:
            await client.ok("POST", "/api/v1/nodes", node("n"))
            await client.ok("PATCH", "/api/v1/nodes/n", {"spec": {"taints": None}}, MERGE)
            await client.ok("POST", "/api/v1/namespaces/default/pods", pod("big", containers=[_container("9")]))
            await client.ok("POST", "/api/v1/namespaces/default/pods", pod("small", containers=[_container("1")]))
            await client.bind("small", "n")
            self.url = client.plane.url
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> Server:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def _container(cpu: str) -> dict[str, Any]:
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    with Server() as server:
        path = tmp_path / "kubeconfig"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                    "clusters": [{"name": "c", "cluster": {"server": server.url}}],
                }
            )
        )
        yield str(path)


def test_a_live_cluster(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "pod", "default/big", "--kubeconfig", kubeconfig, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["nodes"]) == ("Unschedulable", 1)
    assert found["hints"][0]["text"] == "ask for cpu 3 instead of 9"
    assert main(["explain", "small", "--kubeconfig", kubeconfig]) == 0
    assert "It is on node n" in capsys.readouterr().out
    assert main(["explain", "nobody", "--kubeconfig", kubeconfig]) == 1
    assert capsys.readouterr().err == 'Error: pods "nobody" not found\n'


def test_nobody_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kubeconfig"
    clusters = [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]
    contexts = [{"name": "c", "context": {"cluster": "c"}}]
    path.write_text(json.dumps({"current-context": "c", "clusters": clusters, "contexts": contexts}))
    assert main(["explain", "p", "--kubeconfig", str(path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


class Answers:
    """A client of canned lists: names of kinds that are missing or forbidden."""

    def __init__(self, missing: tuple[str, ...] = (), forbidden: tuple[str, ...] = ()) -> None:
        self._missing = missing
        self._forbidden = forbidden
        self.lists: list[tuple[str, str]] = []

    async def get(self, path: str) -> dict[str, Any]:
        return {"metadata": {"name": path.rsplit("/", 1)[1], "namespace": "default"}, "spec": {}}

    async def list(self, path: str, *, field_selector: str = "") -> dict[str, Any]:
        self.lists.append((path, field_selector))
        plural = path.rsplit("/", 1)[1]

        if plural in self._missing:
            raise NotFound(Status(code=404, message="the server could not find the requested resource"))
        if plural in self._forbidden:
            raise Forbidden(Status(code=403, message=f'{plural} is forbidden: User "u" cannot list resource'))
        return {"items": []}


def fetched(client: Answers) -> Objects:
    objects = Objects()
    asyncio.run(fetch(objects, client, FeatureGates(), "default", "p"))  # type: ignore[arg-type]
    return objects


def test_each_kind_is_listed_once_and_finished_pods_are_left_out() -> None:
    client = Answers(missing=("deviceclasses",))
    assert fetched(client).pod("default/p") is not None
    paths = [path for path, _ in client.lists]
    assert len(paths) == len(set(paths))
    assert ("/api/v1/pods", "status.phase!=Succeeded,status.phase!=Failed") in client.lists
    assert {"/api/v1/nodes", "/apis/storage.k8s.io/v1/csinodes", "/apis/resource.k8s.io/v1/resourceclaims"} <= {*paths}


@pytest.mark.parametrize("plural", ["pods", "storageclasses"])
def test_what_may_not_be_read_is_an_error(plural: str) -> None:
    with pytest.raises(Forbidden, match=f"{plural} is forbidden"):
        fetched(Answers(forbidden=(plural,)))


def test_a_server_without_nodes_is_none() -> None:
    with pytest.raises(NotFound):
        fetched(Answers(missing=("nodes",)))
