"""Deployments, replica sets, stateful sets, daemon sets, jobs, cron jobs, replication controllers.

Defaults of `pkg/apis/{apps,batch,core}/v1/defaults.go`, validation of `pkg/apis/{apps,batch}/validation`.
"""

from __future__ import annotations

from typing import Any

from skedge.controlplane.cluster import Cluster
from skedge.controlplane.errors import FieldError, invalid_value, required
from skedge.controlplane.selectors import labels_from_object
from skedge.controlplane.strategies.affinityvalidation import validate_selector
from skedge.controlplane.strategies.base import Generational, setdefaults
from skedge.controlplane.strategies.podspec import default_pod_spec
from skedge.controlplane.strategies.podvalidation import validate_pod_spec

JSON = dict[str, Any]

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


class StatefulSets(Workload):
    empty_status = {"replicas": 0, "availableReplicas": 0}

    def validate_pods(self, pod_spec: JSON) -> list[FieldError]:
        """None (`ValidatePodTemplateSpecForStatefulSet`): mounts name volumes that only claim templates will give."""
        return []

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
        spec = obj["spec"]
        errors: list[FieldError] = []
        for key in ("parallelism", "completions", "backoffLimit"):
            value = spec.get(key)
            if value is not None and value < 0:
                errors.append(invalid_value(f"spec.{key}", value, "must be greater than or equal to 0"))
        errors += _indexed_errors(spec)
        policy = spec["template"]["spec"].get("restartPolicy")
        errors.extend(validate_pod_spec(spec["template"]["spec"], "spec.template.spec"))
        if policy not in ("OnFailure", "Never"):
            text = 'Required value: valid values: "OnFailure", "Never"'
            errors.append(FieldError("FieldValueRequired", text, "spec.template.spec.restartPolicy"))
        return errors

    def validate_update(self, new: JSON, old: JSON) -> list[FieldError]:
        errors = self.validate(new)
        for key in ("selector", "completionMode"):
            if new["spec"].get(key) != old["spec"].get(key):
                errors.append(invalid_value(f"spec.{key}", new["spec"].get(key), "field is immutable"))
        return errors


def _indexed_errors(spec: JSON) -> list[FieldError]:
    """What only indexed jobs may have, and must have (`pkg/apis/batch/validation`)."""
    if spec["completionMode"] == "Indexed":
        if spec.get("completions") is None:
            return [required("spec.completions", "when completion mode is Indexed")]
        if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
            return [required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")]
        return []
    return [
        invalid_value(f"spec.{key}", spec[key], "requires indexed completion mode")
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
        if not obj["spec"].get("schedule"):
            return [required("spec.schedule")]
        return []
