"""ImageLocality: nodes that have the pod's images are liked. Upstream: `plugins/imagelocality`.

An image counts by its size and by the share of nodes that have it, so that a pod's first nodes are not the only ones
that ever get it. The share is the current one (the reference's may be as old as the last change of the node).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Final

from skedge import names
from skedge.framework.plugin import MAX_NODE_SCORE, Depends
from skedge.framework.state import CycleState
from skedge.framework.status import SUCCESS, Status
from skedge.snapshot.arith import trunc_div, where
from skedge.snapshot.changes import Aspect
from skedge.snapshot.pods import PodInfo
from skedge.snapshot.views import View

MIN_THRESHOLD: Final = 23 << 20
MAX_CONTAINER_THRESHOLD: Final = 1000 << 20


@lru_cache(maxsize=4096)
def normalized_name(image: str) -> str:
    """The image with `:latest` when it names no tag; a colon before the last slash is a registry's port."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


class ImageLocality:
    name = names.IMAGE_LOCALITY
    depends = Depends.NODE
    reads = Aspect.IMAGES
    normalizer = None

    def __init__(self, args: Any, handle: Any) -> None:
        self._table = handle.table

    def fragment(self, pod: PodInfo) -> Hashable:
        """(images, each as often as it is used; number of containers)."""
        images = [normalized_name(container.image) for container in pod.containers()]
        containers = len(images)
        images += [normalized_name(v.image.reference) for v in pod.pod.spec.volumes or () if v.image is not None]
        images.sort()
        return tuple(images), containers

    def _images(self, pod: PodInfo) -> tuple[tuple[str, ...], int]:
        found = pod.cached(self.name)
        if found is None:
            found = self.fragment(pod)
            pod.cache(self.name, found)
        return found  # type: ignore[no-any-return]

    def totals(self, pod: PodInfo) -> Hashable:
        """Number of nodes; size of each image the pod uses and on how many nodes it is."""
        states = [self._table.images.get(image) for image in self._images(pod)[0]]
        return self._table.count, tuple(
            [(state.size, len(state.rows)) if state is not None else None for state in states]
        )

    def score(self, state: CycleState, pod: PodInfo, view: View) -> Any:
        images, containers = self._images(pod)
        total = view.full(0)
        for image, times in Counter(images).items():
            known = self._table.images.get(image)
            if known is not None:
                share = float(len(known.rows)) / float(self._table.count)
                total = total + view.has_image(image) * (int(float(known.size) * share) * times)
        least, most = MIN_THRESHOLD, MAX_CONTAINER_THRESHOLD * containers
        total = where(total < least, least, where(total > most, most, total))
        return trunc_div(MAX_NODE_SCORE * (total - least), most - least)

    def sign(self, pod: PodInfo) -> tuple[dict[str, Any], Status]:
        images = {normalized_name(container.image) for container in pod.containers()}
        return {"v1.Pod.Spec.CanonicalImageNames()": sorted(images)}, SUCCESS
