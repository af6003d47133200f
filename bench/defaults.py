"""What an API server fills in, for objects that never meet one (mode `decisions`)."""

from __future__ import annotations

from typing import Any, Final

from bench.objects import load_template

_PRIORITY_CLASS: Final = load_template("priority-class")


def as_stored(obj: dict[str, Any]) -> None:
    """Makes an object look as a watch would bring it: metadata, defaults, admission's tolerations.

    `@uid@` stands for twelve digits that tell objects apart.
    """
    uid = "00000000-0000-4000-8000-@uid@"
    obj["metadata"].update(uid=uid, resourceVersion="@uid@", creationTimestamp="2026-01-01T00:00:00Z")
    if obj["kind"] == "Pod":
        _pod(obj)
    elif obj["kind"] == "PersistentVolumeClaim":
        obj["status"] = {"phase": "Bound", "accessModes": obj["spec"]["accessModes"], "capacity": {"storage": "1Gi"}}
    elif obj["kind"] == "PersistentVolume":
        obj["spec"].setdefault("volumeMode", "Filesystem")
        obj["status"] = {"phase": "Bound"}


def _pod(pod: dict[str, Any]) -> None:
    spec = pod["spec"]
    named = spec.get("priorityClassName") == _PRIORITY_CLASS["metadata"]["name"]
    spec["priority"] = _PRIORITY_CLASS["value"] if named else 0
    spec.update(restartPolicy="Always", dnsPolicy="ClusterFirst", schedulerName="default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.update(securityContext={}, enableServiceLinks=True, preemptionPolicy="PreemptLowerPriority")
    for container in spec["containers"]:
        container.update(terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")
        container.setdefault("imagePullPolicy", "IfNotPresent")
        container.setdefault("resources", {})
        for port in container.get("ports", ()):
            port.setdefault("protocol", "TCP")
    spec.setdefault("tolerations", []).extend(
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for what in ("not-ready", "unreachable")
    )
    asks = any(container["resources"] for container in spec["containers"])
    pod["status"] = {"phase": "Pending", "qosClass": "Burstable" if asks else "BestEffort"}
