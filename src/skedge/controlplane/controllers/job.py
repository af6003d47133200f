"""Jobs: pods that run to an end, so many times, so many at once; each counted exactly once.

    pod ends ──▶ UID into status.uncountedTerminatedPods ──▶ tracking finalizer off the pod ──▶ into the counters

A pod carries a finalizer until it is counted, so that none can vanish before. Upstream:
`pkg/controller/job/{job_controller,indexed_job_utils,tracking_utils}.go`.
"""

from __future__ import annotations

from typing import Any

from skedge.client.errors import NotFound
from skedge.client.rest import STRATEGIC_MERGE_PATCH
from skedge.controlplane.controllers.base import Context
from skedge.controlplane.controllers.job_indexes import INDEX, index_of, parse_indexes, write_indexes
from skedge.controlplane.controllers.job_per_index import IndexFailures, is_failed, success_message
from skedge.controlplane.controllers.job_policy import action_of
from skedge.controlplane.controllers.kinds import JOB, POD
from skedge.controlplane.controllers.objects import Pod, epoch, set_condition
from skedge.controlplane.controllers.owning import BURST, PodOwner, selector_of, together

JSON = dict[str, Any]

FINALIZER = "batch.kubernetes.io/job-tracking"
_TRACKED = "tracked-by-job"
_FAILURE_BACKOFF, _MAX_BACKOFF = 10.0, 600.0
_AT_ONCE = 64


class Jobs(PodOwner):
    name = "job"
    kind = JOB

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods.add_indexer(_TRACKED, self._tracked)

    def _tracked(self, pod: Pod) -> tuple[str, ...]:
        key = self.owner_key(pod.metadata) if FINALIZER in (pod.metadata.finalizers or ()) else None
        return (key,) if key is not None else ()

    async def reconcile(self, key: str) -> float | None:
        if key not in self.objects.store:
            await self.untrack(self.pods.store.by_index(_TRACKED, key))
        return await super().reconcile(key)

    async def sync(self, key: str, obj: JSON) -> float | None:
        ended = finish_of(obj)
        if ended is not None:
            await self.untrack(self.pods.store.by_index(_TRACKED, key))
            return await self._expire(obj, ended)
        if "deletionTimestamp" in obj["metadata"]:
            await self.untrack(self.pods.store.by_index(_TRACKED, key))
            return None
        if obj["spec"].get("managedBy", "kubernetes.io/job-controller") != "kubernetes.io/job-controller":
            return None
        pods = await self.claimed(obj, selector_of(obj))
        return await _Round(self, key, obj, pods).work()

    async def _expire(self, obj: JSON, ended: JSON) -> float | None:
        """Delete a finished job after its time (`pkg/controller/ttlafterfinished`)."""
        ttl = obj["spec"].get("ttlSecondsAfterFinished")
        if ttl is None or "deletionTimestamp" in obj["metadata"]:
            return None
        left = float(epoch(ended.get("lastTransitionTime")) + ttl - self.clock.now())
        if left > 0:
            return left
        meta = obj["metadata"]
        preconditions = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
        await self.client.request("DELETE", JOB.of(obj), body={**options, "preconditions": preconditions})
        return None

    async def untrack(self, pods: list[Pod]) -> None:
        """Take the tracking finalizer off pods that are counted, or need not be."""

        async def untrack(pod: Pod) -> None:
            meta = pod.metadata
            body = {"metadata": {"uid": meta.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
            path = POD.path(meta.namespace, meta.name)
            try:
                await self.client.request("PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH)
            except NotFound:
                pass

        for start in range(0, len(pods), _AT_ONCE):
            await together(map(untrack, pods[start : start + _AT_ONCE]))


class _Round:
    """One look at one job."""

    def __init__(self, jobs: Jobs, key: str, obj: JSON, pods: list[Pod]) -> None:
        self._jobs, self._key, self._obj, self._pods = jobs, key, obj, pods
        self._spec = obj["spec"]
        self._status: JSON = dict(obj.get("status") or {})
        self._indexed = self._spec.get("completionMode") == "Indexed"
        self._replace_failed_only = self._spec.get("podReplacementPolicy") == "Failed"
        self._now, self._timestamp = jobs.clock.now(), jobs.context.timestamp()
        self._completed = parse_indexes(self._status.get("completedIndexes", ""))
        succeeded = (index_of(pod) for pod in pods if pod.status.phase == "Succeeded")
        completed = self._completed | {index for index in succeeded if index is not None}
        self._failures = IndexFailures(self._spec, self._status, pods, completed)

    async def work(self) -> float | None:
        spec, status = self._spec, self._status
        suspended = spec.get("suspend", False)
        if not suspended and not status.get("startTime"):
            status["startTime"] = self._timestamp
        self._is_over = self._has("FailureTarget") is not None or self._has("SuccessCriteriaMet") is not None
        counted = self._count()
        active = [pod for pod in self._pods if pod.is_active]
        verdict = self._verdict(active)
        again: float | None = None
        if verdict is not None:
            type, reason, message = verdict
            self._condition("FailureTarget" if type == "Failed" else "SuccessCriteriaMet", reason, message)
            if active:
                await self._jobs.delete_pods(self._key, self._obj, active)
            elif not counted and not any(status["uncountedTerminatedPods"].values()):
                self._condition(type, reason, message)
                if type == "Failed":
                    self._jobs.event(self._obj, JOB, "Warning", reason, message)
                else:
                    status["completionTime"] = self._timestamp
                    self._jobs.event(self._obj, JOB, "Normal", "Completed", "Job completed")
        elif suspended:
            self._suspend(True)
            status.pop("startTime", None)
            if active:
                await self._jobs.delete_pods(self._key, self._obj, active)
        else:
            self._suspend(False)
            again = self._deadline()
            if self._jobs.expectations.met(self._key):
                wait = await self._manage(active)
                again = wait if again is None or (wait is not None and wait < again) else again
        self._figures(active)
        await self._write()
        return again

    # --- counting

    def _count(self) -> list[Pod]:
        """Move what is counted into the counters, and what has ended into the list of uncounted; the pods to let go."""
        spec, status = self._spec, self._status
        noted = status.get("uncountedTerminatedPods") or {}
        uncounted = {name: list(noted.get(name) or ()) for name in ("succeeded", "failed")}
        tracked = {pod.metadata.uid: pod for pod in self._pods if FINALIZER in (pod.metadata.finalizers or ())}
        for name, uids in uncounted.items():
            done = [uid for uid in uids if uid not in tracked]
            if done and not (self._indexed and name == "succeeded"):
                status[name] = status.get(name, 0) + len(done)
            uncounted[name] = [uid for uid in uids if uid in tracked]
        known = {uid for uids in uncounted.values() for uid in uids}
        ended = [pod for uid, pod in tracked.items() if uid not in known and (pod.is_finished or is_failed(pod, spec))]
        excused: list[Pod] = []
        for pod in ended[:BURST]:
            name = "succeeded" if pod.status.phase == "Succeeded" else "failed"
            if name == "failed" and not self._is_over and self._failures.is_kept(pod):
                continue
            if name == "failed" and self._excused(pod):
                excused.append(pod)
                continue
            uncounted[name].append(pod.metadata.uid)
            index = index_of(pod)
            if name == "succeeded" and index is not None:
                self._completed.add(index)
        if self._indexed:
            status["completedIndexes"] = write_indexes(self._completed)
            status["succeeded"] = len(self._completed)
            if self._failures.limit is not None:
                status["failedIndexes"] = write_indexes(self._failures.failed) or None
        status["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
        self._letting_go = [*excused, *(tracked[uid] for uids in uncounted.values() for uid in uids)]
        return ended

    def _excused(self, pod: Pod) -> bool:
        """Whether the policy lets a failure pass; it may also end the job."""
        action = action_of(self._spec, pod)
        if action is not None and action.name == "FailJob":
            self._condition("FailureTarget", "PodFailurePolicy", action.message)
        return action is not None and action.name == "Ignore"

    def _total(self, name: str) -> int:
        """Pods that ended this way, whether counted yet or not."""
        counted = int(self._status.get(name, 0))
        if self._indexed and name == "succeeded":
            return counted  # these are counted by their indexes
        return counted + len(self._status["uncountedTerminatedPods"].get(name, ()))

    async def _write(self) -> None:
        """The status first, then the finalizers of the pods it accounts for."""
        status = {name: value for name, value in self._status.items() if value not in (None, 0, "")}
        for name in ("ready", "terminating"):
            status[name] = self._status[name]
        obj = self._obj
        if (obj.get("status") or {}) != status:
            body = {**obj, "status": status}
            await self._jobs.client.request("PUT", JOB.of(obj, "status"), body=body)
        await self._jobs.untrack(self._letting_go)

    def _figures(self, active: list[Pod]) -> None:
        self._status["active"] = len(active)
        self._status["ready"] = sum(pod.is_ready for pod in active)
        going = (pod.metadata.deletion_timestamp is not None and not pod.is_finished for pod in self._pods)
        self._status["terminating"] = sum(going)

    # --- what comes of it

    def _verdict(self, active: list[Pod]) -> tuple[str, str, str] | None:
        """Whether the job has ended: condition, reason and message."""
        spec = self._spec
        for type in ("FailureTarget", "SuccessCriteriaMet"):
            earlier = self._has(type)
            if earlier is not None:
                end = "Failed" if type == "FailureTarget" else "Complete"
                return end, earlier.get("reason", ""), earlier.get("message", "")
        limit, failed = spec.get("backoffLimit", 6), self._total("failed")
        restarts = sum(each.restart_count for pod in active for each in pod.status.container_statuses or ())
        on_failure = spec["template"]["spec"].get("restartPolicy") == "OnFailure"
        if failed > limit or (on_failure and restarts and restarts >= limit):
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        left = self._deadline()
        if left is not None and left <= 0:
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        if self._indexed:
            enough = self._failures.verdict(len(self._completed))
            if enough is not None:
                return "Failed", *enough
            matched = success_message(spec, self._completed)
            if matched:
                return "Complete", "SuccessPolicy", matched
        completions, succeeded = spec.get("completions"), self._total("succeeded")
        done = succeeded >= completions if completions is not None else succeeded > 0 and not active
        if done:
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _deadline(self) -> float | None:
        """Seconds until `activeDeadlineSeconds` are over."""
        limit, start = self._spec.get("activeDeadlineSeconds"), self._status.get("startTime")
        if limit is None or not start or self._spec.get("suspend"):
            return None
        return float(epoch(start) + limit - self._now)

    async def _manage(self, active: list[Pod]) -> float | None:
        """Have as many pods as should run; the seconds to wait where failures call for a pause."""
        spec, succeeded = self._spec, self._total("succeeded")
        parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
        if completions is None:
            wanted = len(active) if succeeded else parallelism
        else:
            wanted = min(parallelism, completions - succeeded - len(self._failures.failed))
        if len(active) > wanted:
            surplus = sorted(active, key=lambda pod: (pod.is_ready, bool(pod.spec.node_name)))
            await self._jobs.delete_pods(self._key, self._obj, surplus[: len(active) - wanted])
            return None
        going = [pod for pod in self._pods if not pod.is_finished and pod.metadata.deletion_timestamp is not None]
        missing = min(wanted - len(active) - (len(going) if self._replace_failed_only else 0), BURST)
        if missing <= 0:
            return None
        if self._indexed:
            bodies, pause = self._indexed_bodies(active, missing)
        else:
            pause = self._pause()
            body = self._jobs.pod_body(self._obj, spec["template"], change={"finalizers": [FINALIZER]})
            bodies = [body] * missing if pause <= 0 else []
        if bodies:
            await self._jobs.create_pods(self._key, self._obj, bodies)
        return pause if pause > 0 else None

    def _pause(self) -> float:
        """Seconds to wait after the last failure: 10 s, doubling with each one since the last success."""
        ends = sorted((ended_at(pod), pod.status.phase == "Failed") for pod in self._pods if pod.is_finished)
        failures = 0
        for _, failed in reversed(ends):
            if not failed:
                break
            failures += 1
        if not failures:
            return 0.0
        return ends[-1][0] + _backoff(failures) - self._now

    def _pause_of(self, index: int) -> float:
        """The same for an index whose failures are counted apart."""
        failures, last = self._failures.times(index)
        return ended_at(last) + _backoff(failures) - self._now if last is not None else 0.0

    def _indexed_bodies(self, active: list[Pod], count: int) -> tuple[list[bytes], float]:
        """Pods for the first indexes that want one, and the seconds until the next index may be tried again."""
        apart = self._failures.limit is not None
        pause = 0.0 if apart else self._pause()
        if pause > 0:
            return [], pause
        taken = self._completed | self._failures.failed
        taken |= {index for pod in active if (index := index_of(pod)) is not None}
        bodies: list[bytes] = []
        for index in range(self._spec["completions"]):
            if len(bodies) == count:
                break
            if index in taken:
                continue
            wait = self._pause_of(index) if apart else 0.0
            if wait > 0:
                pause = wait if pause <= 0 else min(wait, pause)
            else:
                bodies.append(self._indexed_body(self._spec["template"], index))
        return bodies, pause

    def _indexed_body(self, template: JSON, index: int) -> bytes:
        name = self._obj["metadata"]["name"]
        field = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
        variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": field}
        spec: JSON = {"hostname": f"{name}-{index}"}
        for containers in ("initContainers", "containers"):
            if template["spec"].get(containers):
                spec[containers] = [
                    {**each, "env": [*(each.get("env") or ()), variable]} for each in template["spec"][containers]
                ]
        mark = {INDEX: str(index)}
        annotations = {**mark, **self._failures.annotations(index)}
        change = {"finalizers": [FINALIZER], "labels": mark, "annotations": annotations, "spec": spec}
        return self._jobs.pod_body(self._obj, template, change=change, prefix=f"{name[:40]}-{index}-")

    # --- conditions

    def _has(self, type: str) -> JSON | None:
        conditions = self._status.get("conditions") or ()
        return next((each for each in conditions if each["type"] == type and each["status"] == "True"), None)

    def _condition(self, type: str, reason: str, message: str, status: str = "True") -> None:
        condition = {"type": type, "status": status, "reason": reason, "message": message}
        condition["lastProbeTime"] = self._timestamp
        present = self._status.get("conditions") or []
        if any((each["type"], each["status"]) == (type, status) for each in present):
            return
        self._status["conditions"] = set_condition(list(present), condition, self._timestamp)

    def _suspend(self, on: bool) -> None:
        if on:
            self._condition("Suspended", "JobSuspended", "Job suspended")
        elif self._has("Suspended") is not None:
            self._condition("Suspended", "JobResumed", "Job resumed", "False")


def finish_of(obj: JSON) -> JSON | None:
    """The condition by which a job has ended, Complete or Failed."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each["type"] in ("Complete", "Failed") and each["status"] == "True":
            found: JSON = each
            return found
    return None


def _backoff(failures: int) -> float:
    """Seconds to wait after so many failures."""
    return min(_FAILURE_BACKOFF * 2.0 ** min(failures - 1, 30), _MAX_BACKOFF)


def ended_at(pod: Pod) -> float:
    """When the last container of a pod ended, in epoch seconds."""
    ends = [
        each.state.terminated.finished_at
        for each in pod.status.container_statuses or ()
        if each.state is not None and each.state.terminated is not None
    ]
    return max(map(epoch, ends), default=epoch(pod.metadata.creation_timestamp))
