"""Users, as requests and reviews know them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

JSON = dict[str, Any]

AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated (or anonymous) user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def info(self) -> JSON:
        """The user as reviews show it."""
        info: JSON = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra}
        return info


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
