"""What a scheduler process asks of the API server: the rights it needs, no more and no fewer.

The roles in `deploy/` are compared with this table, and the table with what a running process asks for.
Upstream: `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`, which grants more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from skedge.api.decode import KINDS
from skedge.app.objects import WRITTEN
from skedge.app.trust import NAME, NAMESPACE
from skedge.app.watches import WATCHED
from skedge.config.types import LeaderElection


class Right(NamedTuple):
    """A verb on a resource (with its subresource). `namespace` and `name` narrow it; empty: everywhere, any."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""


def rights(election: LeaderElection, enabled: Callable[[str], bool]) -> frozenset[Right]:
    """The rights of a process with all default plugins. `enabled` knows the feature gates."""
    return frozenset(_rights(election, enabled))


def _rights(election: LeaderElection, enabled: Callable[[str], bool]) -> Iterator[Right]:
    for kind in ("Pod", "Node", *(each.kind for each in WATCHED if not each.gate or enabled(each.gate))):
        for verb in ("list", "watch"):
            yield Right(KINDS[kind].group, KINDS[kind].plural, verb)
    for kind in WRITTEN:
        yield Right(KINDS[kind].group, KINDS[kind].plural, "update")
    yield Right("", "pods", "delete")  # preemption
    yield Right("", "pods/binding", "create")
    yield Right("", "pods/status", "patch")
    for group in ("", "events.k8s.io"):  # the old ones tell of the lease, and stand in where there are no new ones
        for verb in ("create", "patch"):
            yield Right(group, "events", verb)
    yield Right("authentication.k8s.io", "tokenreviews", "create")
    yield Right("authorization.k8s.io", "subjectaccessreviews", "create")
    for verb in ("get", "list", "watch"):
        yield Right("", "configmaps", verb, NAMESPACE, NAME)
    if election.leader_elect:
        namespace, name = election.resource_namespace, election.resource_name
        yield Right("coordination.k8s.io", "leases", "create", namespace)
        yield Right("coordination.k8s.io", "leases", "get", namespace, name)
        yield Right("coordination.k8s.io", "leases", "update", namespace, name)
        if enabled("CoordinatedLeaderElection"):
            for verb in ("create", "get", "list", "update", "watch"):
                yield Right("coordination.k8s.io", "leasecandidates", verb, "kube-system")
