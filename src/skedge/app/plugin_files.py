"""Plugins of the user's, found where `--plugin FILE.py:CLASS` or `--plugin MODULE:CLASS` says.

The class is the plugin. Its constructor takes `(args, handle)` as in-tree plugins do, or nothing. Upstream links such
plugins in: `app.WithPlugin`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from skedge import names
from skedge.config.fields import ConfigError
from skedge.config.types import PLUGIN_SETS, KubeSchedulerConfiguration, Plugin
from skedge.plugins.registry import Factory
from skedge.profiles.profile import extends
from skedge.snapshot.pods import PodInfo


def load_plugins(wanted: Iterable[str]) -> dict[str, Factory]:
    """Factories by plugin name. Raises ConfigError, which names what was asked for and what is wrong with it."""
    found: dict[str, Factory] = {}
    for text in wanted:
        name, factory = _load(text)
        if name in found:
            raise ConfigError(f"--plugin {text}: a plugin named {name} was given before")
        found[name] = factory
    return found


def enable(config: KubeSchedulerConfiguration, plugins: Iterable[str]) -> list[str]:
    """Enables plugins that the configuration names nowhere, at all their points in all profiles; returns those."""
    mentioned = {
        plugin.name
        for profile in config.profiles
        for point in PLUGIN_SETS
        for plugin in (*profile.plugins.at(point).enabled, *profile.plugins.at(point).disabled)
    }
    added = [name for name in plugins if name not in mentioned]
    for profile in config.profiles:
        profile.plugins.multi_point.enabled.extend(Plugin(name, 1) for name in added)
    return added


def _load(text: str) -> tuple[str, Factory]:
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name:
        raise ConfigError(f"--plugin {text}: expected FILE.py:CLASS or MODULE:CLASS")
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
        made = getattr(module, name)
    except Exception as error:
        raise ConfigError(f"--plugin {text}: {type(error).__name__}: {error}") from error
    called = getattr(made, "name", None)
    if not isinstance(called, str) or not called:
        raise ConfigError(f"--plugin {text}: {name} has no attribute `name`, a string")
    if not callable(made) or not any(extends(made, point) for point in names.EXTENSION_POINTS):
        raise ConfigError(f"--plugin {text}: {name} is no class with a method of an extension point")
    wants = getattr(made, "wants", None)
    if wants is not None and not (isinstance(wants, str) and hasattr(PodInfo, wants)):
        raise ConfigError(
            f"--plugin {text}: `wants` of {name} is {wants!r}, expected the name of an attribute of a pod"
        )
    return called, _factory(made)


def _from_file(path: Path) -> ModuleType:
    name = f"plugin_file_{path.stem}"  # so that a file `select.py` is not taken for the module `select`
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _factory(made: Callable[..., Any]) -> Factory:
    try:
        inspect.signature(made).bind(None, None)
    except TypeError:
        return lambda args, handle: made()
    return made
