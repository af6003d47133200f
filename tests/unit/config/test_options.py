import pytest

from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates
from skedge.config.options import feature_gates, parse_options, reported_version, version_text
from skedge.config.options_validation import CIPHER_SUITES, INSECURE_CIPHER_SUITES, validate, validate_logging


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--feature-gates=X"], "missing bool value for X"),
        (["--feature-gates=X=true"], "unrecognized feature gate: X"),
        (["--emulated-version=foo=1.36"], "component not registered: foo"),
        (["--emulated-version=1.35.2"], "patch version not allowed, got: 1.35.2"),
        (["--emulated-version=1.35,kube=1.34"], "duplicate version flag, kube=1.35 and kube=1.34"),
        (["--emulated-version=1.28"], "emulation version 1.28 is not between [1.33, 1.36.0]"),
        (["--emulated-version=1.37"], "emulation version 1.37 is not between [1.33, 1.36.0]"),
        (["--emulated-version=x"], 'invalid version "x", must be 1.<minor>'),
        (["--min-compatibility-version=1.32"], "minCompatibilityVersion 1.32 is not between [1.33, 1.36]"),
        (
            ["--emulated-version=1.34", "--min-compatibility-version=1.35"],
            "minCompatibilityVersion 1.35 is not between [1.33, 1.34]",
        ),
    ],
)
def test_gates_and_versions_refused(argv, message):
    with pytest.raises(ConfigError) as caught:
        feature_gates(parse_options(argv))
    assert str(caught.value) == message


def test_gates_and_versions():
    gates, notes = feature_gates(
        parse_options(["--feature-gates=GenericWorkload=true", "--emulated-version=kube=1.35"])
    )
    assert gates.enabled("GenericWorkload")
    assert notes == ["--emulated-version=1.35 is noted, behaviour is that of 1.36"]
    assert feature_gates(parse_options([])) == (FeatureGates(), [])


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], None),
        (["--version=false"], None),
        (["--version"], "Kubernetes v1.36.2"),
        (["--version=true"], "Kubernetes v1.36.2"),
        (["--version=v1.36.2-custom"], None),
    ],
)
def test_version_text(argv, text):
    assert version_text(parse_options(argv)) == text


def test_raw_and_overridden_version():
    raw = version_text(parse_options(["--version=raw"]))
    assert raw.startswith("version.Info{")
    for name in [
        "Major",
        "Minor",
        "GitVersion",
        "GitCommit",
        "GitTreeState",
        "BuildDate",
        "GoVersion",
        "Compiler",
        "Platform",
    ]:
        assert f"{name}:" in raw
    assert reported_version(parse_options([])) == "v1.36.2"
    assert reported_version(parse_options(["--version=v1.36.2-custom"])) == "v1.36.2-custom"
    with pytest.raises(ConfigError, match="must be compatible"):
        reported_version(parse_options(["--version=v1.35.0"]))


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], []),
        (
            ["--secure-port=65536"],
            ["--secure-port 65536 must be between 0 and 65535, inclusive. 0 for turning off secure port"],
        ),
        (["--tls-cipher-suites=X"], ["Cipher suite X not supported or doesn't exist"]),
        (["--tls-min-version=X"], ['unknown tls version "X"']),
        (["--tls-cert-file=x"], ["--tls-cert-file and --tls-private-key-file must be given together"]),
        (["--requestheader-group-headers=a, "], ['empty value in "requestheader-group-headers"']),
        (["--authorization-always-allow-paths=/a*b,/c*"], ['only trailing * allowed in "/a*b"']),
        (
            ["--show-hidden-metrics-for-version=1.34"],
            [
                'metrics.showHiddenMetricsForVersion: Invalid value: "1.34": must be omitted or '
                "have the value '1.35'; only the previous minor version is allowed"
            ],
        ),
        (["--show-hidden-metrics-for-version=1.35"], []),
        (
            ["--allow-metric-labels=a,b=c", "--allow-metric-labels-manifest=x"],
            ["cannot specify both allowListMapping and allowListMappingManifest"],
        ),
        (["--disabled-metrics=a-b"], [
            'metrics.disabledMetrics[0]: Invalid value: "a-b": must be a fully qualified metric name']),
        (["--allow-metric-labels=ab=c"], [
            'metrics.allowListMapping: Invalid value: "ab": must have the form metric,label']),
        (
            ["--use-legacy-policy-config"],
            ["policyConfigFile: Required value: required when --use-legacy-policy-config is true"],
        ),
        (
            ["--hard-pod-affinity-symmetric-weight=101"],
            ["hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0-100]"],
        ),
        (
            ["--policy-config-file=x", "--config=y"],
            ["--policy-config-file and --config are mutually exclusive"],
        ),
        (["--port=0", "--address=0.0.0.0"], []),
        (["--port=10251"], []),
        (
            ["--port=10251", "--address=0.0.0.0"],
            ["--address 0.0.0.0 must be a loopback address: --port serves without authentication"],
        ),
        (
            ["--secure-port=-1", "--tls-min-version=X"],
            [
                "--secure-port -1 must be between 0 and 65535, inclusive. 0 for turning off secure port",
                'unknown tls version "X"',
            ],
        ),
    ],
)  # fmt: skip
def test_rules(argv, expected):
    assert validate(parse_options(argv)) == expected


def test_cipher_suites():
    argv = [f"--tls-cipher-suites={','.join((*CIPHER_SUITES, *INSECURE_CIPHER_SUITES))}"]
    assert validate(parse_options(argv)) == []


@pytest.mark.parametrize(
    ("argv", "gates", "expected"),
    [
        (["--logging-format=x"], {}, ['format: Invalid value: "x": Unsupported log format']),
        (["--logging-format=json"], {}, []),
        (["--logging-format=json", "--vmodule=a=1"], {}, ["vmodule: Forbidden: Only supported for text log format"]),
        (["--log-flush-frequency=0"], {}, ['flushFrequency: Invalid value: "0s": Must be greater than zero']),
        (
            ["--log-text-split-stream"],
            {},
            ["options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled"],
        ),
        (["--log-text-split-stream"], {"LoggingAlphaOptions": True}, []),
        (
            ["--logging-format=json"],
            {"LoggingBetaOptions": False},
            ["format: Forbidden: Log format json is BETA and disabled, see LoggingBetaOptions feature"],
        ),
    ],
)
def test_logging_rules(argv, gates, expected):
    assert validate_logging(parse_options(argv), FeatureGates(**gates)) == expected
