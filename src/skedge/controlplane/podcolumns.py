"""The columns of pods: readiness, the status word, restarts (`printPod` of `pkg/printers/internalversion`)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from skedge.controlplane.ages import age, duration

JSON = dict[str, Any]

_NONE = "<none>"


def pod_cells(pod: JSON, now: float) -> list[Any]:
    """Cells of one pod."""
    spec, status, meta = pod["spec"], pod["status"], pod["metadata"]
    word, ready, restarts, last = _state(pod)
    total = len(spec.get("containers") or []) + len(_sidecars(spec))
    text = str(restarts)
    if restarts and last:
        text = f"{restarts} ({duration(now - datetime.fromisoformat(last).timestamp())} ago)"
    gates = spec.get("readinessGates") or []
    conditions = {c.get("type"): c.get("status") for c in status.get("conditions") or []}
    passed = sum(1 for gate in gates if conditions.get(gate.get("conditionType")) == "True")
    return [
        meta["name"],
        f"{ready}/{total}",
        word,
        text,
        age(pod, now),
        status.get("podIP") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        f"{passed}/{len(gates)}" if gates else _NONE,
    ]


def _sidecars(spec: JSON) -> set[str]:
    return {c["name"] for c in spec.get("initContainers") or [] if c.get("restartPolicy") == "Always"}


def _finished(state: JSON, key: str) -> str:
    return str((state.get("terminated") or {}).get("finishedAt") or "") if key == "terminated" else ""


def _state(pod: JSON) -> tuple[str, int, int, str]:
    """The status word, ready containers, restarts, and when a container last ended."""
    spec, status, meta = pod["spec"], pod["status"], pod["metadata"]
    word = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    sidecars = _sidecars(spec)
    ready = restarts = sidecar_restarts = 0
    last = sidecar_last = ""
    initializing = False
    total_init = len(spec.get("initContainers") or [])
    for i, container in enumerate(status.get("initContainerStatuses") or []):
        restarts += container.get("restartCount", 0)
        state = container.get("state") or {}
        last = max(last, _finished(container.get("lastState") or {}, "terminated"))
        if container.get("name") in sidecars:
            sidecar_restarts += container.get("restartCount", 0)
            sidecar_last = max(sidecar_last, _finished(container.get("lastState") or {}, "terminated"))
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if container.get("name") in sidecars and container.get("started"):
            ready += 1 if container.get("ready") else 0
            continue
        if ended is not None:
            word = "Init:" + _ended(ended)
        elif waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            word = "Init:" + waiting["reason"]
        else:
            word = f"Init:{i}/{total_init}"
        initializing = True
        break
    if not initializing or _initialized(status):
        restarts, last = sidecar_restarts, sidecar_last
        running = False
        for container in reversed(status.get("containerStatuses") or []):
            restarts += container.get("restartCount", 0)
            last = max(last, _finished(container.get("lastState") or {}, "terminated"))
            state = container.get("state") or {}
            if (state.get("waiting") or {}).get("reason"):
                word = state["waiting"]["reason"]
            elif "terminated" in state:
                word = _ended(state["terminated"])
            elif container.get("ready") and "running" in state:
                running = True
                ready += 1
        if word == "Completed" and running:
            is_ready = any(
                c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or []
            )
            word = "Running" if is_ready else "NotReady"
    if meta.get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            word = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            word = "Terminating"
    return word, ready, restarts, last


def _initialized(status: JSON) -> bool:
    return any(c.get("type") == "Initialized" and c.get("status") == "True" for c in status.get("conditions") or [])


def _ended(ended: JSON) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"
