"""A configuration as JSON or YAML, in the shape of `--write-config-to` and `/configz`.

Upstream: the JSON tags of `apis/config/v1`.
"""

import base64
from typing import Any

import msgspec
import yaml

from skedge.config.args import PluginArgs
from skedge.config.durations import Duration
from skedge.config.strict import wire_fields
from skedge.config.types import API_VERSION, KIND, KubeSchedulerConfiguration

_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def to_data(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """The configuration as plain data, keys in the reference's order."""
    return {"kind": KIND, "apiVersion": API_VERSION, **_struct(config)}


def to_json(config: KubeSchedulerConfiguration) -> bytes:
    """The configuration as compact JSON."""
    return msgspec.json.encode(to_data(config))


def to_yaml(config: KubeSchedulerConfiguration) -> str:
    """The configuration as YAML with sorted keys; reads back as the same configuration."""
    text: str = yaml.dump(to_data(config), Dumper=_Dumper, sort_keys=True, default_flow_style=False, allow_unicode=True)
    return text


def _struct(value: msgspec.Struct) -> dict[str, Any]:
    omit_zero = bool(getattr(value, "omit_zero", False))
    result: dict[str, Any] = {}
    if isinstance(value, PluginArgs):
        result = {"kind": type(value).__name__, "apiVersion": API_VERSION}
    for wire, (name, _) in wire_fields(type(value)).items():
        item = getattr(value, name)
        if item is None or item in ([], b""):
            continue
        if not item and (omit_zero or name in _OMITTED) and name not in _ALWAYS:
            continue
        result[wire] = _plain(item)
    return result


_ALWAYS = {"url_prefix", "http_timeout", "name"}
_OMITTED = {"delay_cache_until_active"}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
