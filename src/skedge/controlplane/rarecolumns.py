"""Printer columns of kinds that are rarely looked at (`pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skedge.controlplane.ages import age

JSON = dict[str, Any]

_NONE, _UNSET = "<none>", "<unset>"
_SHOWN = 3  # addresses listed of an object that has more


def quota_cells(obj: JSON, now: float) -> list[Any]:
    """What is used of what is allowed, requests and limits apart."""
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    shown = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    requests = ", ".join(text for name, text in shown.items() if not name.startswith("limits."))
    limits = ", ".join(text for name, text in shown.items() if name.startswith("limits."))
    return [obj["metadata"]["name"], requests, limits, age(obj, now)]


def revision_cells(obj: JSON, now: float) -> list[Any]:
    """Whose revision it is, and which."""
    owner = next((each for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), None)
    of = _NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        of = f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"
    return [obj["metadata"]["name"], of, obj.get("revision", 0), age(obj, now)]


def template_cells(obj: JSON, now: float) -> list[Any]:
    """Containers, images and labels of a pod template."""
    template = obj.get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or ()
    labels = (template.get("metadata") or {}).get("labels") or {}
    listed = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    names, images = (",".join(each.get(key, "") for each in containers) for key in ("name", "image"))
    return [obj["metadata"]["name"], names, images, listed or _NONE]


def endpoints_cells(obj: JSON, now: float) -> list[Any]:
    """Addresses with ports."""
    found = [
        f"{address.get('ip', '')}:{port['port']}" if port else address.get("ip", "")
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or [{}]
        for address in subset.get("addresses") or ()
    ]
    return [obj["metadata"]["name"], _few(found, _NONE), age(obj, now)]


def slice_cells(obj: JSON, now: float) -> list[Any]:
    """An endpoint slice: kind of its addresses, ports, addresses."""
    ports = [str(each.get("port", "*")) for each in obj.get("ports") or ()]
    addresses = [address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()]
    name, kind = obj["metadata"]["name"], obj.get("addressType", "")
    return [name, kind, _few(ports, _UNSET), _few(addresses, _UNSET), age(obj, now)]


def attachment_cells(obj: JSON, now: float) -> list[Any]:
    """Which volume a volume attachment brings to which node."""
    spec = obj["spec"]
    volume = (spec.get("source") or {}).get("persistentVolumeName", "")
    attached = bool((obj.get("status") or {}).get("attached"))
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        volume,
        spec.get("nodeName", ""),
        attached,
        age(obj, now),
    ]


def driver_cells(obj: JSON, now: float) -> list[Any]:
    """A CSI driver's switches."""
    spec = obj["spec"]
    tokens = ",".join(each.get("audience", "") for each in spec.get("tokenRequests") or ()) or _UNSET
    modes = ",".join(spec.get("volumeLifecycleModes") or ()) or _NONE
    return [
        obj["metadata"]["name"],
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        tokens,
        bool(spec.get("requiresRepublish")),
        modes,
        age(obj, now),
    ]


def capacity_cells(obj: JSON, now: float) -> list[Any]:
    """A storage capacity: of which class, and how much."""
    return [obj["metadata"]["name"], obj.get("storageClassName", ""), obj.get("capacity") or _UNSET]


def attributes_cells(obj: JSON, now: float) -> list[Any]:
    """A volume attributes class: whose it is."""
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now)]


def _few(texts: Iterable[str], without: str) -> str:
    """The first texts, and how many there are besides."""
    listed = list(texts)
    if not listed:
        return without
    shown = ",".join(listed[:_SHOWN])
    return shown if len(listed) <= _SHOWN else f"{shown} + {len(listed) - _SHOWN} more..."
