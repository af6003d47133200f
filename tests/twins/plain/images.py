"""ImageLocality."""

from __future__ import annotations

from collections.abc import Sequence

from twins.plain.objects import Json, quo

_MIB = 1024 * 1024


def _written(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"


def score(pod: Json, node: Json, nodes: Sequence[Json]) -> int:
    def sizes(each: Json) -> dict[str, int]:
        listed = (each.get("status") or {}).get("images") or ()
        return {written: image.get("sizeBytes", 0) for image in listed for written in image.get("names") or ()}

    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    wanted = [_written(c.get("image", "")) for c in containers]
    wanted += [_written(v["image"].get("reference", "")) for v in spec.get("volumes") or () if v.get("image")]
    own, total = sizes(node), 0
    for image in wanted:
        if image in own:
            holders = sum(image in sizes(each) for each in nodes)
            total += int(float(own[image]) * (float(holders) / float(len(nodes))))
    least, most = 23 * _MIB, 1000 * _MIB * len(containers)
    return quo(100 * (min(max(total, least), most) - least), most - least)
