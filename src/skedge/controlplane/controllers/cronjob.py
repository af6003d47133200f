"""Cron jobs: a Job at each time of a schedule. Upstream: `pkg/controller/cronjob/{cronjob_controllerv2,utils}.go`."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from skedge.client.errors import AlreadyExists, NotFound
from skedge.client.timefmt import rfc3339
from skedge.controlplane.controllers.base import OWNER, Context, Controller
from skedge.controlplane.controllers.cron import CronError, Schedule
from skedge.controlplane.controllers.job import finish_of
from skedge.controlplane.controllers.kinds import CRON_JOB, JOB
from skedge.controlplane.controllers.objects import epoch, key_of, meta_of, owner_reference

JSON = dict[str, Any]

_TIME = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_SLACK = 0.1


class CronJobs(Controller):
    name = "cronjob"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.objects, self.jobs = context.owned(CRON_JOB), context.owned(JOB)
        self.watch(self.objects, key_of)
        self.watch(self.jobs, self._owner_key)

    def _owner_key(self, job: JSON) -> str | None:
        meta = meta_of(job)
        refs = (ref for ref in meta.owner_references or () if ref.controller and ref.kind == CRON_JOB.name)
        return next((f"{meta.namespace}/{ref.name}" for ref in refs), None)

    async def reconcile(self, key: str) -> float | None:
        obj = self.objects.store.get(key)
        if obj is None:
            self.forget(key)
            return None
        jobs = self.jobs.store.by_index(OWNER, obj["metadata"]["uid"])
        status = self._status(obj, jobs)
        again: float | None = None
        if "deletionTimestamp" not in obj["metadata"] and not obj["spec"].get("suspend"):
            again = await self._start_due(obj, jobs, status)
        await self._clean_up(obj, jobs)
        await self.update_status(CRON_JOB, obj, status)
        return again

    def _status(self, obj: JSON, jobs: list[JSON]) -> JSON:
        """The status as the jobs say; those that have ended are no longer active."""
        status: JSON = dict(obj.get("status") or {})
        running = [job for job in jobs if finish_of(job) is None]
        status["active"] = [_reference(job) for job in sorted(running, key=key_of)]
        for job in jobs:
            ended = finish_of(job)
            if ended is not None and ended["type"] == "Complete":
                time = (job.get("status") or {}).get("completionTime")
                if epoch(time) > epoch(status.get("lastSuccessfulTime")):
                    status["lastSuccessfulTime"] = time
        return status if status["active"] else {name: each for name, each in status.items() if name != "active"}

    async def _start_due(self, obj: JSON, jobs: list[JSON], status: JSON) -> float | None:
        """Start the job of the last time that has come, if it was not; the seconds until the next time."""
        meta, spec = obj["metadata"], obj["spec"]
        try:
            schedule, zone = Schedule(spec["schedule"]), _zone(spec.get("timeZone"))
        except CronError as error:
            self.event(obj, CRON_JOB, "Warning", "UnparseableSchedule", f"unparseable schedule: {error}")
            return None
        now = datetime.fromtimestamp(self.clock.now(), zone)
        deadline = spec.get("startingDeadlineSeconds")
        earliest = epoch(status.get("lastScheduleTime")) or epoch(meta.get("creationTimestamp"))
        if deadline is not None:
            earliest = max(earliest, self.clock.now() - deadline)
        due = schedule.latest(now, datetime.fromtimestamp(earliest, zone))
        if due is not None:
            await self._start(obj, jobs, status, due)
        upcoming = schedule.next(now)
        return None if upcoming is None else upcoming.timestamp() - self.clock.now() + _SLACK

    async def _start(self, obj: JSON, jobs: list[JSON], status: JSON, due: datetime) -> None:
        meta, spec = obj["metadata"], obj["spec"]
        policy = spec.get("concurrencyPolicy")
        running = [job for job in jobs if finish_of(job) is None]
        if policy == "Forbid" and running:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.event(obj, CRON_JOB, "Normal", "JobAlreadyActive", text)
            return
        if policy == "Replace":
            for job in running:
                await self._delete(obj, job)
            status.pop("active", None)
        template = spec["jobTemplate"]
        given = template.get("metadata") or {}
        when = due.timestamp()
        body: JSON = {
            "apiVersion": JOB.api_version,
            "kind": JOB.name,
            "metadata": {
                "name": f"{meta['name']}-{int(when) // 60}",
                "namespace": meta["namespace"],
                "labels": given.get("labels") or {},
                "annotations": {**(given.get("annotations") or {}), _TIME: rfc3339(when)},
                "ownerReferences": [owner_reference(obj, CRON_JOB.api_version, CRON_JOB.name)],
            },
            "spec": template["spec"],
        }
        try:
            made: JSON = await self.client.create(JOB.path(meta["namespace"]), body)
        except AlreadyExists:
            pass  # started already, its news are on their way
        else:
            self.event(obj, CRON_JOB, "Normal", "SuccessfulCreate", f"Created job {made['metadata']['name']}")
            status["active"] = [*status.get("active", ()), _reference(made)]
        status["lastScheduleTime"] = rfc3339(when)

    async def _clean_up(self, obj: JSON, jobs: list[JSON]) -> None:
        """Delete the oldest finished jobs beyond the limits of the history."""
        limits = {"Complete": ("successfulJobsHistoryLimit", 3), "Failed": ("failedJobsHistoryLimit", 1)}
        for type, (field, default) in limits.items():
            ended = [job for job in jobs if (end := finish_of(job)) is not None and end["type"] == type]
            ended.sort(key=lambda job: ((job.get("status") or {}).get("startTime", ""), job["metadata"]["name"]))
            limit = obj["spec"].get(field, default)
            for job in ended[: max(0, len(ended) - limit)]:
                if "deletionTimestamp" not in job["metadata"]:
                    await self._delete(obj, job)

    async def _delete(self, obj: JSON, job: JSON) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        try:
            await self.client.request("DELETE", JOB.of(job), body=options)
        except NotFound:
            return
        self.event(obj, CRON_JOB, "Normal", "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")


def _reference(job: JSON) -> JSON:
    meta = job["metadata"]
    return {
        "kind": JOB.name,
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "apiVersion": JOB.api_version,
        "resourceVersion": meta["resourceVersion"],
    }


def _zone(name: str | None) -> tzinfo:
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise CronError(f"unknown time zone {name}") from None
