"""Reading kubeconfig files: several merged into one, relative paths resolved, every field understood or refused.

`Kubeconfig.load` finds and merges the files; `credentials.client_config` turns one context of it into a `ClientConfig`.
Upstream: `client-go/tools/clientcmd` (loader.go, validation.go).
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from skedge.client.errors import KubeconfigError

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]  # which of the two it is, is known at run time
    """Of a key that is given twice nothing is ignored: it is an error."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"key {key.value} is given twice", problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class Fields:
    """One mapping of a kubeconfig, read field by field; `path` and `file` tell errors where it stands.

    Reading marks a field as understood; `refuse_rest` rejects those nobody read, so that nothing is silently ignored.
    An absent or null field reads as empty.
    """

    def __init__(self, value: object, path: str, file: Path) -> None:
        self.path, self.file = path, file
        if value is None:
            value = {}
        if not isinstance(value, dict):
            where = f"{file}: {path}" if path else f"kubeconfig {file}"
            raise KubeconfigError(f"{where}: expected a mapping, got {_kind(value)}")
        self._value: dict[Any, Any] = value
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return self._value.get(key) is not None

    def where(self, key: str = "") -> str:
        return f"{self.file}: {self.path}{'.' if self.path and key else ''}{key}"

    def error(self, key: str, problem: str) -> KubeconfigError:
        return KubeconfigError(f"{self.where(key)}: {problem}")

    def _get(self, key: str, kind: type, expected: str) -> Any:
        self._read.add(key)
        value = self._value.get(key)
        if value is None:
            return kind()
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise self.error(key, f"expected {expected}, got {_kind(value)}")
        return value

    def text(self, key: str) -> str:
        value: str = self._get(key, str, "a string")
        return value

    def flag(self, key: str) -> bool:
        value: bool = self._get(key, bool, "true or false")
        return value

    def items(self, key: str) -> list[Any]:
        value: list[Any] = self._get(key, list, "a list")
        return value

    def texts(self, key: str) -> list[str]:
        items = self.items(key)
        for i, item in enumerate(items):
            if not isinstance(item, str):
                raise self.error(f"{key}[{i}]", f"expected a string, got {_kind(item)}")
        return items

    def mapping(self, key: str) -> Fields:
        self._read.add(key)
        return Fields(self._value.get(key), f"{self.path}.{key}".lstrip("."), self.file)

    def keys(self) -> list[str]:
        return [str(key) for key in self._value]

    def raw(self, key: str) -> Any:
        self._read.add(key)
        return self._value.get(key)

    def data(self, key: str) -> bytes:
        """A base64 field, decoded."""
        text = self.text(key)
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except binascii.Error:
            raise self.error(key, "is not valid base64") from None

    def file_path(self, key: str) -> str:
        """A file name, resolved against the directory of this kubeconfig."""
        text = self.text(key)
        return str(self.file.parent / text) if text else ""

    def refuse_rest(self) -> None:
        for key in self._value:
            if key not in self._read:
                raise self.error(str(key), "this field is not supported")


class Kubeconfig:
    """The merged view of one or more files: the first to name an entry, or to set current-context, wins."""

    def __init__(self) -> None:
        self.files: list[Path] = []
        self.current_context = ""
        self.clusters: dict[str, Fields] = {}
        self.users: dict[str, Fields] = {}
        self.contexts: dict[str, Fields] = {}
        self._entries: dict[tuple[str, str], Fields] = {}
        """(clusters, users or contexts; name) -> what stands beside the name."""

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None, env: Mapping[str, str] = os.environ) -> Kubeconfig:
        """Read `path`, else the files listed in $KUBECONFIG (missing ones are skipped), else ~/.kube/config.

        Raises KubeconfigError for a file that cannot be read or understood, or when there is none at all.
        """
        config = cls()
        if path is not None:
            config._add(Path(path))
            return config
        listed = [Path(name) for name in env.get("KUBECONFIG", "").split(os.pathsep) if name]
        if not listed:
            listed = [Path(env.get("HOME", "~")).expanduser() / ".kube" / "config"]
        for file in listed:
            if file.exists():
                config._add(file)
        if not config.files:
            raise KubeconfigError(f"no kubeconfig found: {', '.join(map(str, listed))} does not exist")
        return config

    def _add(self, file: Path) -> None:
        fields = Fields(_read_yaml(file), "", file)
        for key, expected in (("apiVersion", "v1"), ("kind", "Config")):
            if (got := fields.text(key)) not in ("", expected):
                raise fields.error(key, f"expected {expected}, got {got}")
        self.files.append(file)
        current = fields.text("current-context")
        self.current_context = self.current_context or current
        for key, entry, into in (
            ("clusters", "cluster", self.clusters),
            ("users", "user", self.users),
            ("contexts", "context", self.contexts),
        ):
            for i, item in enumerate(fields.items(key)):
                named = Fields(item, f"{key}[{i}]", file)
                name = named.text("name")
                into.setdefault(name, Fields(named.raw(entry), f'{key}["{name}"].{entry}', file))
                self._entries.setdefault((key, name), named)
        fields.raw("preferences")  # kubectl's own
        fields.raw("extensions")  # notes of other programs, here and in clusters, users and contexts
        fields.refuse_rest()

    def context(self, name: str = "") -> tuple[Fields, Fields | None, str]:
        """The cluster, the user (None: anonymous) and the namespace of context `name`, by default the current one."""
        files = ", ".join(map(str, self.files))
        name = name or self.current_context
        if not name:
            if not self.clusters:
                raise KubeconfigError(f"{files}: clusters: no cluster is defined")
            raise KubeconfigError(f"{files}: current-context: is not set")
        context = self.contexts.get(name)
        if context is None:
            raise KubeconfigError(f'{files}: contexts: context "{name}" does not exist')
        cluster_name, user_name = context.text("cluster"), context.text("user")
        namespace = context.text("namespace") or "default"
        context.raw("extensions")
        context.refuse_rest()
        for entry in (("contexts", name), ("clusters", cluster_name), ("users", user_name)):
            if entry in self._entries:  # a field there is one that was not indented enough
                self._entries[entry].refuse_rest()
        cluster = self.clusters.get(cluster_name)
        if cluster is None:
            problem = f'cluster "{cluster_name}" does not exist' if cluster_name else "is not set"
            raise context.error("cluster", problem)
        user = self.users.get(user_name)
        if user is None and user_name:
            raise context.error("user", f'user "{user_name}" does not exist')
        return cluster, user, namespace


def _read_yaml(file: Path) -> object:
    try:
        return yaml.load(file.read_bytes(), Loader=_Loader)
    except OSError as error:
        raise KubeconfigError(f"kubeconfig {file}: {(error.strerror or str(error)).lower()}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise KubeconfigError(f"kubeconfig {file}{line}: {error.problem or 'is not valid YAML'}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise KubeconfigError(f"kubeconfig {file}: is not valid YAML: {' '.join(str(error).split())}") from None


def _kind(value: object) -> str:
    match value:
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case bool():
            return "true or false"
        case str():
            return "a string"
        case int() | float():
            return "a number (quote it)"
        case _:
            return f"a {type(value).__name__} (quote it)"
