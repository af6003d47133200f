"""The metrics of a process, as its flags and gates say, and what of a scheduler is read at every scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml

from skedge.client.hooks import ClientHooks, LeaderHooks
from skedge.config.fields import ConfigError, aggregate, invalid
from skedge.config.gates import FeatureGates
from skedge.config.options import Options, check_versions
from skedge.config.options_validation import label_key_problems
from skedge.names import KUBERNETES_VERSION
from skedge.scheduler.scheduler import Scheduler
from skedge.serving.pod_resources import PodUsage
from skedge.snapshot.pods import PlacedPod, PodInfo
from skedge.telemetry.client_metrics import ClientMetrics, LeaderMetrics
from skedge.telemetry.hooks import SchedulerMetrics
from skedge.telemetry.metrics import Metrics
from skedge.telemetry.process import describe_build

AnyPod = PodInfo | PlacedPod


class CountedClient(ClientMetrics, ClientHooks):
    """The client's hooks, counted."""


class CountedElection(LeaderMetrics, LeaderHooks):
    """The election's hooks, counted."""


def build_metrics(options: Options, gates: FeatureGates, read_file: Callable[[str], bytes]) -> Metrics:
    """The metrics that the command line asks for. Raises ConfigError for a manifest that cannot be used."""
    metrics = Metrics(
        KUBERNETES_VERSION,
        [name for name, _, on in gates.items() if on],
        options.disabled_metrics,
        options.show_hidden_metrics_for_version,
        allowed_labels(options, read_file),
    )
    emulated = check_versions(options)
    oldest = [text.rpartition("=")[2].strip().removeprefix("v") for text in options.min_compatibility_version]
    describe_build(
        metrics,
        features={(name, stage): on for name, stage, on in gates.items()},
        emulation=f"1.{emulated}",
        min_compat=oldest[-1] if oldest else f"1.{emulated - 1}",
    )
    return metrics


def allowed_labels(options: Options, read_file: Callable[[str], bytes]) -> dict[tuple[str, str], frozenset[str]]:
    """(metric, label) -> the values to show, of `--allow-metric-labels` or of the manifest."""
    mapping = options.allow_metric_labels
    path = options.allow_metric_labels_manifest
    if path:
        mapping = _manifest(path, read_file)
    allowed = {}
    for key, values in mapping.items():
        metric, _, label = key.partition(",")
        allowed[metric, label] = frozenset(value.strip() for value in values.split(","))
    return allowed


def _manifest(path: str, read_file: Callable[[str], bytes]) -> dict[str, str]:
    field = "metrics.allowListMappingManifest"

    def unusable(detail: str) -> ConfigError:
        return ConfigError(str(invalid(field, path, detail)))

    try:
        found = yaml.safe_load(read_file(path))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise unusable(f"failed to read allow list manifest: open {path}: {reason}") from None
    except yaml.YAMLError as error:
        raise unusable(f"failed to parse allow list manifest: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise unusable("failed to parse allow list manifest: expected a mapping of texts, metric,label: v1,v2")
    problems = list(label_key_problems(found, field))
    if problems:
        raise ConfigError(aggregate(problems))
    return found


def read_scheduler(metrics: Metrics, counted: SchedulerMetrics, scheduler: Scheduler, cache_limit: int) -> None:
    """Have queue, cache and dispatcher asked at every scrape."""
    queue, cache, dispatcher = scheduler.queue, scheduler.cache, scheduler.dispatcher
    counted.read_pending_pods(lambda: _keyed(queue.pending_counts()._asdict()))
    counted.read_inflight_events(lambda: _keyed(queue.in_flight_counts()))
    counted.read_cache_size(lambda: _keyed(cache.statistics()))
    profiles = scheduler.profiles.values()
    counted.read_fragment_cache(lambda: float(sum(each.cache_bytes for each in profiles)), cache_limit)
    counted.read_bindings_in_flight(lambda: float(dispatcher.unfinished_bindings), dispatcher.limit)
    metrics.gauge("scheduler_goroutines").read_from(
        # Those of nodes run on the loop, with nothing beside them. Preemptions are told, not read.
        lambda: _keyed({"binding": dispatcher.unfinished_bindings, "Filter": 0, "Score": 0, "InterPodAffinity": 0})
    )


def _keyed(numbers: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(name,): float(number) for name, number in numbers.items()}


def pod_usage(pods: Iterable[AnyPod]) -> Iterator[PodUsage]:
    """What `/metrics/resources` shows of the informer's pods."""
    for pod in pods:
        yield PodUsage(
            pod.namespace,
            pod.name,
            pod.node_name,
            pod.scheduler_name,
            pod.priority,
            dict(pod.node_requests),
            dict(pod.limits),
        )


def flag_values(options: Options) -> dict[str, Any]:
    """Every flag and its text, for `/flagz`."""
    return dict(options.lines())
