"""The diff in the refusal of a pod update: two specs as the server's internal structs print, compared by lines.

`pkg/apis/core/validation/validation.go` prints `diff.Diff` of `core.PodSpec` (`pkg/apis/core/types.go`): Go's field
names in Go's order, every field, one space a level.
"""

from __future__ import annotations

import difflib
import json
from typing import Any

from skedge.controlplane.fields.table import Shape, Type, table
from skedge.controlplane.gotypes import plan

JSON = dict[str, Any]

# Go names that are not the JSON name with a capital
_NAMES = {
    "dnsPolicy": "DNSPolicy",
    "dnsConfig": "DNSConfig",
    "tty": "TTY",
    "os": "OS",
    "httpGet": "HTTPGet",
    "tcpSocket": "TCPSocket",
    "grpc": "GRPC",
    "ip": "IP",
    "csi": "CSI",
    "nfs": "NFS",
    "iscsi": "ISCSI",
    "fc": "FC",
    "rbd": "RBD",
    "uid": "UID",
    "apiVersion": "APIVersion",
}
_MOST_LINES = 20_000  # of a diff that is made: comparing more takes minutes, and nobody reads it
# where the internal pod spec differs from the served one: these live in its security context, that one is gone
_IN_SECURITY_CONTEXT = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
_GONE = ("serviceAccount",)


def spec_diff(before: JSON, after: JSON) -> str:
    """The changed lines of two pod specs with three lines of context."""
    type_ = table().types["core.v1.PodSpec"]
    texts = [json.dumps(_pod_spec(spec, type_), indent=1).splitlines() for spec in (before, after)]
    if sum(map(len, texts)) > _MOST_LINES:
        return ""
    lines = list(difflib.unified_diff(texts[0], texts[1], n=3, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def _pod_spec(spec: JSON, type_: Type) -> JSON:
    printed = _struct(spec, type_, (*_IN_SECURITY_CONTEXT, *_GONE))
    context = printed.get("SecurityContext")
    if context is not None:
        moved = {_name(key): spec.get(key, False if key.startswith("host") else None) for key in _IN_SECURITY_CONTEXT}
        printed["SecurityContext"] = {**moved, **context}
    return printed


def _name(name: str) -> str:
    return _NAMES.get(name) or name[:1].upper() + name[1:]


def _struct(value: JSON, type_: Type, without: tuple[str, ...] = ()) -> JSON:
    printed: JSON = {}
    for name, child, mode, _ in plan(type_):
        if name not in without:
            item = value.get(name)
            printed[_name(name)] = _absent(child, mode) if item is None else _value(item, child)
    return printed


def _absent(type_: Type, mode: str) -> Any:
    if mode in ("p", "n") or type_.shape in (Shape.LIST, Shape.MAP):
        return None
    if type_.shape is Shape.STRUCT:
        return _struct({}, type_)
    if type_.name == "boolean":
        return False
    return 0 if type_.name.startswith("integer") else ""


def _value(value: Any, type_: Type) -> Any:
    if type_.shape is Shape.STRUCT:
        return _struct(value, type_)
    if type_.shape is Shape.LIST:
        return [_value(item, type_.elem) for item in value]
    if type_.shape is Shape.MAP:
        return {key: _value(item, type_.elem) for key, item in sorted(value.items())}
    return value
