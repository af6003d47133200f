"""Arguments of the plugins that only a legacy Policy can ask for.

Upstream (v1.20): `apis/config/types_pluginargs.go`.
"""

from typing import Final

from skedge import names
from skedge.config.args import ArgsType, PluginArgs, child
from skedge.config.fields import FieldError, invalid, required
from skedge.config.gates import FeatureGates
from skedge.config.plugin_args import ResourceSpec, ShapePoint


class NodeLabelArgs(PluginArgs):
    """Label keys that a node must (not) have, and keys that are better had (or not)."""

    present_labels: list[str] = []
    absent_labels: list[str] = []
    present_labels_preference: list[str] = []
    absent_labels_preference: list[str] = []

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        errors = []
        for present, absent, name in (
            (self.present_labels, self.absent_labels, "presentLabels"),
            (self.present_labels_preference, self.absent_labels_preference, "presentLabelsPreference"),
        ):
            if both := [label for label in present if label in absent]:
                text = (
                    f'detecting at least one label (e.g., "{both[0]}") that exist in both the '
                    f"present([{' '.join(present)}]) and absent([{' '.join(absent)}]) label list"
                )
                errors.append(invalid(child(path, name), both[0], text))
        return errors


class ServiceAffinityArgs(PluginArgs):
    """Labels whose values all pods of a service share, and labels over whose values they are spread."""

    affinity_labels: list[str] = []
    anti_affinity_labels_preference: list[str] = []


class RequestedToCapacityRatioArgs(PluginArgs):
    shape: list[ShapePoint] = []
    resources: list[ResourceSpec] = []

    def validate(self, path: str, gates: FeatureGates) -> list[FieldError]:
        here = child(path, "shape")
        if not self.shape:
            return [required(here, "at least one point must be specified")]
        errors = []
        for index, point in enumerate(self.shape):
            before = self.shape[index - 1].utilization
            if index and point.utilization <= before:
                text = (
                    "utilization values must be sorted. "
                    f"Utilization[{index - 1}]=={before} >= Utilization[{index}]=={point.utilization}"
                )
                errors.append(invalid(f"{here}[{index}].utilization", point.utilization, text))
            if not 0 <= point.utilization <= 100:
                text = "not in valid range [0, 100]"
                errors.append(invalid(f"{here}[{index}].utilization", point.utilization, text))
            if not 0 <= point.score <= 10:
                errors.append(invalid(f"{here}[{index}].score", point.score, "not in valid range [0, 10]"))
        return errors


LEGACY_ARGS: Final[dict[str, ArgsType]] = {
    names.NODE_LABEL: NodeLabelArgs,
    names.SERVICE_AFFINITY: ServiceAffinityArgs,
    names.REQUESTED_TO_CAPACITY_RATIO: RequestedToCapacityRatioArgs,
}
"""The legacy plugins that take arguments."""
