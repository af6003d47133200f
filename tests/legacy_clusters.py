"""Clusters whose profile a legacy Policy made."""

from typing import Any

from skedge import names
from skedge.config.defaults import default_configuration
from skedge.config.gates import FeatureGates
from skedge.config.legacy.apply import use_policy
from skedge.config.legacy.policy import decode_policy
from skedge.config.plugin_args import PLUGIN_ARGS
from skedge.config.types import Plugin, PluginConfig
from skedge.profiles.search import Search
from skedge.simulate.cluster import Cluster
from skedge.snapshot.pods import PodInfo
from skedge.testing.builders import NodeBuilder, PodBuilder


def policy_cluster(policy: str) -> Cluster:
    """A cluster with the profile of a Policy (its YAML without kind and version)."""
    config = default_configuration()
    decoded = decode_policy(f"kind: Policy\napiVersion: v1\n{policy}")
    use_policy(config, decoded, args_types=PLUGIN_ARGS, gates=FeatureGates())
    return Cluster(config)


def plugin_cluster(plugin: str, args: Any = None) -> Cluster:
    """A cluster with a profile in which this legacy plugin alone filters and scores."""
    config = default_configuration()
    config.legacy_plugins = True
    profile = config.profiles[0]
    sets = profile.plugins
    infrastructure = (names.PRIORITY_SORT, names.DEFAULT_BINDER)
    sets.multi_point.enabled = [Plugin(name) for name in (*infrastructure, plugin)]
    profile.plugin_config = [] if args is None else [PluginConfig(plugin, args)]
    return Cluster(config)


def fill(cluster: Cluster, nodes: list[NodeBuilder], pods: list[PodBuilder] = (), **objects: list[Any]) -> None:  # type: ignore[assignment]
    """Adds nodes, placed pods, and JSON objects by kind."""
    for node in nodes:
        cluster.add_node(node.obj())
    for pod in pods:
        cluster.add_pod(pod.obj())
    for kind, listed in objects.items():
        for obj in listed:
            cluster.put(kind, obj)


def search(cluster: Cluster, pod: PodBuilder | PodInfo) -> Search:
    info = pod.info() if isinstance(pod, PodBuilder) else pod
    profile = cluster.profile_of(info)
    assert profile is not None
    found = Search(profile, info, cluster.nominator)
    found.run()
    return found


def feasible(cluster: Cluster, pod: PodBuilder | PodInfo) -> list[str]:
    found = search(cluster, pod)
    return sorted(found.table.names[row] for row in found.rows.tolist())


def scores(cluster: Cluster, pod: PodBuilder | PodInfo, plugin: str) -> dict[str, int]:
    """Weighted scores of the feasible nodes by one plugin."""
    found = search(cluster, pod)
    parts = found.scores_by_plugin().get(plugin)
    if parts is None:
        return {}
    return {found.table.names[row]: int(part) for row, part in zip(found.rows.tolist(), parts, strict=True)}


def service(name: str, namespace: str = "default", **selector: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
