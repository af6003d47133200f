"""Verbs and subresources: what each request for a resource does, without HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from skedge.controlplane import binding, deleting, escalation, patching, reading, reviews, scaling, writing
from skedge.controlplane.access import Access, User
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import (
    MODIFIED,
    ApiError,
    bad_request,
    conflict,
    method_not_supported,
    not_found,
    success,
)
from skedge.controlplane.negotiate import read_object
from skedge.controlplane.normal import normal
from skedge.controlplane.request import ListOptions, Target, dry_run
from skedge.controlplane.store import Stored, encode
from skedge.controlplane.writing import Body

JSON = dict[str, Any]

_BOUND = encode(success(code=201))
_WRITES: dict[str, Callable[[Cluster, Target, Body], writing.Write]] = {
    "create": writing.create,
    "update": writing.update,
    "patch": patching.patch,
}
_LONG = 32 << 10  # bytes of a body or an object from which on work with it is done beside the loop
_TRIES = 5


@dataclass(slots=True)
class Answer:
    """A stored object to be written in the shape asked for, or finished bytes."""

    code: int = 200
    stored: Stored | None = None
    body: bytes = b""
    content_type: str = "application/json"


class Api:
    """Everything a path can ask for but watches."""

    def __init__(self, cluster: Cluster, access: Access) -> None:
        self._cluster = cluster
        self._access = access

    async def page(self, target: Target, options: ListOptions) -> reading.Page:
        """One page of a list."""
        if not target.resource.stored:
            raise method_not_supported(target.plural, target.group, "list")
        return await reading.read_page(self._cluster, target, options, reading.selection(target))

    def answer(self, target: Target, body: Body, user: User) -> Answer:
        """Do what the request says. Raises ApiError."""
        write = _write_of(target)
        if write is not None:
            if target.group == escalation.GROUP and self._access.is_limited(user):
                rehearsal = replace(target, query={**target.query, "dryRun": "All"}, warnings=[])
                granted = write(self._cluster, rehearsal, body)().stored.load()
                escalation.refuse_escalation(self._access, self._cluster, user, target, granted)
            return _written(write(self._cluster, target, body))
        if target.subresource is not None:
            return self._subresource(target, body, target.subresource.name)
        if not target.resource.stored:
            return self._unstored(target, body, user)
        if target.verb == "get":
            return Answer(stored=reading.get(self._cluster, target))
        outcome = deleting.delete(self._cluster, target, deleting.read_options(target, body))
        return Answer(stored=outcome) if isinstance(outcome, Stored) else Answer(body=encode(outcome))

    def is_long(self, target: Target, body: Body) -> bool:
        """Whether a request writes so much that nobody else should wait for it: see `answer_beside`."""
        if _write_of(target) is None or target.group == escalation.GROUP:
            return False
        stored = self._cluster.collection(target.resource.storage).objects.get(target.key)
        return len(body.data) > _LONG or (stored is not None and len(stored.raw) > _LONG)

    async def answer_beside(self, target: Target, body: Body, executor: Executor) -> Answer:
        """`answer` to a long write: prepared in a thread, stored by the loop. Raises ApiError."""
        write = _write_of(target)
        assert write is not None
        for _ in range(_TRIES):
            given = len(target.warnings)
            store = await asyncio.get_running_loop().run_in_executor(executor, write, self._cluster, target, body)
            try:
                return _written(store)
            except writing.Overtaken:
                del target.warnings[given:]
        raise conflict(target.plural, target.group, target.name, MODIFIED)

    async def delete_collection(self, target: Target, body: Body) -> reading.Page:
        """Delete what is selected; a list of it."""
        if target.verb not in target.resource.verbs:
            raise method_not_supported(target.plural, target.group, target.verb)
        options = deleting.read_options(target, body)
        gone = await deleting.delete_collection(self._cluster, target, options, reading.selection(target))
        return reading.Page(gone, {"resourceVersion": str(self._cluster.store.revision)})

    def _subresource(self, target: Target, body: Body, name: str) -> Answer:
        cluster = self._cluster
        if name == "binding":
            asked = binding.read_binding(body.data, body.content_type)
            binding.bind(cluster, target.namespace, target.name, asked, dry_run(target))
            return Answer(201, body=_BOUND)
        if name == "status":
            return Answer(stored=reading.get(cluster, target))
        if name == "scale":
            if target.verb == "get":
                return Answer(body=encode(scaling.get_scale(cluster, target)))
            return Answer(body=encode(scaling.set_scale(cluster, target, body)))
        if name == "eviction":
            return Answer(201, body=encode(deleting.evict(cluster, target, body)))
        if name == "finalize":
            return Answer(stored=self._finalize(target, body))
        return self._node_business(target, name)

    def _finalize(self, target: Target, body: Body) -> Stored:
        """namespaces/finalize: the namespace controller takes its finalizer away."""
        given = normal(read_object(body.data, body.content_type, "Namespace"), "v1/Namespace", "Namespace", "v1")
        stored = reading.get(self._cluster, target)
        obj = stored.load()
        version = (given.get("metadata") or {}).get("resourceVersion")
        writing.check_patched(target, {"metadata": {"resourceVersion": version}}, stored)
        finalizers = (given.get("spec") or {}).get("finalizers") or []
        obj["spec"] = {**obj.get("spec", {}), "finalizers": finalizers}
        if not finalizers:
            del obj["spec"]["finalizers"]
        collection = self._cluster.collection("namespaces")
        if not finalizers and "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers"):
            final = collection.build(obj, stored.revision)
            collection.remove(stored, obj)
            return final
        return collection.replace(stored, obj)

    def _node_business(self, target: Target, name: str) -> Answer:
        """Subresources that a kubelet answers: there is none, so there are no logs and nothing can be run."""
        pod = reading.get(self._cluster, target)
        if name == "ephemeralcontainers" and target.verb == "get":
            return Answer(stored=pod)
        if name == "ephemeralcontainers":
            raise ApiError(
                403,
                "Forbidden",
                f'pods "{target.name}" is forbidden: ephemeral containers are not supported by this server',
                {"name": target.name, "kind": "pods"},
            )
        if name == "log":
            return Answer(204, content_type="text/plain") if not pod.fields[0] else Answer(content_type="text/plain")
        if not pod.fields[0]:
            raise bad_request(f"pod {target.name} does not have a host assigned")
        raise bad_request(f"pod {target.name} runs on a fake node: nothing can be executed in it")

    def _unstored(self, target: Target, body: Body, user: User) -> Answer:
        """Resources that are only created: bindings and reviews."""
        if target.verb != "create":
            raise method_not_supported(target.plural, target.group, target.verb)
        if target.plural == "bindings":
            asked = binding.read_binding(body.data, body.content_type)
            if not asked.metadata.name:
                raise not_found("pods", "", "")
            binding.bind(self._cluster, target.namespace, "", asked, dry_run(target))
            return Answer(201, body=_BOUND)
        return Answer(201, body=encode(reviews.review(self._access, target, body, user)))


def _write_of(target: Target) -> Callable[[Cluster, Target, Body], writing.Write] | None:
    """How a request writes an object or its status; None where it does something else. Raises 405."""
    subresource, verb = target.subresource, target.verb
    if subresource is not None:
        if verb not in subresource.verbs:
            raise method_not_supported(target.plural, target.group, verb)
        return _WRITES.get(verb) if subresource.name == "status" else None
    if not target.resource.stored:
        return None
    if verb not in target.resource.verbs or (verb in _WRITES and (verb == "create") == bool(target.name)):
        raise method_not_supported(target.plural, target.group, verb)
    return _WRITES.get(verb)


def _written(store: writing.Write) -> Answer:
    outcome = store()
    return Answer(outcome.code, stored=outcome.stored)
