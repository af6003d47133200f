"""What a plugin's arguments are to the configuration: decoded strictly, defaulted, validated."""

from typing import Self

import msgspec

from skedge.config.fields import FieldError
from skedge.config.gates import FeatureGates


class PluginArgs(msgspec.Struct, rename="camel"):
    """Base of argument types; the class is named as its kind is, `<Plugin>Args`."""

    @classmethod
    def default(cls, gates: FeatureGates | None = None) -> Self:
        """The arguments of a plugin whose configuration says nothing."""
        args = cls()
        args.set_defaults(gates or FeatureGates())
        return args

    def set_defaults(self, gates: FeatureGates) -> None:
        """Fill what depends on gates, and replace values that count as not given."""

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        """Broken rules, with paths below `path` ("" at construction of the plugin: paths have no prefix then)."""
        return []


ArgsType = type[PluginArgs]


def child(path: str, name: str) -> str:
    """The path of a field below another path, which may be empty."""
    return f"{path}.{name}" if path else name
