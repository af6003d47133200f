"""A job's `podFailurePolicy`: what the failure of one pod means for the job.

Upstream: `pkg/controller/job/pod_failure_policy.go`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from skedge.controlplane.controllers.objects import Pod

JSON = dict[str, Any]


class Action(NamedTuple):
    """`name` is FailJob, Ignore, Count or FailIndex; `message` says which rule asked for it."""

    name: str
    message: str


def action_of(spec: JSON, pod: Pod) -> Action | None:
    """What the first rule that matches a failed pod asks for; None without such a rule."""
    for index, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        why = _exit_code(rule.get("onExitCodes"), pod) or _condition(rule.get("onPodConditions"), pod)
        if why:
            return Action(rule["action"], f"{why} matching {rule['action']} rule at index {index}")
    return None


def _exit_code(wanted: JSON | None, pod: Pod) -> str:
    if wanted is None:
        return ""
    values, only = wanted.get("values") or (), wanted.get("containerName")
    for each in pod.status.container_statuses or ():
        ended = each.state.terminated if each.state is not None else None
        if ended is None or not ended.exit_code or (only is not None and only != each.name):
            continue
        if (ended.exit_code in values) == (wanted.get("operator") == "In"):
            return f"Container {each.name} for pod {pod.key} failed with exit code {ended.exit_code}"
    return ""


def _condition(wanted: list[JSON] | None, pod: Pod) -> str:
    for each in wanted or ():
        found = pod.condition(each["type"])
        if found is not None and found.status == each.get("status", "True"):
            return f"Pod {pod.key} has condition {each['type']}"
    return ""
