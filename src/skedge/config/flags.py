"""The flags of the scheduler's command line: names, kinds, defaults, sections, texts.

Upstream: `cmd/kube-scheduler/app/options`.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from skedge import names
from skedge.config import flag_values as kinds
from skedge.config.durations import Duration
from skedge.config.flag_parser import Flag, sections
from skedge.config.flag_values import Kind
from skedge.config.legacy.registry import PROVIDERS
from skedge.config.types import ClientConnection, LeaderElection

MISC, SECURE, AUTHENTICATION, AUTHORIZATION = "Misc", "Secure serving", "Authentication", "Authorization"
DEPRECATED, ELECTION, GATES = "Deprecated", "Leader election", "Feature gate"
METRICS, LOGS, GLOBAL, LEGACY = "Metrics", "Logs", "Global", "Legacy"

SECTIONS: Final = (
    MISC,
    SECURE,
    AUTHENTICATION,
    AUTHORIZATION,
    DEPRECATED,
    ELECTION,
    GATES,
    METRICS,
    LOGS,
    GLOBAL,
)
"""The sections of `--help`, in order."""

_Row = tuple[str, Kind, Any, str]
_election = LeaderElection()
_client = ClientConnection()
_seconds = Duration.of

_ROWS: dict[str, Sequence[_Row]] = {
    MISC: (
        ("config", kinds.STRING, "", "Configuration file (YAML or JSON). Without it the built-in defaults hold."),
        ("master", kinds.STRING, "", "URL of the API server; replaces the server named in the kubeconfig."),
        (
            "plugin",
            kinds.STRINGS,
            [],
            "Plugins of your own, as FILE.py:CLASS or MODULE:CLASS. One that the configuration does not name is "
            "enabled in all profiles.",
        ),
        (
            "upstream-node-sampling",
            kinds.BOOL,
            False,
            "Without percentageOfNodesToScore in the configuration, look at a sample of the nodes of a large cluster, "
            "as kube-scheduler does, instead of all.",
        ),
        ("write-config-to", kinds.STRING, "", "Write the complete configuration to this file and exit."),
    ),
    SECURE: (
        ("bind-address", kinds.IP, "0.0.0.0", "Address to listen on; an unspecified one means all interfaces."),
        (
            "cert-dir",
            kinds.STRING,
            "",
            "Directory of the serving certificate if no files are named; one is generated there if it has none. "
            "Empty: a generated certificate stays in memory.",
        ),
        ("disable-http2-serving", kinds.BOOL, False, "Offer HTTP/1.1 only."),
        ("http2-max-streams-per-connection", kinds.INT, 0, "Most streams of an HTTP/2 connection; 0: no own limit."),
        ("permit-address-sharing", kinds.BOOL, False, "Listen with SO_REUSEADDR."),
        ("permit-port-sharing", kinds.BOOL, False, "Listen with SO_REUSEPORT."),
        ("secure-port", kinds.INT, 10259, "HTTPS port; 0 turns the server off."),
        ("tls-cert-file", kinds.STRING, "", "Serving certificate (PEM), followed by its chain."),
        ("tls-cipher-suites", kinds.STRINGS, [], "Cipher suites for TLS up to 1.2, by name. Empty: the default ones."),
        ("tls-curve-preferences", kinds.INT32S, [], "Key exchange curves by TLS number, most wanted first."),
        ("tls-min-version", kinds.STRING, "", "Lowest TLS version: VersionTLS10 to VersionTLS13. Empty: 1.2."),
        ("tls-private-key-file", kinds.STRING, "", "Private key (PEM) of --tls-cert-file."),
        (
            "tls-sni-cert-key",
            kinds.SNI,
            [],
            "Further certificate, as cert,key[:name,...]; names may begin with '*.'. May be given several times.",
        ),
    ),
    AUTHENTICATION: (
        (
            "authentication-kubeconfig",
            kinds.STRING,
            "",
            "Kubeconfig for token reviews and for reading the cluster's authentication settings. Empty: in-cluster.",
        ),
        ("authentication-skip-lookup", kinds.BOOL, False, "Do not read the cluster's authentication settings."),
        ("authentication-token-webhook-cache-ttl", kinds.DURATION, _seconds(10), "How long a token review holds."),
        (
            "authentication-tolerate-lookup-failure",
            kinds.BOOL,
            True,
            "Start even if the cluster's authentication settings cannot be read.",
        ),
        ("client-ca-file", kinds.STRING, "", "CA bundle: a client certificate signed by it identifies its bearer."),
        ("requestheader-allowed-names", kinds.STRINGS, [], "Common names of proxies whose headers count; empty: any."),
        ("requestheader-client-ca-file", kinds.STRING, "", "CA bundle that authenticating proxies are checked with."),
        ("requestheader-extra-headers-prefix", kinds.STRINGS, ["x-remote-extra-"], "Prefixes of extra-data headers."),
        ("requestheader-group-headers", kinds.STRINGS, ["x-remote-group"], "Headers that hold groups."),
        ("requestheader-uid-headers", kinds.STRINGS, [], "Headers that hold the user's UID, such as X-Remote-Uid."),
        ("requestheader-username-headers", kinds.STRINGS, ["x-remote-user"], "Headers that hold the user's name."),
    ),
    AUTHORIZATION: (
        (
            "authorization-always-allow-paths",
            kinds.STRINGS,
            ["/healthz", "/readyz", "/livez"],
            "Paths that anybody may read; a trailing * makes one a prefix.",
        ),
        ("authorization-kubeconfig", kinds.STRING, "", "Kubeconfig for access reviews. Empty: in-cluster."),
        ("authorization-webhook-cache-authorized-ttl", kinds.DURATION, _seconds(10), "How long a permission holds."),
        ("authorization-webhook-cache-unauthorized-ttl", kinds.DURATION, _seconds(10), "How long a refusal holds."),
    ),
    DEPRECATED: (
        ("contention-profiling", kinds.BOOL, True, "DEPRECATED: block profiling. Not used with --config."),
        ("kube-api-burst", kinds.INT32, _client.burst, "DEPRECATED: burst of API requests. Not used with --config."),
        (
            "kube-api-content-type",
            kinds.STRING,
            _client.content_type,
            "DEPRECATED: content type of API requests. Not used with --config.",
        ),
        (
            "kube-api-qps",
            kinds.FLOAT32,
            _client.qps,
            "DEPRECATED: API requests a second, and so the most pods bound a second. Not used with --config.",
        ),
        ("kubeconfig", kinds.STRING, "", "DEPRECATED: kubeconfig file. Not used with --config."),
        (
            "pod-max-in-unschedulable-pods-duration",
            kinds.DURATION,
            _seconds(300),
            "DEPRECATED: longest stay of a pod among the unschedulable ones before it is tried again.",
        ),
        ("profiling", kinds.BOOL, True, "DEPRECATED: profiles under /debug/pprof. Not used with --config."),
    ),
    ELECTION: (
        ("leader-elect", kinds.BOOL, _election.leader_elect, "Work only while holding the lease."),
        ("leader-elect-lease-duration", kinds.DURATION, _election.lease_duration, "How long others respect a lease."),
        (
            "leader-elect-renew-deadline",
            kinds.DURATION,
            _election.renew_deadline,
            "How long the leader tries to renew before it gives up; less than the lease's duration.",
        ),
        ("leader-elect-resource-lock", kinds.STRING, _election.resource_lock, "Kind of lock; only leases."),
        ("leader-elect-resource-name", kinds.STRING, _election.resource_name, "Name of the lease."),
        ("leader-elect-resource-namespace", kinds.STRING, _election.resource_namespace, "Namespace of the lease."),
        ("leader-elect-retry-period", kinds.DURATION, _election.retry_period, "Pause between tries."),
    ),
    GATES: (
        ("emulated-version", kinds.STRINGS, [], "Behave as this minor version: [component=]X.Y."),
        ("feature-gates", kinds.GATES, [], "Features to turn on or off: Name=true|false,... AllAlpha and AllBeta too."),
        ("min-compatibility-version", kinds.STRINGS, [], "Oldest version to stay compatible with: [component=]X.Y."),
    ),
    METRICS: (
        ("allow-metric-labels", kinds.STRING_MAP, {}, "Allowed values of labels: metric,label='v1,v2',..."),
        ("allow-metric-labels-manifest", kinds.STRING, "", "YAML file with allowed values of labels."),
        ("disabled-metrics", kinds.STRINGS, [], "Full names of metrics to leave out."),
        ("show-hidden-metrics-for-version", kinds.STRING, "", "Previous minor version, to show what it hid."),
    ),
    LOGS: (
        ("log-flush-frequency", kinds.DURATION, _seconds(5), "Longest time between log flushes."),
        ("log-json-info-buffer-size", kinds.QUANTITY, 0, "[Alpha] Bytes of JSON info messages to hold back."),
        ("log-json-split-stream", kinds.BOOL, False, "[Alpha] JSON format: info to stdout, errors to stderr."),
        ("log-text-info-buffer-size", kinds.QUANTITY, 0, "[Alpha] Bytes of text info messages to hold back."),
        ("log-text-split-stream", kinds.BOOL, False, "[Alpha] Text format: info to stdout, errors to stderr."),
        ("logging-format", kinds.STRING, "text", "Format of the log: text or json."),
        ("v", kinds.LEVEL, 0, "How much is logged."),
        ("vmodule", kinds.VMODULE, {}, "Verbosity by source file: pattern=N,... Text format only."),
    ),
    GLOBAL: (
        ("help", kinds.BOOL, False, "Show this help."),
        ("version", kinds.VERSION, "false", "Print the version (raw: all of it) and exit; vX.Y.Z: report that one."),
    ),
    LEGACY: (
        ("address", kinds.IP, "127.0.0.1", "Address of --port; loopback only."),
        ("algorithm-provider", kinds.STRING, "", f"Built-in set of plugins: {' | '.join(PROVIDERS)}."),
        ("failure-domains", kinds.STRING, "", "Without effect."),
        ("hard-pod-affinity-symmetric-weight", kinds.INT32, 1, "Weight of a hard affinity's counterpart, 0 to 100."),
        ("lock-object-name", kinds.STRING, names.COMPONENT_NAME, "Name of the lease."),
        ("lock-object-namespace", kinds.STRING, "kube-system", "Namespace of the lease."),
        ("policy-config-file", kinds.STRING, "", "File with a Policy."),
        ("policy-configmap", kinds.STRING, "", "ConfigMap with a Policy."),
        ("policy-configmap-namespace", kinds.STRING, "kube-system", "Namespace of --policy-configmap."),
        ("port", kinds.INT, 0, "Port for health and metrics over HTTP without authentication; 0: none."),
        ("scheduler-name", kinds.STRING, names.DEFAULT_SCHEDULER_NAME, "Name that pods ask for."),
        ("use-legacy-policy-config", kinds.BOOL, False, "Prefer --policy-config-file to --policy-configmap."),
    ),
}
_SHORTHANDS = {"help": "h", "v": "v"}

FLAGS: Final[tuple[Flag, ...]] = tuple(
    Flag(name, kind, default, section, usage, _SHORTHANDS.get(name, ""), hidden=section == LEGACY)
    for section, rows in _ROWS.items()
    for name, kind, default, usage in rows
)
"""All flags; those of releases before 1.23 (section Legacy) are accepted but hidden."""

DESCRIPTION: Final = (
    "The scheduler watches for pods without a node, finds for each of them the nodes that can run it, ranks these by "
    "the configured plugins, and binds the pod to the best one. Several schedulers may run in one cluster."
)


def help_text(program: str = names.COMPONENT_NAME, width: int = 0) -> str:
    """What `--help` prints; `width` is that of a terminal, or 0."""
    return f"{DESCRIPTION}\n\n{usage_text(program, width)}"


def usage_text(program: str = names.COMPONENT_NAME, width: int = 0) -> str:
    """What a wrong command line is answered with, before the error."""
    return f"Usage:\n  {program} [flags]\n\n{sections(FLAGS, SECTIONS, width)}"


def flag_lines(values: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Name and text of every flag that is not of the Legacy section, sorted by name: for the log and `/flagz`."""
    for flag in sorted(FLAGS, key=lambda flag: flag.name):
        if not flag.hidden:
            yield flag.name, flag.kind.show(values[flag.name])
