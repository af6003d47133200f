"""A command line as typed options: parse, then the early steps (gates, version).

Upstream: `cmd/kube-scheduler/app/server.go`.
The later steps are `options_validation.validate` and `complete.complete`; nothing here reads files or starts anything.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from skedge import names
from skedge.config.durations import Duration
from skedge.config.fields import ConfigError, go_quote
from skedge.config.flag_parser import UsageError, parse
from skedge.config.flag_values import SNIPair
from skedge.config.flags import FLAGS, flag_lines
from skedge.config.gates import FeatureGates

_MINOR = int(names.KUBERNETES_VERSION.split(".")[1])
_OLDEST_MINOR = _MINOR - 3
_RELEASE = re.compile(r"v(\d+\.\d+\.\d+)(?:[-+].*)?", re.ASCII)


class Options(msgspec.Struct, kw_only=True):
    """The value of every flag, under its name with `_`; `given` holds the names that were on the command line."""

    given: frozenset[str]

    config: str
    master: str
    plugin: list[str]
    upstream_node_sampling: bool
    write_config_to: str

    bind_address: str
    cert_dir: str
    disable_http2_serving: bool
    http2_max_streams_per_connection: int
    permit_address_sharing: bool
    permit_port_sharing: bool
    secure_port: int
    tls_cert_file: str
    tls_cipher_suites: list[str]
    tls_curve_preferences: list[int]
    tls_min_version: str
    tls_private_key_file: str
    tls_sni_cert_key: list[SNIPair]

    authentication_kubeconfig: str
    authentication_skip_lookup: bool
    authentication_token_webhook_cache_ttl: Duration
    authentication_tolerate_lookup_failure: bool
    client_ca_file: str
    requestheader_allowed_names: list[str]
    requestheader_client_ca_file: str
    requestheader_extra_headers_prefix: list[str]
    requestheader_group_headers: list[str]
    requestheader_uid_headers: list[str]
    requestheader_username_headers: list[str]

    authorization_always_allow_paths: list[str]
    authorization_kubeconfig: str
    authorization_webhook_cache_authorized_ttl: Duration
    authorization_webhook_cache_unauthorized_ttl: Duration

    contention_profiling: bool
    kube_api_burst: int
    kube_api_content_type: str
    kube_api_qps: float
    kubeconfig: str
    pod_max_in_unschedulable_pods_duration: Duration
    profiling: bool

    leader_elect: bool
    leader_elect_lease_duration: Duration
    leader_elect_renew_deadline: Duration
    leader_elect_resource_lock: str
    leader_elect_resource_name: str
    leader_elect_resource_namespace: str
    leader_elect_retry_period: Duration

    emulated_version: list[str]
    feature_gates: list[str]
    min_compatibility_version: list[str]

    allow_metric_labels: dict[str, str]
    allow_metric_labels_manifest: str
    disabled_metrics: list[str]
    show_hidden_metrics_for_version: str

    log_flush_frequency: Duration
    log_json_info_buffer_size: int
    log_json_split_stream: bool
    log_text_info_buffer_size: int
    log_text_split_stream: bool
    logging_format: str
    v: int
    vmodule: dict[str, int]

    help: bool
    version: str

    address: str
    algorithm_provider: str
    failure_domains: str
    hard_pod_affinity_symmetric_weight: int
    lock_object_name: str
    lock_object_namespace: str
    policy_config_file: str
    policy_configmap: str
    policy_configmap_namespace: str
    port: int
    scheduler_name: str
    use_legacy_policy_config: bool

    def lines(self) -> Iterator[tuple[str, str]]:
        """Name and text of every flag, sorted: for `FLAG:` log lines and `/flagz`."""
        return iter(flag_lines({flag.name: getattr(self, flag.attribute) for flag in FLAGS}))


def parse_options(argv: Sequence[str], program: str = names.COMPONENT_NAME) -> Options:
    """Read the command line (without the program's name); raises UsageError.

    Positional arguments are refused unless `--help` was asked for or they are empty.
    """
    parsed = parse(FLAGS, argv)
    if not parsed.values["help"] and any(parsed.arguments):
        shown = " ".join(map(go_quote, parsed.arguments))
        raise UsageError(f"{go_quote(program)} does not take any arguments, got [{shown}]")
    values = {flag.attribute: parsed.values[flag.name] for flag in FLAGS}
    return Options(given=frozenset(parsed.given), **values)


def feature_gates(options: Options) -> tuple[FeatureGates, list[str]]:
    """The gates of this process and notes for the log; raises ConfigError (also for bad version flags)."""
    gates = FeatureGates()
    emulated = check_versions(options)
    notes = gates.set_from_string(*options.feature_gates)
    if emulated < _MINOR:
        notes.append(f"--emulated-version=1.{emulated} is noted, behaviour is that of 1.{_MINOR}")
    return gates, notes


def check_versions(options: Options) -> int:
    """The emulated minor version; raises ConfigError if a version flag cannot hold."""
    emulated = _minor(options.emulated_version)
    if emulated is None:
        emulated = _MINOR
    elif not _OLDEST_MINOR <= emulated <= _MINOR:
        between = f"[1.{_OLDEST_MINOR}, 1.{_MINOR}.0]"
        raise ConfigError(f"emulation version 1.{emulated} is not between {between}")
    oldest = _minor(options.min_compatibility_version)
    if oldest is not None and not _OLDEST_MINOR <= oldest <= emulated:
        between = f"[1.{_OLDEST_MINOR}, 1.{emulated}]"
        raise ConfigError(f"minCompatibilityVersion 1.{oldest} is not between {between}")
    return emulated


def _minor(texts: Iterable[str]) -> int | None:
    found: str | None = None
    minor: int | None = None
    for text in texts:
        component, equals, version = text.partition("=")
        if not equals:
            component, version = "kube", component
        if component.strip() not in ("", "kube"):
            raise ConfigError(f"component not registered: {component.strip()}")
        if found is not None:
            raise ConfigError(f"duplicate version flag, kube={found} and kube={version}")
        found = version
        parts = version.strip().removeprefix("v").split(".")
        if len(parts) > 2:
            raise ConfigError(f"patch version not allowed, got: {version}")
        if len(parts) != 2 or parts[0] != "1" or not (parts[1].isascii() and parts[1].isdigit()) or len(parts[1]) > 4:
            raise ConfigError(f"invalid version {go_quote(version)}, must be 1.<minor>")
        minor = int(parts[1])
    return minor


def reported_version(options: Options) -> str:
    """The version this process reports, with `v`; raises ConfigError if `--version=vX.Y.Z` does not fit."""
    own = f"v{names.KUBERNETES_VERSION}"
    wanted = options.version
    if not wanted.startswith("v"):
        return own
    match = _RELEASE.fullmatch(wanted)
    if match is None or match[1] != names.KUBERNETES_VERSION:
        raise ConfigError(f"version override {go_quote(wanted)} must be compatible with {go_quote(own)}")
    return wanted


def version_text(options: Options) -> str | None:
    """What to print and leave with 0, if `--version` asks for that."""
    if options.version == "true":
        return f"Kubernetes v{names.KUBERNETES_VERSION}"
    if options.version == "raw":
        fields = {
            "Major": "1",
            "Minor": str(_MINOR),
            "GitVersion": f"v{names.KUBERNETES_VERSION}",
            "GitCommit": "",
            "GitTreeState": "",
            "BuildDate": "1970-01-01T00:00:00Z",
            "GoVersion": "",
            "Compiler": "python",
            "Platform": "",
        }
        return f"version.Info{{{', '.join(f'{name}:{go_quote(text)}' for name, text in fields.items())}}}"
    return None
