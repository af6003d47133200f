"""Nobody gives more rights than they have: what a role or a binding would grant must be held by who writes it.

`pkg/registry/rbac/{escalation_check.go,role,rolebinding}`, `component-helpers/auth/rbac/validation`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from skedge.controlplane.access import Access, User, rule_allows, rule_allows_path
from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import forbidden, not_found
from skedge.controlplane.request import Target

JSON = dict[str, Any]

GROUP = "rbac.authorization.k8s.io"
_BINDINGS = ("rolebindings", "clusterrolebindings")


def refuse_escalation(access: Access, cluster: Cluster, user: User, target: Target, obj: JSON) -> None:
    """Raise 403 where a role or binding, as it would be stored, grants what the user neither has nor may give."""
    namespace = target.namespace
    if target.plural in _BINDINGS:
        ref = obj.get("roleRef") or {}
        kind, name = ("roles" if ref.get("kind") == "Role" else "clusterroles"), ref.get("name", "")
        if access.decide(user, "bind", GROUP, kind, namespace, name)[0]:
            return
        role = cluster.find(f"{kind}.{GROUP}", name, namespace if kind == "roles" else "")
        if role is None:
            raise not_found(kind, GROUP, name)
        rules = role.load().get("rules") or []
    else:
        if access.decide(user, "escalate", GROUP, target.plural, namespace, obj["metadata"].get("name", ""))[0]:
            return
        rules = obj.get("rules") or []
    held = access.rules_held(user, namespace)
    missing = [part for rule in rules for part in _parts(rule) if not _covered(part, held)]
    if missing:
        groups = " ".join(f'"{group}"' for group in user.groups)
        why = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
        shown = sorted(map(_shown, _compact(missing)))
        raise forbidden(target.plural, GROUP, obj["metadata"].get("name", ""), why + "\n".join(shown))


def _parts(rule: JSON) -> Iterable[JSON]:
    """A rule as rules of one verb on one thing."""
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield {"verbs": [verb], "nonResourceURLs": [path]}
        for group, resource in itertools.product(rule.get("apiGroups") or (), rule.get("resources") or ()):
            part = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
            names = rule.get("resourceNames") or ()
            yield from ({**part, "resourceNames": [name]} for name in names)
            if not names:
                yield part


def _covered(part: JSON, held: list[JSON]) -> bool:
    verb = part["verbs"][0]
    if "nonResourceURLs" in part:
        return any(rule_allows_path(rule, verb, part["nonResourceURLs"][0]) for rule in held)
    group, resource = part["apiGroups"][0], part["resources"][0]
    name = (part.get("resourceNames") or [""])[0]
    return any(rule_allows(rule, verb, group, resource, name) for rule in held)


def _compact(parts: list[JSON]) -> list[JSON]:
    """Parts that differ in their verbs only, put together."""
    found: dict[str, JSON] = {}
    for part in parts:
        key = repr({key: value for key, value in part.items() if key != "verbs"})
        known = found.setdefault(key, {**part, "verbs": []})
        known["verbs"] += [verb for verb in part["verbs"] if verb not in known["verbs"]]
    return list(found.values())


def _shown(rule: JSON) -> str:
    keys = ("apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs")
    names = {"apiGroups": "APIGroups", "nonResourceURLs": "NonResourceURLs", "resourceNames": "ResourceNames"}
    listed = []
    for key in keys:
        if rule.get(key):
            values = " ".join(f'"{value}"' for value in rule[key])
            listed.append(f"{names.get(key, key.capitalize())}:[{values}]")
    return "{" + ", ".join(listed) + "}"
