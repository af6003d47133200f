"""A configuration file's text to a complete configuration.

Upstream: `apis/config/{scheme,v1}`, `app/options/configfile.go`.
"""

from collections.abc import Mapping
from typing import Any

from skedge import names
from skedge.config import documents
from skedge.config.args import ArgsType
from skedge.config.defaults import set_defaults
from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates
from skedge.config.strict import Problems, StrictError, decode_struct, walk
from skedge.config.types import API_VERSION, GROUP, KIND, KubeSchedulerConfiguration, PluginConfig, Profile

_TYPE_META = frozenset({"kind", "apiVersion"})


def decode(
    text: str | bytes,
    *,
    args_types: Mapping[str, ArgsType],
    gates: FeatureGates | None = None,
    upstream_node_sampling: bool = False,
) -> KubeSchedulerConfiguration:
    """Read, decode strictly and default a KubeSchedulerConfiguration; validation is a step of its own.

    `args_types` maps plugin names to argument types; arguments of other plugins stay plain data. With
    `upstream_node_sampling` an absent percentageOfNodesToScore means the reference's adaptive sample. Raises
    ConfigError with the reference's text.
    """
    gates = gates or FeatureGates()
    document = documents.load(text)
    data = _type_meta(document)
    if data["kind"] != KIND:
        _refuse_kind(data, args_types)
    problems = Problems()
    config = walk(data, KubeSchedulerConfiguration, problems, ignore=_TYPE_META)
    problems.raise_mismatch()
    _apply_presence(config, data, upstream_node_sampling)
    strict = [*document.duplicates, *problems.unknown, *decode_args(config, args_types)]
    if strict:
        raise StrictError(strict)
    set_defaults(config, gates, args_types)
    return config


def _type_meta(document: documents.Document) -> dict[str, Any]:
    """The document as an object of this group and version."""
    data = document.data
    text = document.text if document.text.strip() else "null"
    if data is None:
        raise ConfigError(f"Object 'Kind' is missing in '{text}'")
    if not isinstance(data, dict):
        raise ConfigError("couldn't get version/kind; json parse error: the document is not an object")
    for key in ("kind", "apiVersion"):
        if not isinstance(data.get(key, ""), str | None):
            raise ConfigError(f"couldn't get version/kind; json parse error: {key} must be a string")
    if not data.get("kind"):
        raise ConfigError(f"Object 'Kind' is missing in '{text}'")
    if not data.get("apiVersion"):
        raise ConfigError(f"Object 'apiVersion' is missing in '{text}'")
    if data["apiVersion"] != API_VERSION:
        raise _unregistered(data["kind"], data["apiVersion"])
    return data


def _unregistered(kind: str, version: str) -> ConfigError:
    return ConfigError(f'no kind "{kind}" is registered for version "{version}" in scheme "{API_VERSION}"')


def _refuse_kind(data: dict[str, Any], args_types: Mapping[str, ArgsType]) -> None:
    kinds = {args_kind(name): kind for name, kind in args_types.items()}
    if data["kind"] not in kinds:
        raise _unregistered(data["kind"], API_VERSION)
    decode_struct(data, kinds[data["kind"]], ignore=_TYPE_META)
    raise ConfigError(f"couldn't decode as {KIND}, got {API_VERSION}, Kind={data['kind']}: ")


def _apply_presence(config: KubeSchedulerConfiguration, data: dict[str, Any], upstream_node_sampling: bool) -> None:
    """Defaults that depend on whether a field was there at all."""
    if data.get("enableContentionProfiling") is None:
        config.enable_contention_profiling = config.enable_profiling
    if data.get("percentageOfNodesToScore") is None and upstream_node_sampling:
        config.percentage_of_nodes_to_score = 0
    if not config.profiles:
        config.profiles = [Profile(scheduler_name=names.DEFAULT_SCHEDULER_NAME)]
    elif len(config.profiles) == 1:
        given = data["profiles"][0]
        if not isinstance(given, dict) or given.get("schedulerName") is None:
            config.profiles[0].scheduler_name = names.DEFAULT_SCHEDULER_NAME


def decode_args(config: KubeSchedulerConfiguration, args_types: Mapping[str, ArgsType]) -> list[str]:
    """Decode the arguments of all profiles in place; returns the strict problems."""
    strict: list[str] = []
    for i, profile in enumerate(config.profiles):
        for j, entry in enumerate(profile.plugin_config):
            where = f"decoding .profiles[{i}].pluginConfig[{j}]: "
            try:
                _decode_entry(entry, args_types)
            except StrictError as error:
                strict.append(f"{where}{error}")
            except ConfigError as error:
                raise ConfigError(f"{where}{error}") from None
    return strict


def _decode_entry(entry: PluginConfig, args_types: Mapping[str, ArgsType]) -> None:
    if entry.name not in args_types:
        return
    args = {} if entry.args is None else entry.args
    prefix = f"decoding args for plugin {entry.name}: "
    if not isinstance(args, dict):
        raise ConfigError(f"{prefix}couldn't get version/kind; json parse error: the arguments are not an object")
    wanted = args_kind(entry.name)
    kind, version = args.get("kind") or wanted, args.get("apiVersion") or API_VERSION
    kinds = {args_kind(name): one for name, one in args_types.items()}
    if version != API_VERSION or kind not in kinds:
        raise ConfigError(f"{prefix}{_unregistered(str(kind), str(version))}")
    try:
        decoded = decode_struct(args, kinds[kind], ignore=_TYPE_META)
    except StrictError as error:
        raise StrictError([f"{prefix}{error}"]) from None
    except ConfigError as error:
        raise ConfigError(f"{prefix}{error}") from None
    if kind != wanted:
        raise ConfigError(f"args for plugin {entry.name} were not of type {wanted}.{GROUP}, got {kind}.{GROUP}")
    entry.args = decoded


def args_kind(plugin: str) -> str:
    """The kind of a plugin's arguments."""
    return f"{plugin}Args"
