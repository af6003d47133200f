"""What an API server fills in, for pods and nodes that never meet one (mode `decisions`)."""

from __future__ import annotations

import copy
from typing import Any


def as_stored(obj: dict[str, Any], uid: int) -> dict[str, Any]:
    """The object as a watch would bring it: metadata, defaults, admission's tolerations."""
    obj = copy.deepcopy(obj)
    obj["metadata"].update(
        uid=f"00000000-0000-4000-8000-{uid:012d}", resourceVersion=str(uid), creationTimestamp="2026-01-01T00:00:00Z"
    )
    if obj["kind"] == "Pod":
        spec = obj["spec"]
        spec.setdefault("schedulerName", "default-scheduler")
        spec.setdefault("priority", 0)
        spec.update(restartPolicy="Always", dnsPolicy="ClusterFirst", terminationGracePeriodSeconds=30)
        spec.update(securityContext={}, enableServiceLinks=True, preemptionPolicy="PreemptLowerPriority")
        for container in spec["containers"]:
            container.update(terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
            container.setdefault("imagePullPolicy", "IfNotPresent")
            for port in container.get("ports", ()):
                port.setdefault("protocol", "TCP")
        spec.setdefault("tolerations", []).extend(
            {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        )
        obj["status"] = {"phase": "Pending", "qosClass": "Burstable", **obj.get("status", {})}
    return obj
