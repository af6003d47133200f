"""Deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs, replication controllers.

Defaults of `pkg/apis/{apps,batch,core}/v1/defaults.go`, validation of `pkg/apis/{apps,batch}/validation`.
"""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.controllers.cron import CronError, Schedule
from skedge.controlplane.errors import FieldError, forbidden_field, invalid_value, required, unsupported
from skedge.controlplane.selectors import labels_from_object
from skedge.controlplane.strategies.affinityvalidation import validate_selector
from skedge.controlplane.strategies.base import Generational, setdefaults
from skedge.controlplane.strategies.podspec import default_pod_spec
from skedge.controlplane.strategies.podvalidation import validate_pod_spec

JSON = dict[str, Any]

_CRON_JOB_NAME = 52  # characters: those of its jobs get eleven more
_ZONE_IN_SCHEDULE = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
_JOB_NAME, _JOB_UID = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"


class Workload(Generational):
    """A kind with a pod template, a selector and a status that starts empty."""

    empty_status: JSON = {}

    def default(self, obj: JSON) -> None:
        spec = obj["spec"]
        template = spec.setdefault("template", {})
        template.setdefault("metadata", {})
        default_pod_spec(template.setdefault("spec", {}))
        self.default_spec(obj, spec)

    def default_spec(self, obj: JSON, spec: JSON) -> None:
        """Defaults of the kind beside those of its template."""

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        obj["status"] = dict(self.empty_status)

    def prepare_update(self, new: JSON, old: JSON, cluster: Cluster) -> None:
        new["status"] = old["status"]

    def validate(self, obj: JSON) -> list[FieldError]:
        spec = obj["spec"]
        errors: list[FieldError] = []
        replicas = spec.get("replicas")
        if replicas is not None and replicas < 0:
            errors.append(invalid_value("spec.replicas", replicas, "must be greater than or equal to 0"))
        ready = spec.get("minReadySeconds", 0)
        if ready < 0:
            errors.append(invalid_value("spec.minReadySeconds", ready, "must be greater than or equal to 0"))
        errors.extend(self.validate_selector(spec))
        errors.extend(self.validate_pods(spec["template"]["spec"]))
        if not errors and spec["template"]["spec"].get("restartPolicy") != "Always":
            policy = spec["template"]["spec"].get("restartPolicy")
            text = f'Unsupported value: "{policy}": supported values: "Always"'
            errors.append(FieldError("FieldValueNotSupported", text, "spec.template.spec.restartPolicy"))
        return errors

    def validate_pods(self, pod_spec: JSON) -> list[FieldError]:
        """Findings about the pods of the template."""
        return validate_pod_spec(pod_spec, "spec.template.spec")

    def validate_selector(self, spec: JSON) -> list[FieldError]:
        """Findings about the selector, and whether the template carries what it asks for."""
        selector = spec.get("selector")
        if selector is None:
            return [required("spec.selector")]
        errors = validate_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(invalid_value("spec.selector", selector, "empty selector is invalid for deployment"))
            return errors
        labels = spec["template"]["metadata"].get("labels") or {}
        parsed = labels_from_object(selector)
        if not errors and parsed is not None and not parsed.matches(labels):
            text = "`selector` does not match template `labels`"
            errors.append(invalid_value("spec.template.metadata.labels", labels, text))
        return errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors = self.validate(new)
        if new["spec"].get("selector") != old["spec"].get("selector"):
            errors.append(invalid_value("spec.selector", new["spec"].get("selector"), "field is immutable"))
        return errors


class Deployments(Workload):
    def default_spec(self, obj: JSON, spec: JSON) -> None:
        setdefaults(spec, replicas=1)
        strategy = spec.setdefault("strategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            setdefaults(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")
        setdefaults(spec, revisionHistoryLimit=10, progressDeadlineSeconds=600)


class ReplicaSets(Workload):
    empty_status = {"replicas": 0}

    def default_spec(self, obj: JSON, spec: JSON) -> None:
        setdefaults(spec, replicas=1)


class ReplicationControllers(ReplicaSets):
    def default_spec(self, obj: JSON, spec: JSON) -> None:
        labels = spec["template"]["metadata"].get("labels")
        if labels:
            spec.setdefault("selector", dict(labels))
            obj["metadata"].setdefault("labels", dict(labels))
        setdefaults(spec, replicas=1)

    def validate_selector(self, spec: JSON) -> list[FieldError]:
        return [] if spec.get("selector") else [required("spec.selector")]

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        return self.validate(new)


_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


class StatefulSets(Workload):
    empty_status = {"replicas": 0, "availableReplicas": 0}

    def validate_pods(self, pod_spec: JSON) -> list[FieldError]:
        """None (`ValidatePodTemplateSpecForStatefulSet`): mounts name volumes that only claim templates will give."""
        return []

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors = self.validate(new)
        now, before = ({k: v for k, v in obj["spec"].items() if k not in _CHANGEABLE} for obj in (new, old))
        if now != before:
            listed = ", ".join(f"'{key}'" for key in _CHANGEABLE[:-1])
            text = f"updates to statefulset spec for fields other than {listed} and '{_CHANGEABLE[-1]}' are forbidden"
            errors.append(forbidden_field("spec", text))
        return errors

    def default_spec(self, obj: JSON, spec: JSON) -> None:
        setdefaults(spec, podManagementPolicy="OrderedReady")
        strategy = spec.setdefault("updateStrategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            setdefaults(strategy.setdefault("rollingUpdate", {}), partition=0)
        policy = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        setdefaults(policy, whenDeleted="Retain", whenScaled="Retain")
        setdefaults(spec, replicas=1, revisionHistoryLimit=10)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("kind", "PersistentVolumeClaim")
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
            claim["status"] = {"phase": "Pending"}


class DaemonSets(Workload):
    empty_status = dict.fromkeys(
        ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
    )

    def default_spec(self, obj: JSON, spec: JSON) -> None:
        strategy = spec.setdefault("updateStrategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            setdefaults(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)
        setdefaults(spec, revisionHistoryLimit=10)


class Jobs(Workload):
    """A job picks its pods by a label the server makes from its UID."""

    def default_spec(self, obj: JSON, spec: JSON) -> None:
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        setdefaults(spec, parallelism=1, completionMode="NonIndexed", suspend=False, manualSelector=False)
        if "backoffLimitPerIndex" in spec:
            spec.setdefault("backoffLimit", 2147483647)
        setdefaults(spec, backoffLimit=6, podReplacementPolicy="TerminatingOrFailed")
        if spec.get("podFailurePolicy") is not None:
            spec["podReplacementPolicy"] = "Failed"

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        super().prepare_create(obj, cluster)
        spec = obj["spec"]
        if not spec.get("manualSelector"):
            name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
            labels = spec["template"]["metadata"].setdefault("labels", {})
            labels.update({"job-name": name, _JOB_NAME: name, "controller-uid": uid, _JOB_UID: uid})
            spec["selector"] = {"matchLabels": {_JOB_UID: uid}}

    def validate(self, obj: JSON) -> list[FieldError]:
        return _job_errors(obj["spec"], "spec")

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors = self.validate(new)
        for key in ("selector", "template", "completionMode"):
            was, now = old["spec"].get(key), new["spec"].get(key)
            if key == "template" and old["spec"].get("suspend") and not (old.get("status") or {}).get("startTime"):
                was, now = _unplaced(was), _unplaced(now)  # where pods go can be said until the job starts
            if was != now:
                errors.append(invalid_value(f"spec.{key}", new["spec"].get(key), "field is immutable"))
        return errors


def _unplaced(template: JSON) -> JSON:
    """A template without what says where its pods go, which queues for suspended jobs fill in."""
    meta = {key: value for key, value in template["metadata"].items() if key not in ("labels", "annotations")}
    placing = ("affinity", "nodeSelector", "tolerations", "schedulingGates")
    return {"metadata": meta, "spec": {key: value for key, value in template["spec"].items() if key not in placing}}


def _job_errors(spec: JSON, path: str) -> list[FieldError]:
    """Findings about the spec of a job, or of a template of jobs (`pkg/apis/batch/validation`)."""
    errors = _negative(spec, path, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    errors += _negative(spec, path, "ttlSecondsAfterFinished")
    errors += _indexed_errors(spec, path)
    policy = spec["template"]["spec"].get("restartPolicy")
    errors.extend(validate_pod_spec(spec["template"]["spec"], f"{path}.template.spec"))
    if policy not in ("OnFailure", "Never"):
        text = 'Required value: valid values: "OnFailure", "Never"'
        errors.append(FieldError("FieldValueRequired", text, f"{path}.template.spec.restartPolicy"))
    return errors


def _negative(spec: JSON, path: str, *keys: str) -> list[FieldError]:
    """A finding for each of these numbers that is below zero."""
    text = "must be greater than or equal to 0"
    return [invalid_value(f"{path}.{key}", spec[key], text) for key in keys if (spec.get(key) or 0) < 0]


def _indexed_errors(spec: JSON, path: str) -> list[FieldError]:
    """What only indexed jobs may have, and must have."""
    if spec.get("completionMode") == "Indexed":
        if spec.get("completions") is None:
            return [required(f"{path}.completions", "when completion mode is Indexed")]
        if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
            return [required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")]
        return []
    return [
        invalid_value(f"{path}.{key}", spec[key], "requires indexed completion mode")
        for key in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
        if spec.get(key) is not None
    ]


class CronJobs(Generational):
    def default(self, obj: JSON) -> None:
        spec = obj["spec"]
        setdefaults(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3)
        setdefaults(spec, failedJobsHistoryLimit=1)
        template = spec.setdefault("jobTemplate", {})
        pod = template.setdefault("spec", {}).setdefault("template", {})
        default_pod_spec(pod.setdefault("spec", {}))

    def prepare_create(self, obj: JSON, cluster: Cluster) -> None:
        obj["status"] = {}

    def validate(self, obj: JSON) -> list[FieldError]:
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        errors: list[FieldError] = []
        if len(name) > _CRON_JOB_NAME:
            errors.append(invalid_value("metadata.name", name, f"must be no more than {_CRON_JOB_NAME} characters"))
        errors += _schedule_errors(spec)
        policies = ["Allow", "Forbid", "Replace"]
        if spec["concurrencyPolicy"] not in policies:
            errors.append(unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], policies))
        errors += _job_errors(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
        limits = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
        return errors + _negative(spec, "spec", *limits)


def _schedule_errors(spec: JSON) -> list[FieldError]:
    text, zone = spec.get("schedule", ""), spec.get("timeZone")
    if not text:
        return [required("spec.schedule")]
    if "TZ" in text:
        why = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        return [invalid_value("spec.schedule", text, why if zone else _ZONE_IN_SCHEDULE)]
    errors: list[FieldError] = []
    try:
        Schedule(text)
    except CronError as error:
        errors.append(invalid_value("spec.schedule", text, str(error)))
    if zone is not None and not zone:
        errors.append(invalid_value("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
    elif zone is not None and zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid_value("spec.timeZone", zone, why))
    elif zone is not None:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            errors.append(invalid_value("spec.timeZone", zone, f"unknown time zone {zone}"))
    return errors
