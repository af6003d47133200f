"""DynamicResources: nothing for pods without claims; pods with claims are held back, and it is said why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from skedge.api.core import Pod
from skedge.api.resource import ResourceClaim
from skedge.framework.events import QueueingHint
from skedge.framework.handle import Listers
from skedge.framework.state import CycleState
from skedge.framework.status import Code, PluginError
from skedge.plugins.dynamic_resources import DynamicResources
from skedge.snapshot.nodes import NodeTable
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import Rows


def pod(claims: list[dict[str, Any]] | None = None, statuses: list[dict[str, Any]] | None = None) -> PodInfo:
    value = {
        "metadata": {"name": "p", "namespace": "d", "uid": "p-uid"},
        "spec": {"resourceClaims": claims or []},
        "status": {"resourceClaimStatuses": statuses or []},
    }
    return PodInfo(msgspec.convert(value, Pod))


def claim(name: str, owner: str = "", **meta: Any) -> ResourceClaim:
    owners = [{"kind": "Pod", "uid": owner, "controller": True}] if owner else []
    value = {"metadata": {"name": name, "namespace": "d", "uid": name, "ownerReferences": owners, **meta}}
    return msgspec.convert(value, ResourceClaim)


def plugin(*claims: ResourceClaim) -> DynamicResources:
    listers = Listers()
    for each in claims:
        listers.resource_claims.set(each)
    return DynamicResources(None, SimpleNamespace(listers=listers))


def test_a_pod_without_claims_passes() -> None:
    state, view = CycleState(), Rows(NodeTable())
    found = plugin()
    assert found.pre_enqueue(pod()).ok
    assert found.pre_filter(state, pod(), view)[1].skip
    assert found.name in state.skip_score
    status = found.post_filter(state, pod(), None)[1]
    assert (status.code, status.message) == (Code.UNSCHEDULABLE, "no new claims to deallocate")


def test_without_state() -> None:
    status = plugin().post_filter(CycleState(), pod(), None)[1]
    assert (status.code, status.message) == (Code.ERROR, "not found")
    with pytest.raises(PluginError, match="not found"):
        plugin().filter(CycleState(), pod(), Rows(NodeTable()))


NAMED = [{"name": "c", "resourceClaimName": "named"}]
MADE = [{"name": "c", "resourceClaimTemplateName": "t"}]
STATUS = [{"name": "c", "resourceClaimName": "made"}]


@pytest.mark.parametrize(
    ("asking", "claims", "text"),
    [
        (pod(NAMED), [claim("named")], ""),
        (pod(NAMED), [], 'could not find ResourceClaim "d/named"'),
        (pod(NAMED), [claim("named", deletionTimestamp="x")], 'resourceclaim "named" is being deleted'),
        (pod(MADE), [], 'pod "d/p": ResourceClaim not created yet'),
        (pod(MADE, [{"name": "c"}]), [], ""),
        (pod(MADE, STATUS), [claim("made", "p-uid")], ""),
        (
            pod(MADE, STATUS),
            [claim("made", "other")],
            "ResourceClaim d/made was not created for Pod d/p (Pod is not owner)",
        ),
    ],
)
def test_resolving_claims(asking: PodInfo, claims: list[ResourceClaim], text: str) -> None:
    status = plugin(*claims).pre_enqueue(asking)
    assert status.message == text
    assert status.ok == (not text)


def test_a_pod_with_claims_is_held_back() -> None:
    state = CycleState()
    found = plugin(claim("named"))
    status = found.pre_filter(state, pod(NAMED), Rows(NodeTable()))[1]
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert not found.sign(pod(NAMED))[1].ok


def test_hints() -> None:
    found = plugin(claim("made", "p-uid"))
    waiting = pod(MADE)
    assert found.after_claim_change(waiting, None, claim("made")) is QueueingHint.QUEUE_SKIP
    assert found.after_claim_change(pod(MADE, STATUS), None, claim("made")) is QueueingHint.QUEUE
    assert found.after_claim_change(pod(MADE, STATUS), None, claim("other")) is QueueingHint.QUEUE_SKIP
    assert found.after_pod_change(waiting, waiting, pod(MADE, STATUS)) is QueueingHint.QUEUE
    assert found.after_pod_change(waiting, waiting, waiting) is QueueingHint.QUEUE_SKIP
