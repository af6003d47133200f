"""In-tree volumes as the CSI drivers see them that took their place. Upstream: `k8s.io/csi-translation-lib`.

Only what placing pods needs: the driver, the volume's handle, and the node affinity in the driver's own topology.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from skedge.api.core import Volume
from skedge.api.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from skedge.api.storage import PersistentVolume

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
ZONE_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
ZONE_SEPARATOR: Final = "__"
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of a CSINode: the in-tree plugins that its node leaves to CSI drivers, separated by commas."""

_AWS_VOLUME = re.compile(r"vol-[^/]*")


class InTree(NamedTuple):
    """An in-tree volume plugin: its driver, the field of its sources, the driver's zone label. `switchable`: a node
    says of itself whether it has migrated; the others never count as migrated."""

    name: str
    driver: str
    field: str
    zone_key: str = ""
    switchable: bool = True


IN_TREE: Final[dict[str, InTree]] = {
    plugin.name: plugin
    for plugin in (
        InTree("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "aws_elastic_block_store", "topology.ebs.csi.aws.com/zone"),
        InTree("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gce_persistent_disk", "topology.gke.io/zone"),
        InTree("kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk", "topology.disk.csi.azure.com/zone"),
        InTree("kubernetes.io/azure-file", "file.csi.azure.com", "azure_file", switchable=False),
        InTree("kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder", "topology.cinder.csi.openstack.org/zone"),
        InTree("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphere_volume", switchable=False),
        InTree("kubernetes.io/portworx-volume", "pxd.portworx.com", "portworx_volume"),
    )
}
"""By name."""


def in_tree(source: Volume | Any) -> InTree | None:
    """The in-tree plugin of a pod's volume, or of a persistent volume's spec, that a CSI driver can replace."""
    for plugin in IN_TREE.values():
        if getattr(source, plugin.field) is not None:
            return plugin
    return None


def inline_handle(plugin: InTree, volume: Volume) -> str | None:
    """The driver's handle of a pod's own in-tree volume; None when its id is malformed."""
    match plugin.field:
        case "aws_elastic_block_store":
            return _ebs_id(getattr(volume.aws_elastic_block_store, "volume_id", ""))
        case "gce_persistent_disk":
            return _gce_handle((), getattr(volume.gce_persistent_disk, "pd_name", ""))
    return _plain_handle(plugin, volume)


def volume_handle(plugin: InTree, pv: PersistentVolume) -> str | None:
    """The driver's handle of an in-tree persistent volume; None when its id or zones are malformed."""
    match plugin.field:
        case "aws_elastic_block_store":
            return _ebs_id(getattr(pv.spec.aws_elastic_block_store, "volume_id", ""))
        case "gce_persistent_disk":
            labels = pv.metadata.labels or {}
            zones = labels.get(BETA_ZONE) or labels.get(ZONE) or ""
            name = getattr(pv.spec.gce_persistent_disk, "pd_name", "")
            return _gce_handle(zones.split(ZONE_SEPARATOR) if zones else (), name)
    return _plain_handle(plugin, pv.spec)


def _plain_handle(plugin: InTree, holder: Any) -> str | None:
    source = getattr(holder, plugin.field)
    found: str = source.disk_uri if plugin.field == "azure_disk" else getattr(source, "volume_id", "")
    return found


def _ebs_id(text: str) -> str | None:
    """`vol-1` of `aws://zone/vol-1`; an id without the scheme is taken as it is."""
    if not text.startswith("aws://"):
        return text
    try:
        found = urlsplit(text).path.strip("/")
    except ValueError:
        return None
    return found if _AWS_VOLUME.fullmatch(found) else None


def _gce_handle(zones: Sequence[str], name: str) -> str | None:
    if len(zones) > 1:
        parts = [zone.split("-") for zone in zones]
        regions = {"-".join(part[:2]) for part in parts}
        if len(regions) != 1 or any(len(part) != 3 for part in parts):
            return None
        return f"projects/UNSPECIFIED/regions/{regions.pop()}/disks/{name}"
    return f"projects/UNSPECIFIED/zones/{zones[0] if zones else 'UNSPECIFIED'}/disks/{name}"


def translated_affinity(plugin: InTree, pv: PersistentVolume) -> NodeSelector | None:
    """The volume's required node affinity where its node has migrated the plugin: zones go by the driver's label.

    Zones that the affinity does not name are taken from the volume's labels.
    """
    affinity = pv.spec.node_affinity
    required = affinity.required if affinity is not None else None
    if not plugin.zone_key:
        return required
    terms = (required.node_selector_terms or ()) if required is not None else ()
    labels = pv.metadata.labels or {}
    zone, region = _topology_labels(terms, labels)
    renamed = {}
    if _values(terms, zone):
        renamed[zone] = plugin.zone_key
    elif zone in labels:
        zones = sorted({text.strip() for text in labels[zone].split(ZONE_SEPARATOR)} - {""})
        if zones:
            extra = NodeSelectorRequirement(plugin.zone_key, "In", tuple(zones))
            terms = tuple(
                NodeSelectorTerm((*(term.match_expressions or ()), extra), term.match_fields)
                for term in terms or (NodeSelectorTerm(),)
            )
    if region == BETA_REGION and _values(terms, region):
        renamed[region] = REGION
    if renamed:
        terms = tuple(NodeSelectorTerm(_rename(term, renamed), term.match_fields) for term in terms)
    return NodeSelector(tuple(terms)) if terms or required is not None else None


def _topology_labels(terms: Sequence[NodeSelectorTerm], labels: dict[str, str]) -> tuple[str, str]:
    """The labels that the volume uses for zone and region: the affinity decides, then its own labels."""
    keys = {each.key for term in terms for each in term.match_expressions or ()}
    if ZONE not in keys and (BETA_ZONE in keys or (ZONE not in labels and BETA_ZONE in labels)):
        return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: Sequence[NodeSelectorTerm], key: str) -> set[str]:
    return {
        value
        for term in terms
        for each in term.match_expressions or ()
        if each.key == key
        for value in each.values or ()
    }


def _rename(term: NodeSelectorTerm, names: dict[str, str]) -> tuple[NodeSelectorRequirement, ...]:
    return tuple(
        NodeSelectorRequirement(names.get(each.key, each.key), each.operator, each.values)
        for each in term.match_expressions or ()
    )
