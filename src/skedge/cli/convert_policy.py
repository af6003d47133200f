"""`skedge convert-policy`: what a legacy Policy (or v1alpha1 configuration) asks for, as a v1 configuration.

What v1 has no words for is told on stderr; with plugins that v1 can not name nothing is printed, and the exit status
is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from skedge import names
from skedge.cli.arguments import Parser
from skedge.config import documents
from skedge.config.complete import check
from skedge.config.defaults import default_configuration, set_defaults
from skedge.config.encode import to_data
from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates
from skedge.config.legacy.apply import PolicyFile, use_policy
from skedge.config.legacy.component_config import convert_component_config, is_legacy
from skedge.config.legacy.policy import decode_policy
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import KubeSchedulerConfiguration, PluginConfig, Profile

NOT_V1: Final = "has no name in a v1 configuration; it runs with --policy-config-file or --algorithm-provider only"


def parser() -> argparse.ArgumentParser:
    made = Parser(prog="skedge convert-policy", description="Prints the v1 configuration of a Policy.")
    made.add_argument("file", metavar="FILE", help="Policy or v1alpha1 configuration, YAML or JSON; - is stdin")
    made.add_argument(
        "--scheduler-name", default=names.DEFAULT_SCHEDULER_NAME, metavar="NAME", help="name of the profile"
    )
    made.add_argument(
        "--drop-legacy-plugins", action="store_true", help="leave out what v1 can not name, instead of failing"
    )
    return made


def run(argv: Sequence[str]) -> int:
    arguments = parser().parse_args(argv)
    try:
        config, notes = convert(arguments.file, arguments.scheduler_name)
        lost = legacy_plugins(config)
        for note in (*notes, *(f"plugin {name} {NOT_V1}" for name in lost)):
            print(f"Warning: {note}", file=sys.stderr)
        if lost and not arguments.drop_legacy_plugins:
            raise ConfigError(f"can't be said in v1: {', '.join(lost)} (--drop-legacy-plugins leaves them out)")
        drop(config, lost)
        check(config, FeatureGates(), PLUGIN_ARGS)
        print(yaml.safe_dump(essence(config), sort_keys=False, allow_unicode=True), end="")
    except ConfigError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def convert(path: str, scheduler_name: str) -> tuple[KubeSchedulerConfiguration, list[str]]:
    """The configuration a file asks for, and notes on what is different. Raises ConfigError."""
    data = _read(path)
    gates = FeatureGates()
    if is_legacy(documents.load(data).data):
        converted = convert_component_config(data, args_types=PLUGIN_ARGS, gates=gates)
        config, notes = converted.config, list(converted.warnings)
        if converted.policy is None:
            return config, notes
        if not isinstance(converted.policy, PolicyFile):
            source = converted.policy
            raise ConfigError(f"the Policy is in the config map {source.namespace}/{source.name}: convert that")
        data = _read(converted.policy.path)
    else:
        config, notes = KubeSchedulerConfiguration(profiles=[Profile(scheduler_name=scheduler_name)]), []
        set_defaults(config, gates, PLUGIN_ARGS)
    return config, [*notes, *use_policy(config, decode_policy(data), args_types=PLUGIN_ARGS, gates=gates)]


def essence(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """The configuration as data without what a v1 file need not say: it reads back as the same configuration."""
    standard = to_data(default_configuration())
    data = to_data(config)
    said = {key: value for key, value in data.items() if key in ("kind", "apiVersion") or value != standard.get(key)}
    for profile, of in zip(said.get("profiles", ()), config.profiles, strict=False):
        sets = {point: _said(plugins) for point, plugins in profile["plugins"].items()}
        profile["plugins"] = {point: plugins for point, plugins in sets.items() if plugins}
        known = zip(profile.get("pluginConfig", ()), of.plugin_config, strict=False)
        profile["pluginConfig"] = [entry for entry, own in known if not _is_default(own)]
    return said


def _said(plugins: dict[str, Any]) -> dict[str, Any]:
    return {
        key: [{name: value for name, value in plugin.items() if value} for plugin in listed]
        for key, listed in plugins.items()
        if listed
    }


def _is_default(entry: PluginConfig) -> bool:
    return entry.name in PLUGIN_ARGS and entry.args == PLUGIN_ARGS[entry.name].default(FeatureGates())


def legacy_plugins(config: KubeSchedulerConfiguration) -> list[str]:
    """Plugins in use that a v1 file can not name."""
    used = {
        plugin.name
        for profile in config.profiles
        for point in names.EXTENSION_POINTS
        for plugin in profile.plugins.at(point).enabled
    }
    return [name for name in names.LEGACY_PLUGINS if name in used]


def drop(config: KubeSchedulerConfiguration, plugins: Sequence[str]) -> None:
    """Takes plugins out of every profile."""
    for profile in config.profiles:
        for point in names.EXTENSION_POINTS:
            enabled = profile.plugins.at(point)
            enabled.enabled = [plugin for plugin in enabled.enabled if plugin.name not in plugins]
        profile.plugin_config = [entry for entry in profile.plugin_config if entry.name not in plugins]
    config.legacy_plugins = False


def _read(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
