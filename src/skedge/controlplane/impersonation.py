"""Acting as somebody else: the `Impersonate-` headers (`kubectl --as`).

`staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation`.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from multidict import CIMultiDictProxy

from skedge.controlplane.errors import ApiError, forbidden
from skedge.controlplane.users import ANONYMOUS, AUTHENTICATED, User

Decide = Callable[[User, str, str, str, str, str], tuple[bool, str]]
"""Whether a user may use a verb on a group, resource, namespace and name, and why."""

_PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_UNAUTHENTICATED = ANONYMOUS.groups[0]
_AUTHENTICATION = "authentication.k8s.io"


def acting(headers: CIMultiDictProxy[str], user: User, path: str, decide: Decide) -> User:
    """Whom a request of `user` acts as, by its headers. Raises 403 where `user` may not be that, 500 without a name."""
    if not any(key[:12].lower() == _PREFIX for key in headers):
        return user
    name, uid = headers.get("Impersonate-User", ""), headers.get("Impersonate-Uid", "")
    groups = headers.getall("Impersonate-Group", [])
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in headers.items():
        if key.lower().startswith(_EXTRA):
            word = unquote(key.lower().removeprefix(_EXTRA))
            extra[word] = (*extra.get(word, ()), value)
    if not name:
        if not (groups or uid or extra):
            return user
        text = f'Internal Server Error: "{path}": requested groups, extra or uid without impersonating a user'
        raise ApiError(500, "InternalError", text)
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":") if name.startswith(_ACCOUNT) else ("", "", "")
    if account:
        _require(decide, user, "serviceaccounts", "", account, namespace)
    else:
        _require(decide, user, "users", "", name)
    for group in groups:
        _require(decide, user, "groups", "", group)
    for word, values in extra.items():
        for value in values:
            _require(decide, user, f"userextras/{word}", _AUTHENTICATION, value)
    if uid:
        _require(decide, user, "uids", _AUTHENTICATION, uid)
    if account and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    added = _UNAUTHENTICATED if name == ANONYMOUS.name else AUTHENTICATED
    if AUTHENTICATED not in groups and _UNAUTHENTICATED not in groups:
        groups = [*groups, added]
    return User(name, tuple(groups), uid, tuple(sorted(extra.items())))


def _require(decide: Decide, user: User, resource: str, group: str, name: str, namespace: str = "") -> None:
    if not decide(user, "impersonate", group, resource, namespace, name)[0]:
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        why = f'User "{user.name}" cannot impersonate resource "{resource}" in API group "{group}" {where}'
        raise forbidden(resource.partition("/")[0], group, name, why)
