"""Who is asking, and what they may do: tokens, client certificates, RBAC.

Rules come from the Role and ClusterRole objects of the store; a read of them is kept until one changes
(`plugin/pkg/auth/authorizer/rbac`, `staging/src/k8s.io/apiserver/pkg/authentication`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import ApiError, forbidden, unauthorized
from skedge.controlplane.impersonation import acting
from skedge.controlplane.request import Target
from skedge.controlplane.users import ANONYMOUS, AUTHENTICATED, User

JSON = dict[str, Any]

_MASTERS = "system:masters"
_GROUP = "rbac.authorization.k8s.io"


@dataclass(slots=True)
class _Grant:
    """The rules a binding gives to subjects, in a namespace or everywhere ("")."""

    subjects: list[JSON]
    namespace: str
    rules: list[JSON]
    reason: str


class Access:
    """Authentication and authorization of one server."""

    def __init__(self, tokens: dict[str, User] | None = None, *, enforced: bool = True) -> None:
        self.enforced = enforced
        self._tokens = {
            token: user if AUTHENTICATED in user.groups else User(user.name, (*user.groups, AUTHENTICATED), user.uid)
            for token, user in (tokens or {}).items()
        }
        self._cluster: Cluster | None = None
        self._grants: list[_Grant] | None = None

    @staticmethod
    def open() -> Access:
        """Everybody may do everything: what a demo wants."""
        return Access(enforced=False)

    def attach(self, cluster: Cluster) -> None:
        """Take roles and bindings from a cluster's store."""
        self._cluster = cluster
        for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings"):
            cluster.collection(f"{plural}.{_GROUP}").listeners.append(self._forget)

    def _forget(self, _changes: object) -> None:
        self._grants = None

    # --- authentication

    def authenticate(self, request: web.BaseRequest) -> User:
        """The user a request acts as. Raises 401 for a token nobody has, 403 for a user whom its sender may not be."""
        return acting(request.headers, self._sender(request), request.raw_path, self.decide)

    def _sender(self, request: web.BaseRequest) -> User:
        header = request.headers.get("Authorization", "")
        if header.startswith("Bearer ") and (self.enforced or self._tokens):
            user = self._tokens.get(header[7:].strip())
            if user is None:
                raise unauthorized()
            return user
        if request.secure:
            user = _certificate_user(request)
            if user is not None:
                return user
        return ANONYMOUS

    def user_of_token(self, token: str) -> User | None:
        return self._tokens.get(token)

    # --- authorization

    def authorize(self, user: User, target: Target) -> None:
        """Raise 403 unless the user may do what the target says."""
        if not self.enforced or _MASTERS in user.groups:
            return
        resource = target.plural + (f"/{target.subresource.name}" if target.subresource else "")
        namespace = target.namespace if target.plural != "namespaces" else ""
        name = target.name or _selected_name(target.query.get("fieldSelector", ""))
        allowed, _ = self.decide(user, target.verb, target.group, resource, namespace, name)
        if not allowed:
            where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
            why = f'User "{user.name}" cannot {target.verb} resource "{resource}" in API group "{target.group}" {where}'
            raise forbidden(target.plural, target.group, target.name, why)

    def authorize_path(self, user: User, method: str, path: str) -> None:
        """Raise 403 unless the user may read a path that is no resource."""
        if not self.enforced or _MASTERS in user.groups:
            return
        verb = {"GET": "get", "HEAD": "head", "POST": "post", "PUT": "put", "DELETE": "delete"}.get(
            method, method.lower()
        )
        if not self.decide_path(user, verb, path)[0]:
            raise ApiError(403, "Forbidden", f'forbidden: User "{user.name}" cannot {verb} path "{path}"', {})

    def decide(self, user: User, verb: str, group: str, resource: str, namespace: str, name: str) -> tuple[bool, str]:
        """Whether a user may use a verb on a resource, and by which binding."""
        if not self.enforced or _MASTERS in user.groups:
            return True, ""
        for grant in self._all():
            if (grant.namespace in ("", namespace) and (not grant.namespace or namespace)) and _meant(
                user, grant.subjects
            ):
                for rule in grant.rules:
                    if rule_allows(rule, verb, group, resource, name):
                        return True, grant.reason
        return False, ""

    def decide_path(self, user: User, verb: str, path: str) -> tuple[bool, str]:
        """Whether a user may use a verb on a path that is no resource."""
        if not self.enforced or _MASTERS in user.groups:
            return True, ""
        for grant in self._all():
            if not grant.namespace and _meant(user, grant.subjects):
                for rule in grant.rules:
                    if rule_allows_path(rule, verb, path):
                        return True, grant.reason
        return False, ""

    def rules_of(self, user: User, namespace: str) -> JSON:
        """The status of a SelfSubjectRulesReview."""
        rules: list[JSON] = []
        if not self.enforced or _MASTERS in user.groups:
            rules.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
            rules.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
        else:
            rules = self.rules_held(user, namespace)
        return {
            "resourceRules": [r for r in rules if r.get("resources")],
            "nonResourceRules": [r for r in rules if r.get("nonResourceURLs")],
            "incomplete": False,
        }

    def rules_held(self, user: User, namespace: str) -> list[JSON]:
        """The rules that bindings give a user in a namespace, or everywhere ("")."""
        grants = [each for each in self._all() if each.namespace in ("", namespace) and _meant(user, each.subjects)]
        return [rule for grant in grants for rule in grant.rules]

    def is_limited(self, user: User) -> bool:
        """Whether rules say what a user may do."""
        return self.enforced and _MASTERS not in user.groups

    def _all(self) -> list[_Grant]:
        if self._grants is None:
            self._grants = self._read()
        return self._grants

    def _read(self) -> list[_Grant]:
        cluster = self._cluster
        if cluster is None:
            return []
        cluster.store.flush()
        grants: list[_Grant] = []
        for plural in ("clusterrolebindings", "rolebindings"):
            for stored in cluster.collection(f"{plural}.{_GROUP}").objects.values():
                binding = stored.load()
                ref = binding.get("roleRef") or {}
                where = stored.namespace if ref.get("kind") == "Role" else ""
                kind = "roles" if ref.get("kind") == "Role" else "clusterroles"
                role = cluster.find(f"{kind}.{_GROUP}", ref.get("name", ""), where)
                if role is not None:
                    what = "ClusterRoleBinding" if plural == "clusterrolebindings" else "RoleBinding"
                    shown = f"{stored.name}/{stored.namespace}" if stored.namespace else stored.name
                    subjects = binding.get("subjects") or []
                    who = subjects[0] if subjects else {}
                    reason = f'RBAC: allowed by {what} "{shown}" of {ref.get("kind")} "{ref.get("name")}" to '
                    reason += f'{who.get("kind")} "{who.get("name")}"'
                    grants.append(_Grant(subjects, stored.namespace, role.load().get("rules") or [], reason))
        return grants


def _selected_name(fields: str) -> str:
    """The one object that a list or watch with these field selectors is about; "" if it may be about several."""
    for part in fields.split(","):
        key, equals, value = part.partition("=")
        if key.strip() == "metadata.name" and equals:
            return value.lstrip("=").strip()
    return ""


def _certificate_user(request: web.BaseRequest) -> User | None:
    """The subject of a client certificate: CN is the user, O are the groups."""
    peer = request.get_extra_info("peercert")
    if not peer:
        return None
    names: dict[str, list[str]] = {}
    for part in peer.get("subject", ()):
        for key, value in part:
            names.setdefault(key, []).append(value)
    common = names.get("commonName")
    if not common:
        return None
    return User(common[0], (*names.get("organizationName", ()), AUTHENTICATED))


def _meant(user: User, subjects: list[JSON]) -> bool:
    for subject in subjects:
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User" and name in (user.name, "*"):
            return True
        if kind == "Group" and name in user.groups:
            return True
        if kind == "ServiceAccount" and user.name == f"system:serviceaccount:{subject.get('namespace', '')}:{name}":
            return True
    return False


def rule_allows(rule: JSON, verb: str, group: str, resource: str, name: str) -> bool:
    """Whether a rule lets a verb be used on a resource, in general or by name."""
    verbs, groups, resources = rule.get("verbs") or (), rule.get("apiGroups") or (), rule.get("resources") or ()
    if not ("*" in verbs or verb in verbs) or not ("*" in groups or group in groups):
        return False
    sub = resource.partition("/")[2]
    if not ("*" in resources or resource in resources or (sub and f"*/{sub}" in resources)):
        return False
    only = rule.get("resourceNames") or ()
    return not only or name in only


def rule_allows_path(rule: JSON, verb: str, path: str) -> bool:
    """Whether a rule lets a verb be used on a path that is no resource."""
    verbs, paths = rule.get("verbs") or (), rule.get("nonResourceURLs") or ()
    return ("*" in verbs or verb in verbs) and any(_path_fits(pattern, path) for pattern in paths)


def _path_fits(pattern: str, path: str) -> bool:
    if pattern in ("*", path):
        return True
    return pattern.endswith("*") and path.startswith(pattern[:-1])


__all__ = ["ANONYMOUS", "Access", "User"]
