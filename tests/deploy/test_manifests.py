"""The plain manifests by themselves: configurations, names, what the container may do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from deploy.support import MANIFESTS, ROOT, SETS, loaded, manifest
from skedge.config import options_validation
from skedge.config.options import parse_options

PROFILES = {
    "default": "LeastAllocated",
    "binpack": "MostAllocated",
    "binpack-ratio": "RequestedToCapacityRatio",
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("profile", PROFILES)
def test_configurations(name: str, profile: str) -> None:
    data = manifest(name)["ConfigMap", SETS[name]]["data"]
    assert set(data) == {f"{each}.yaml" for each in PROFILES}
    config = loaded(data[f"{profile}.yaml"])
    second = name == "second-scheduler"
    assert [each.scheduler_name for each in config.profiles] == ["skedge" if second else "default-scheduler"]
    assert config.leader_election.leader_elect
    assert config.leader_election.resource_name == ("skedge" if second else "kube-scheduler")
    args: Any = config.profiles[0].args_of("NodeResourcesFit")
    strategy = args.scoring_strategy
    assert strategy.type == PROFILES[profile]
    assert {each.name: each.weight for each in strategy.resources} == {"cpu": 1, "memory": 1}


@pytest.mark.parametrize("name", SETS)
def test_everything_is_found_by_its_labels(name: str) -> None:
    found, own = manifest(name), SETS[name]
    labels = {"app.kubernetes.io/name": "skedge", "app.kubernetes.io/instance": own}
    assert all(each["metadata"]["labels"] == labels for each in found.values())
    deployment = found["Deployment", own]["spec"]
    assert deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"] == labels
    assert deployment["template"]["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] == labels
    assert found["PodDisruptionBudget", own]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service", own]["spec"]["selector"] == labels
    assert deployment["replicas"] > found["PodDisruptionBudget", own]["spec"]["maxUnavailable"]


def test_service_monitor_scrapes_the_service() -> None:
    service = manifest("second-scheduler")["Service", "skedge"]
    monitor = manifest("servicemonitor")["ServiceMonitor", "skedge"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    assert monitor["spec"]["namespaceSelector"]["matchNames"] == [service["metadata"]["namespace"]]
    endpoint = monitor["spec"]["endpoints"][0]
    assert (endpoint["port"], endpoint["scheme"], endpoint["path"]) == ("https", "https", "/metrics")
    assert service["spec"]["ports"][0]["name"] == "https"


def pods() -> dict[str, Any]:
    found = {name: manifest(name)["Deployment", own]["spec"]["template"]["spec"] for name, own in SETS.items()}
    return found | {"static-pod": manifest("static-pod")["Pod", "kube-scheduler"]["spec"]}


@pytest.mark.parametrize("name", [*SETS, "static-pod"])
def test_containers_may_do_little(name: str) -> None:
    spec = pods()[name]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    if name != "static-pod":
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] > 0


@pytest.mark.parametrize("name", [*SETS, "static-pod"])
def test_command_lines_are_understood(name: str) -> None:
    (container,) = pods()[name]["containers"]
    assert container["command"] == ["kube-scheduler"]
    environment = {each["name"]: each["value"] for each in container.get("env", [])}
    words = [word.replace("$(PROFILE)", environment.get("PROFILE", "")) for word in container["args"]]
    options = parse_options(words)
    assert options_validation.validate(options) == []
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pods()[name]["volumes"]}
    if options.config:
        folder, _, file = options.config.rpartition("/")
        source = volumes[mounted[folder]]["configMap"]["name"]
        assert file in manifest(name)["ConfigMap", source]["data"]
    else:
        assert volumes[mounted[options.kubeconfig]]["hostPath"]["path"] == options.kubeconfig


@pytest.mark.parametrize("name", [*SETS, "static-pod"])
def test_probes_ask_what_is_served(name: str) -> None:
    (container,) = pods()[name]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe, path in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        asked = container[probe]["httpGet"]
        assert (asked["path"], asked["scheme"], ports[asked["port"]]) == (path, "HTTPS", 10259)


def test_sets_differ_in_names_only() -> None:
    """One text, two sets: but for the names, and where the cluster's own scheduler runs."""
    second, cluster = ((MANIFESTS / f"{name}.yaml").read_text() for name in SETS)
    renamed = cluster.replace("skedge-scheduler", "skedge").replace("default-scheduler", "skedge")
    renamed = renamed.replace("[kube-scheduler]\n    verbs", "[skedge]\n    verbs")
    renamed = renamed.replace("resourceName: kube-scheduler", "resourceName: skedge")

    def body(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("#")]

    extra = [line for line in body(renamed) if line not in body(second)]
    assert [line.strip() for line in extra] == [
        "nodeSelector:",
        'node-role.kubernetes.io/control-plane: ""',
        "tolerations:",
        "- key: node-role.kubernetes.io/control-plane",
        "effect: NoSchedule",
    ]
    assert [line for line in body(renamed) if line not in extra] == body(second)


def test_the_page_names_what_is_there() -> None:
    text = (ROOT / "docs" / "deployment.md").read_text()
    paths = set(re.findall(r"deploy/[\w./-]*\w", text))
    assert paths
    assert {path for path in paths if not (ROOT / path).exists()} == set()
    profiles = set(re.findall(r"PROFILE=([\w-]+)", text + (MANIFESTS / "second-scheduler.yaml").read_text()))
    assert profiles <= set(PROFILES)
