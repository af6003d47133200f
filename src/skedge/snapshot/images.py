"""Which nodes have which container images. Upstream: `backend/cache` (imageStates), `framework/types.go`."""

from __future__ import annotations

from skedge.api.core import ContainerImage

Images = tuple[ContainerImage, ...]


class ImageState:
    """One image name: its size in bytes, as the first node that had it said, and the rows that have it."""

    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()


class ImageIndex:
    """Image name -> state. A name is as nodes report it; every alias of an image is a name of its own."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}

    def get(self, name: str) -> ImageState | None:
        return self._states.get(name)

    def set(self, row: int, old: Images, new: Images) -> None:
        """The row's images changed. One that no row has any more is forgotten, its size too."""
        states = self._states
        for image in old:
            for name in image.names or ():
                state = states.get(name)
                if state is not None:
                    state.rows.discard(row)
                    if not state.rows:
                        del states[name]
        for image in new:
            for name in image.names or ():
                state = states.get(name)
                if state is None:
                    state = states[name] = ImageState(image.size_bytes)
                state.rows.add(row)

    def __len__(self) -> int:
        return len(self._states)
