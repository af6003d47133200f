"""Where skedge differs from kube-scheduler on purpose: one table, from which `docs/deviations.md` is written.

python -m skedge.deviations > docs/deviations.md
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple


class Deviation(NamedTuple):
    """`accepted`: the flag, field or object concerned, which is read all the same; `log`: the line that tells of it."""

    area: str
    what: str
    accepted: str
    effect: str
    log: str = ""


_SCHEDULING: Final = "Scheduling"
_QUEUE: Final = "Queue"
_PREEMPTION: Final = "Preemption"
_CACHE: Final = "Cache"
_CLIENT: Final = "Client"
_EVENTS: Final = "Events"
_SERVING: Final = "Serving"
_COMMAND: Final = "Command line"

DEVIATIONS: Final = (
    Deviation(
        _SCHEDULING,
        "All nodes are filtered and scored unless a configuration asks for less",
        "`percentageOfNodesToScore`, `--upstream-node-sampling`",
        "An absent field means 100, and `/configz` and `--write-config-to` print 100. An explicit value, 0 included, "
        "is honoured exactly as upstream; the flag restores upstream's default.",
    ),
    Deviation(
        _SCHEDULING,
        "Ties between the best nodes are broken uniformly at random",
        "none",
        "Upstream's draw favours some of the best nodes by their place in a heap; each is as likely here. Where nodes "
        "are sampled, upstream's choice is made.",
    ),
    Deviation(
        _SCHEDULING,
        "Image counts are fresh",
        "plugin `ImageLocality`",
        "The number of nodes that have an image is that of the moment. Upstream's snapshot may hold the number of when "
        "the node was last copied.",
    ),
    Deviation(
        _SCHEDULING,
        "Equal pods are answered from kept answers, not from batches",
        "gate `OpportunisticBatching`",
        "Kept answers follow every change, so no hint is stored that could be out of date. The batch metrics "
        "and the extension point `Sign` have no series.",
    ),
    Deviation(
        _SCHEDULING,
        "Pods with resource claims are not scheduled yet",
        "`spec.resourceClaims`",
        "Rejected in PreFilter with the reason `resource claims are not supported by this scheduler`.",
    ),
    Deviation(
        _QUEUE,
        "The sweep of old unschedulable pods looks at the gate of gated ones",
        "`--pod-max-in-unschedulable-pods-duration`",
        "A gated pod whose gate has opened without an event is tried after that time. Upstream leaves it for ever.",
    ),
    Deviation(
        _QUEUE,
        'No nomination is kept for the node ""',
        "`status.nominatedNodeName`",
        "Upstream keeps one in some orders of events; no question can tell the two apart.",
    ),
    Deviation(
        _QUEUE,
        "Room promised to a pod that goes elsewhere wakes others",
        "`status.nominatedNodeName`",
        "Also where the pod is bound to another node, or where no object ever showed the promise. Upstream's others "
        "wait for another event or the sweep.",
    ),
    Deviation(
        _QUEUE,
        "Status patches of a pod that is bound meanwhile are dropped",
        "gate `SchedulerAsyncAPICalls`",
        "Patches do not hold up the cycle as upstream's do. Those of one pod go one after another, what is said "
        "meanwhile becomes one, and a binding waits for the one under way.",
    ),
    Deviation(
        _PREEMPTION,
        "With the gate off, victims are still evicted beside the loop",
        "gate `SchedulerAsyncPreemption`",
        "Off, the preemptor is not gated meanwhile, as upstream; but the cycle does not wait for the API calls.",
    ),
    Deviation(
        _PREEMPTION,
        "All nodes that may help are tried unless arguments say otherwise",
        "`minCandidateNodesPercentage`, `minCandidateNodesAbsolute`",
        "Absent, every potential node is dry-run; while the pods of more than 500 of them changed since they were last "
        "looked at, those with the same pods and 500 others, until a candidate breaks no budget. Given, upstream's "
        "number of candidates and offset are used.",
    ),
    Deviation(
        _PREEMPTION,
        "A gated preemptor is woken when its preemption ends",
        "gate `SchedulerAsyncPreemption`",
        "By its last victim's deletion whoever turned it down, or at the end where that one's room is free by then. "
        "Upstream leaves it gated until a deletion that the plugins of its last attempt care for.",
    ),
    Deviation(
        _CACHE,
        "An inconsistent cache is repaired",
        "none",
        "Where upstream ends its process, the pod is rebuilt from the informer's object and counted in "
        "`skedge_audit_findings_total` and `skedge_audit_repairs_total`.",
        "`Scheduler cache is corrupted, pod rebuilt`",
    ),
    Deviation(
        _CACHE,
        "Queue, cache and informers are audited all the time",
        "none",
        "What contradicts is repaired and counted in `skedge_audit_*`. Upstream compares on SIGUSR2 "
        "only, and only tells.",
        "`Queue, cache and informers disagree`",
    ),
    Deviation(
        _CLIENT,
        "JSON is spoken with the API server",
        "`clientConnection.contentType`, `clientConnection.acceptContentTypes`, `--kube-api-content-type`",
        "The fields are read and shown, and change nothing: requests and answers are JSON.",
    ),
    Deviation(
        _CLIENT,
        "A request that was answered 401 is sent once more with renewed credentials",
        "exec plugins, token files, OIDC",
        "Upstream renews for the next request.",
    ),
    Deviation(
        _CLIENT,
        "A start that the API server refuses ends",
        "`--kubeconfig`",
        "A certificate that is not accepted, a 401 at first, or a 401 or 403 where pods or nodes are read: status 1, "
        "and one line says why. Upstream tries on for ever, not ready. A server that is down is waited for, and what "
        "is refused later is tried again.",
        "`the API server does not accept our credentials`",
    ),
    Deviation(
        _CLIENT,
        'After a 410 the list is made at the newest version ("") at once',
        "none",
        "Upstream's reflector tries the last version once more in some cases.",
        "`Watch expired, listing again`",
    ),
    Deviation(
        _CLIENT,
        "Objects that cannot be decoded are left out one by one",
        "none",
        "Upstream fails the whole list. Counted in `skedge_undecodable_objects_total`.",
        "`Object left out, it cannot be decoded`",
    ),
    Deviation(
        _EVENTS,
        "Memory of events is bounded",
        "none",
        "At most 50,000 events are remembered to be told as a series, and 100,000 wait to be sent; the oldest go. "
        "Upstream has a queue of 1,000 and an unbounded map.",
    ),
    Deviation(
        _EVENTS,
        "A percent sign in a message is left alone",
        "none",
        "Upstream uses the message as a format string: `50% full` becomes `50%!f(MISSING)ull` in the event. The "
        "condition is the same.",
    ),
    Deviation(
        _EVENTS,
        "Events are echoed to the log",
        "`-v`",
        "From verbosity 3 on. Upstream has no such line today.",
        "`Event occurred`",
    ),
    Deviation(
        _SERVING,
        "A client certificate of an unknown authority fails the TLS handshake",
        "`--client-ca-file`",
        "Upstream ends the handshake well and then does not accept the certificate.",
    ),
    Deviation(
        _SERVING,
        "HTTP/1.1 only",
        "`--http2-max-streams-per-connection`",
        "The flag is read and has no effect.",
    ),
    Deviation(
        _SERVING,
        "Plain HTTP on the TLS port is closed without a word",
        "`--secure-port`",
        "Upstream answers 400 `Client sent an HTTP request to an HTTPS server.`",
    ),
    Deviation(
        _SERVING,
        "Of the TLS curves the first known one is used",
        "`--tls-curve-preferences`",
        "The rest of the list has no effect.",
    ),
    Deviation(
        _SERVING,
        "`/debug/pprof/trace` is a Chrome trace in JSON",
        "`--profiling`",
        "`go tool trace` does not read it; Perfetto does.",
    ),
    Deviation(
        _SERVING,
        "`heap` and `allocs` show what is held, `block` and `mutex` are empty",
        "`--profiling`, `--contention-profiling`",
        "There is no sampling of allocations since the start, nothing blocks but the loop, and `?seconds=` makes no "
        "delta.",
    ),
    Deviation(
        _SERVING,
        "`DELETE /metrics` sets counters to zero",
        "none",
        "Families stay shown; upstream drops series until they are counted again.",
    ),
    Deviation(
        _SERVING,
        "Most `go_*` metrics are absent",
        "none",
        "`go_goroutines` counts asyncio tasks and threads, `go_threads` threads; `python_*` tell of this runtime.",
    ),
    Deviation(
        _SERVING,
        "Metrics of work that does not exist here have no series",
        "none",
        "`workqueue_*` (reloading of certificates takes no queue), `scheduler_async_api_call_*` and "
        "`scheduler_pending_async_api_calls` (all calls are asynchronous), `scheduler_resourceclaim_creates_total` and "
        "`scheduler_dra_*` (no claims). `scheduler_goroutines` is always 0 for `Filter` and `Score`, which take no "
        "worker.",
    ),
    Deviation(
        _SERVING,
        "Metrics of an API server's parts are absent",
        "none",
        "`aggregator_discovery_*`, `apiserver_audit_*`, `apiserver_envelope_encryption_*`, `apiserver_storage_*`, "
        "`apiserver_validation_*` and `apiserver_webhooks_*` are linked into upstream's binary, which counts none.",
    ),
    Deviation(
        _SERVING,
        "The check `leaderElection` can fail",
        "none",
        "It fails when the leader has not renewed its lease for the lease's duration and 20 s. Upstream does not "
        "connect the check with the election.",
    ),
    Deviation(
        _SERVING,
        "No CBOR",
        "gate `CBORServingAndStorage`",
        "Upstream offers it behind the gate.",
    ),
    Deviation(
        _COMMAND,
        "An emulated version is noted only",
        "`--emulated-version`",
        "It is validated and shown (`/statusz`, metrics); gates and behaviour stay those of 1.36.",
        "`is noted, behaviour is that of 1.`",
    ),
    Deviation(
        _COMMAND,
        "Some feature gates change nothing",
        "gate `MatchLabelKeysInPodTopologySpread`, gate `MatchLabelKeysInPodTopologySpreadSelectorMerge`, "
        "gate `NativeHistograms`, gate `NominatedNodeNameForExpectation`, gate `PodLevelResources`, "
        "gate `RemoteRequestHeaderUID`, gate `SchedulerAsyncAPICalls`",
        "They are validated and shown; what they switch is as by default.",
        "`has no effect here`",
    ),
    Deviation(
        _COMMAND,
        "Flags of releases before 1.23 are read",
        "`--policy-config-file`, `--policy-configmap`, `--algorithm-provider`, `--scheduler-name`, `--port`, "
        "`--lock-object-name`",
        "Upstream knows them no more. They are in no help text, and a Policy cannot be combined with `--config`.",
    ),
    Deviation(
        _COMMAND,
        "A configuration file of several documents is refused",
        "`--config`",
        "Upstream reads the first and says nothing of the others. Empty ones are no matter.",
        "`only one document is allowed`",
    ),
    Deviation(
        _COMMAND,
        "Plugins of one's own are loaded when the process starts",
        "`--plugin`",
        "Upstream links them in. One that the configuration does not name is enabled at all its points in all "
        "profiles; one in node form is asked about nodes that all other filters left, whatever its place among them.",
    ),
    Deviation(
        _COMMAND,
        "The log names files of this program",
        "`--vmodule`",
        "Headers and `caller` show Python files and lines, and patterns match their names: `scheduling_cycle=5` for "
        "upstream's `schedule_one=5`.",
    ),
    Deviation(
        _COMMAND,
        "Python's version stands where Go's stood",
        "`--version`",
        "In `--version=raw`, `/statusz` and `kubernetes_build_info`, which tell no commit either; the user agent says "
        "`skedge` in its place.",
    ),
    Deviation(
        _COMMAND,
        "Go's settings are not logged",
        "environment variables `GOGC`, `GOMAXPROCS`, `GOTRACEBACK`",
        "They are not looked at, and upstream's line `Golang settings` is absent.",
    ),
    Deviation(
        _COMMAND,
        "The image has a user of its own",
        "`--kubeconfig`, `--authentication-kubeconfig`, `--authorization-kubeconfig`, `--tls-private-key-file`",
        "It runs as 65532, upstream's as root. Where files belong to root alone, as kubeadm's `scheduler.conf` does, "
        "the pod must say `runAsUser: 0`; `deploy/manifests/static-pod.yaml` does.",
    ),
)


def render(deviations: Iterable[Deviation] = DEVIATIONS) -> str:
    """The page, as Markdown."""
    lines = [
        "# Deviations from kube-scheduler",
        "",
        "Written from the table in `src/skedge/deviations.py` by `python -m skedge.deviations`; a test compares them.",
        "All else that differs is a bug.",
    ]
    area = ""
    for deviation in deviations:
        if deviation.area != area:
            area = deviation.area
            lines += ["", f"## {area}"]
        lines += ["", f"### {deviation.what}", "", f"- Accepted: {deviation.accepted}", f"- Effect: {deviation.effect}"]
        if deviation.log:
            lines.append(f"- Log: {deviation.log}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(render(), end="")
