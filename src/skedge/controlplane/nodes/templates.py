"""What the placeholders of a stage's status template stand for.

A placeholder that is a whole value is replaced by a value of any kind (a list of conditions), one inside a longer text
by text. Upstream: `pkg/kubelet/{kubelet_pods,kubelet_node_status}.go`, `pkg/kubelet/nodestatus/setters.go`.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable
from typing import Any

from skedge.controlplane.controllers.objects import Container, Node, Pod

JSON = dict[str, Any]

_WHOLE = re.compile(r"\$\{([A-Za-z.]+)\}")
DEFAULT_CAPACITY = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}


class PodScene:
    """A pod at the moment a stage is played: the time as the API writes it, and addresses."""

    def __init__(self, pod: Pod, now: str, host_ip: str, pod_ip: str) -> None:
        self.pod, self.now, self.host_ip = pod, now, host_ip
        self.pod_ip = host_ip if pod.spec.host_network else pod_ip

    def conditions(self, ready: bool, reason: str | None) -> list[JSON]:
        """The conditions a kubelet keeps; transition times move only when a status changes."""
        wanted = {"PodReadyToStartContainers": reason is None, "Initialized": True}
        wanted |= {"Ready": ready, "ContainersReady": ready}
        result = []
        for type, on in wanted.items():
            status = "True" if on else "False"
            old = self.pod.condition(type)
            since = old.last_transition_time if old is not None and old.status == status else None
            condition: JSON = {"type": type, "status": status, "lastProbeTime": None}
            condition["lastTransitionTime"] = since or self.now
            if reason is not None and type != "PodReadyToStartContainers":
                condition["reason"] = reason
            elif old is not None and old.reason is not None:
                condition["reason"] = condition["message"] = None  # the patch takes away what was said against it
            result.append(condition)
        return result

    def statuses(self, containers: tuple[Container, ...], state: str) -> list[JSON]:
        """One status a container, `running`, `succeeded` or `failed`."""
        started = self.pod.status.start_time or self.now
        ended = {"startedAt": started, "finishedAt": self.now}
        states: dict[str, JSON] = {
            "running": {"running": {"startedAt": self.now}},
            "succeeded": {"terminated": {"exitCode": 0, "reason": "Completed", **ended}},
            "failed": {"terminated": {"exitCode": 1, "reason": "Error", **ended}},
        }
        running = state == "running"
        return [
            {
                "name": each.name,
                "image": each.image,
                "imageID": f"{each.image}@sha256:{_digest(each.image)}",
                "containerID": f"skedge://{_digest(self.pod.metadata.uid + each.name)}",
                "ready": running,
                "started": running,
                "restartCount": 0,
                "lastState": {},
                "state": states[state],
            }
            for each in containers
        ]

    def init_statuses(self) -> list[JSON]:
        """Init containers have ended well, sidecars run."""
        result = []
        for each in self.pod.spec.init_containers or ():
            state = "running" if each.restart_policy == "Always" else "succeeded"
            status = self.statuses((each,), state)[0]
            result.append({**status, "ready": True})
        return result


POD_VALUES: dict[str, Callable[[PodScene], Any]] = {
    "now": lambda scene: scene.now,
    "podIP": lambda scene: scene.pod_ip,
    "podIPs": lambda scene: [{"ip": scene.pod_ip}],
    "hostIP": lambda scene: scene.host_ip,
    "hostIPs": lambda scene: [{"ip": scene.host_ip}],
    "name": lambda scene: scene.pod.metadata.name,
    "nodeName": lambda scene: scene.pod.spec.node_name,
    "conditions.running": lambda scene: scene.conditions(True, None),
    "conditions.notReady": lambda scene: scene.conditions(False, "ContainersNotReady"),
    "conditions.succeeded": lambda scene: scene.conditions(False, "PodCompleted"),
    "conditions.failed": lambda scene: scene.conditions(False, "PodFailed"),
    "containerStatuses.running": lambda scene: scene.statuses(scene.pod.spec.containers, "running"),
    "containerStatuses.succeeded": lambda scene: scene.statuses(scene.pod.spec.containers, "succeeded"),
    "containerStatuses.failed": lambda scene: scene.statuses(scene.pod.spec.containers, "failed"),
    "initContainerStatuses": lambda scene: scene.init_statuses() or None,
}


class NodeScene:
    """A node at the moment a stage is played."""

    def __init__(self, node: Node, now: str, address: str, version: str) -> None:
        self.node, self.now, self.version = node, now, version
        self.address = address

    def conditions(self, ready: bool) -> list[JSON]:
        result = []
        for type, on, reason, message in (
            ("MemoryPressure", False, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            ("DiskPressure", False, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            ("PIDPressure", False, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            ("Ready", ready, "KubeletReady", "kubelet is posting ready status"),
        ):
            status = "True" if on else "False"
            old = self.node.condition(type)
            since = old.last_transition_time if old is not None and old.status == status else None
            if type == "Ready" and not ready:
                reason, message = "KubeletNotReady", "the fake kubelet is not ready"
            result.append(
                {
                    "type": type,
                    "status": status,
                    "lastHeartbeatTime": self.now,
                    "lastTransitionTime": since or self.now,
                    "reason": reason,
                    "message": message,
                }
            )
        return result

    def addresses(self) -> list[JSON]:
        present = self.node.status.addresses
        if present:
            return [{"type": each.type, "address": each.address} for each in present]
        name = self.node.metadata.name
        return [{"type": "InternalIP", "address": self.address}, {"type": "Hostname", "address": name}]

    def info(self) -> JSON:
        labels, name = self.node.metadata.labels or {}, self.node.metadata.name
        return {
            "machineID": _digest(name)[:32],
            "systemUUID": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
            "bootID": _digest(f"boot {name}")[:32],
            "kernelVersion": "",
            "osImage": "",
            "containerRuntimeVersion": "skedge://fake",
            "kubeletVersion": self.version,
            "kubeProxyVersion": "",
            "operatingSystem": labels.get("kubernetes.io/os", "linux"),
            "architecture": labels.get("kubernetes.io/arch", "amd64"),
        }

    def capacity(self) -> JSON:
        return self.node.status.capacity or dict(DEFAULT_CAPACITY)

    def allocatable(self) -> JSON:
        return self.node.status.allocatable or self.capacity()


NODE_VALUES: dict[str, Callable[[NodeScene], Any]] = {
    "now": lambda scene: scene.now,
    "name": lambda scene: scene.node.metadata.name,
    "conditions": lambda scene: scene.conditions(True),
    "conditions.notReady": lambda scene: scene.conditions(False),
    "addresses": lambda scene: scene.addresses(),
    "capacity": lambda scene: scene.capacity(),
    "allocatable": lambda scene: scene.allocatable(),
    "nodeInfo": lambda scene: scene.info(),
}


def fill(template: Any, values: dict[str, Callable[[Any], Any]], scene: Any) -> Any:
    """The template with its placeholders replaced; a field whose placeholder means nothing (None) is left out."""
    if isinstance(template, dict):
        filled = ((key, fill(each, values, scene)) for key, each in template.items())
        return {key: each for key, each in filled if each is not None}
    if isinstance(template, list):
        return [fill(each, values, scene) for each in template]
    if not isinstance(template, str) or "${" not in template:
        return template
    whole = _WHOLE.fullmatch(template)
    if whole:
        return values[whole[1]](scene)
    return _WHOLE.sub(lambda match: str(values[match[1]](scene)), template)


def node_address(name: str) -> str:
    """An address in 172.16.0.0/12 that is always the same for a name."""
    digest = hashlib.sha256(name.encode()).digest()
    return f"172.{16 + digest[0] % 16}.{digest[1]}.{1 + digest[2] % 254}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
