"""The store: revisions, pages, history, compaction."""

from __future__ import annotations

import pytest

from skedge.controlplane.selectors import parse_fields, parse_labels
from skedge.controlplane.store import Collection, Compacted, Selection, Store, decode

ALL = Selection()


def _obj(name: str, namespace: str = "a", **labels: str) -> dict[str, object]:
    meta = {"name": name, "namespace": namespace, "uid": f"u-{name}", "labels": labels}
    return {"metadata": meta, "spec": {"nodeName": ""}, "status": {"phase": "Pending"}}


def _names(collection: Collection, selection: Selection = ALL, **options: int | str | None) -> list[str]:
    after, limit, at = str(options.get("after", "")), int(options.get("limit") or 0), options.get("at")
    found, _ = collection.page(selection, after, limit, at if isinstance(at, int) else None)
    return [stored.key for stored in found]


@pytest.fixture
def pods() -> Collection:
    collection = Store().collection("pods")
    for name, namespace in (("b", "a"), ("a", "b"), ("a", "a"), ("z", "a-b")):
        collection.create(_obj(name, namespace, app=name))
    return collection


def test_revisions_count_all_writes(pods: Collection) -> None:
    assert [s.revision for s in pods.objects.values()] == [2, 3, 4, 5]
    stored = pods.objects["a/b"]
    assert decode(stored.raw)["metadata"]["resourceVersion"] == "2"
    final = pods.remove(stored)
    assert final.revision == 6
    assert decode(final.raw)["metadata"]["resourceVersion"] == "6"


def test_pages_in_key_order(pods: Collection) -> None:
    assert _names(pods) == ["a-b/z", "a/a", "a/b", "b/a"]
    assert _names(pods, limit=2) == ["a-b/z", "a/a"]
    assert _names(pods, limit=2, after="a/a") == ["a/b", "b/a"]
    assert _names(pods, Selection("a")) == ["a/a", "a/b"]
    assert pods.page(Selection("a"), "", 1, None)[1] == 1
    assert pods.page(ALL, "", 3, None)[1] == 1


def test_names_deleted_and_made_again_appear_once(pods: Collection) -> None:
    _names(pods)
    pods.remove(pods.objects["a/a"])
    pods.create(_obj("a", "a"))
    pods.create(_obj("c", "a"))
    pods.remove(pods.objects["a/c"])
    assert _names(pods) == ["a-b/z", "a/a", "a/b", "b/a"]


def test_older_revisions_can_be_read(pods: Collection) -> None:
    at = pods.objects["b/a"].revision
    pods.replace(pods.objects["a/b"], _obj("b", "a", app="changed"))
    pods.remove(pods.objects["a/a"])
    assert _names(pods, at=at) == ["a/b", "b/a"]
    found, _ = pods.page(ALL, "", 0, 5)
    assert [s.labels.get("app") for s in found] == ["z", "a", "b", "a"]
    assert _names(pods) == ["a-b/z", "a/b", "b/a"]


def test_compaction_ends_history(pods: Collection) -> None:
    store = pods._store
    store.compact(4)
    assert [c.revision for c in pods.since(4)] == [5]
    with pytest.raises(Compacted) as e:
        pods.since(3)
    assert e.value.oldest == 5


def test_history_is_bounded() -> None:
    store = Store(history=3)
    pods = store.collection("pods")
    for i in range(6):
        pods.create(_obj(f"p{i}"))
    assert [c.revision for c in pods.since(pods.compacted)] == [5, 6, 7]


def test_selection(pods: Collection) -> None:
    stored = pods.objects["a/b"]
    pods.replace(stored, {**_obj("b", "a", app="b"), "spec": {"nodeName": "n1"}})
    by_node = Selection("", None, parse_fields("spec.nodeName=n1", "pods"))
    assert _names(pods, by_node) == ["a/b"]
    assert _names(pods, Selection("", parse_labels("app in (a)"), None)) == ["a/a", "b/a"]
    assert _names(pods, Selection("a", None, parse_fields("metadata.name=a", "pods"))) == ["a/a"]
    assert _names(pods, Selection("", None, parse_fields("metadata.name=a", "pods"))) == ["a/a", "b/a"]


def test_flush_shows_changes_once() -> None:
    store = Store()
    dirty: list[int] = []
    store.on_dirty = lambda: dirty.append(1)
    pods = store.collection("pods")
    seen: list[int] = []
    pods.listeners.append(lambda changes: seen.extend(c.revision for c in changes))
    pods.create(_obj("a"))
    pods.create(_obj("b"))
    assert (seen, dirty) == ([], [1])
    store.flush()
    store.flush()
    assert seen == [2, 3]
    pods.create(_obj("c"))
    assert dirty == [1, 1]


def test_restamping_changes_the_objects_own_version_only() -> None:
    pods = Store().collection("pods")
    stored = pods.create(_obj("a", "ns", resourceVersion="2"))
    again = decode(stored.restamped(77).raw)
    assert again["metadata"]["resourceVersion"] == "77"
    assert again["metadata"]["labels"] == {"resourceVersion": "2"}
