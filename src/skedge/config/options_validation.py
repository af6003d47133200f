"""The rules of the command line's option groups, all broken ones at once.

Upstream: `Validate` of the option groups in `component-base` and `apiserver`.
"""

import ipaddress
import re
from collections.abc import Iterator

from skedge.config.fields import forbidden, go_quote, invalid, required
from skedge.config.gates import FeatureGates
from skedge.config.options import Options
from skedge.names import KUBERNETES_VERSION

TLS_VERSIONS = ("VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13")
_KEYS = ("ECDSA", "RSA")
CIPHER_SUITES = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    *(f"TLS_ECDHE_{key}_WITH_AES_{bits}_CBC_SHA" for key in _KEYS for bits in (128, 256)),
    *(f"TLS_ECDHE_{key}_WITH_AES_128_GCM_SHA256" for key in _KEYS),
    *(f"TLS_ECDHE_{key}_WITH_AES_256_GCM_SHA384" for key in _KEYS),
    *(f"TLS_ECDHE_{key}_WITH_CHACHA20_POLY1305{tail}" for key in _KEYS for tail in ("", "_SHA256")),
)
INSECURE_CIPHER_SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
)
"""Suites that are accepted with a warning."""

_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)


def validate(options: Options) -> list[str]:
    """The broken rules of all option groups but the logging one; empty if there are none."""
    groups = (_secure_serving, _authentication, _authorization, _metrics, _legacy)
    return [problem for group in groups for problem in group(options)]


def validate_logging(options: Options, gates: FeatureGates) -> list[str]:
    """The broken rules of the logging options; they are looked at before anything is logged."""
    errors = []
    if options.logging_format not in ("text", "json"):
        errors.append(invalid("format", options.logging_format, "Unsupported log format"))
    if options.log_flush_frequency <= 0:
        text = "Must be greater than zero"
        errors.append(invalid("flushFrequency", str(options.log_flush_frequency), text))
    if options.vmodule and options.logging_format not in ("", "text"):
        errors.append(forbidden("vmodule", "Only supported for text log format"))
    if not gates.enabled("LoggingAlphaOptions"):
        for path, value in (
            ("options.text.splitStream", options.log_text_split_stream),
            ("options.text.infoBufferSize", options.log_text_info_buffer_size),
            ("options.json.splitStream", options.log_json_split_stream),
            ("options.json.infoBufferSize", options.log_json_info_buffer_size),
        ):
            if value:
                errors.append(forbidden(path, "Feature LoggingAlphaOptions is disabled"))
    if options.logging_format == "json" and not gates.enabled("LoggingBetaOptions"):
        errors.append(forbidden("format", "Log format json is BETA and disabled, see LoggingBetaOptions feature"))
    return [str(error) for error in errors]


def _secure_serving(options: Options) -> Iterator[str]:
    if not 0 <= options.secure_port <= 65535:
        text = "must be between 0 and 65535, inclusive. 0 for turning off secure port"
        yield f"--secure-port {options.secure_port} {text}"
    if options.http2_max_streams_per_connection < 0:
        yield "--http2-max-streams-per-connection value can not be a negative value"
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        yield "--tls-cert-file and --tls-private-key-file must be given together"
    for suite in options.tls_cipher_suites:
        if suite not in CIPHER_SUITES and suite not in INSECURE_CIPHER_SUITES:
            yield f"Cipher suite {suite} not supported or doesn't exist"
    if options.tls_min_version and options.tls_min_version not in TLS_VERSIONS:
        yield f"unknown tls version {go_quote(options.tls_min_version)}"


def _authentication(options: Options) -> Iterator[str]:
    for name, values in (
        ("requestheader-username-headers", options.requestheader_username_headers),
        ("requestheader-uid-headers", options.requestheader_uid_headers),
        ("requestheader-group-headers", options.requestheader_group_headers),
        ("requestheader-extra-headers-prefix", options.requestheader_extra_headers_prefix),
        ("requestheader-allowed-names", options.requestheader_allowed_names),
    ):
        if any(not value.strip() for value in values):
            yield f"empty value in {go_quote(name)}"


def _authorization(options: Options) -> Iterator[str]:
    for path in options.authorization_always_allow_paths:
        if "*" in path[:-1]:
            yield f"only trailing * allowed in {go_quote(path)}"


def _metrics(options: Options) -> Iterator[str]:
    shown = options.show_hidden_metrics_for_version
    major, minor = KUBERNETES_VERSION.split(".")[:2]
    previous = f"{major}.{int(minor) - 1}"
    if shown and shown != previous:
        text = f"must be omitted or have the value '{previous}'; only the previous minor version is allowed"
        yield str(invalid("metrics.showHiddenMetricsForVersion", shown, text))
    for index, name in enumerate(options.disabled_metrics):
        if not _METRIC_NAME.fullmatch(name):
            yield str(invalid(f"metrics.disabledMetrics[{index}]", name, "must be a fully qualified metric name"))
    yield from label_key_problems(options.allow_metric_labels, "metrics.allowListMapping")
    if options.allow_metric_labels and options.allow_metric_labels_manifest:
        yield "cannot specify both allowListMapping and allowListMappingManifest"


def label_key_problems(mapping: dict[str, str], path: str) -> Iterator[str]:
    """Keys of an allow-list that are not `metric,label`."""
    for key in mapping:
        metric, comma, label = key.partition(",")
        if not comma or not _METRIC_NAME.fullmatch(metric) or not _LABEL_NAME.fullmatch(label):
            yield str(invalid(path, key, "must have the form metric,label"))


def _legacy(options: Options) -> Iterator[str]:
    if options.use_legacy_policy_config and not options.policy_config_file:
        yield str(required("policyConfigFile", "required when --use-legacy-policy-config is true"))
    weight = options.hard_pod_affinity_symmetric_weight
    if not 0 <= weight <= 100:
        yield str(invalid("hardPodAffinitySymmetricWeight", weight, "not in valid range [0-100]"))
    if not 0 <= options.port <= 65535:
        yield f"--port {options.port} must be between 0 and 65535, inclusive. 0 for turning off insecure (HTTP) port"
    elif options.port and not ipaddress.ip_address(options.address).is_loopback:
        yield f"--address {options.address} must be a loopback address: --port serves without authentication"
    if options.config:
        for name in EXCLUSIVE:
            if name in options.given:
                yield f"--{name} and --config are mutually exclusive"


EXCLUSIVE = (
    "algorithm-provider",
    "policy-config-file",
    "policy-configmap",
    "policy-configmap-namespace",
    "use-legacy-policy-config",
    "scheduler-name",
    "hard-pod-affinity-symmetric-weight",
)
"""Flags of the Legacy section that describe what a configuration file describes too."""
