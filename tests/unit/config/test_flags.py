import gzip
from pathlib import Path

import pytest

from skedge.config.flag_parser import UsageError
from skedge.config.flag_values import SNIPair
from skedge.config.flags import FLAGS, SECTIONS, help_text, usage_text
from skedge.config.options import Options, parse_options

DATA = Path(__file__).parents[2] / "data" / "config"
OURS = {"plugin", "upstream-node-sampling"}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--foo"], "unknown flag: --foo"),
        (["--foo=1"], "unknown flag: --foo"),
        (["-x"], "unknown shorthand flag: 'x' in -x"),
        (["--config"], "flag needs an argument: --config"),
        (["-v"], "flag needs an argument: 'v' in -v"),
        (
            ["--secure-port=abc"],
            'invalid argument "abc" for "--secure-port" flag: strconv.ParseInt: parsing "abc": invalid syntax',
        ),
        (["-v=x"], 'invalid argument "x" for "-v, --v" flag: strconv.ParseInt: parsing "x": invalid syntax'),
        (["-v99999999999"], 'invalid argument "99999999999" for "-v, --v" flag: '
         'strconv.ParseInt: parsing "99999999999": value out of range'),
        (
            ["--leader-elect=maybe"],
            'invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (
            ["--leader-elect-retry-period=2"],
            'invalid argument "2" for "--leader-elect-retry-period" flag: time: missing unit in duration "2"',
        ),
        (["--=x"], "bad flag syntax: --=x"),
        (["---x"], "bad flag syntax: ---x"),
        (["extra"], '"kube-scheduler" does not take any arguments, got ["extra"]'),
        (["", "a b"], '"kube-scheduler" does not take any arguments, got ["" "a b"]'),
        (["--leader-elect", "false"], '"kube-scheduler" does not take any arguments, got ["false"]'),
        (["--", "--v=2"], '"kube-scheduler" does not take any arguments, got ["--v=2"]'),
        (["--bind-address=x"], 'invalid argument "x" for "--bind-address" flag: failed to parse IP: "x"'),
        (
            ["--kube-api-qps=x"],
            'invalid argument "x" for "--kube-api-qps" flag: strconv.ParseFloat: parsing "x": invalid syntax',
        ),
        (
            ["--kube-api-qps=1e400"],
            'invalid argument "1e400" for "--kube-api-qps" flag: strconv.ParseFloat: parsing "1e400": '
            "value out of range",
        ),
        (
            ["--kube-api-burst=2147483648"],
            'invalid argument "2147483648" for "--kube-api-burst" flag: '
            'strconv.ParseInt: parsing "2147483648": value out of range',
        ),
        (
            ["--tls-sni-cert-key=a"],
            'invalid argument "a" for "--tls-sni-cert-key" flag: '
            "expected comma separated certificate and key file paths",
        ),
        (
            ["--tls-sni-cert-key=c,k:"],
            'invalid argument "c,k:" for "--tls-sni-cert-key" flag: empty names list is not allowed',
        ),
        (["--vmodule=a"], 'invalid argument "a" for "--vmodule" flag: "a" does not have the pattern=N format'),
        (
            ["--vmodule=foo=-1"],
            'invalid argument "foo=-1" for "--vmodule" flag: '
            'parsing verbosity in "foo=-1": strconv.ParseUint: parsing "-1": invalid syntax',
        ),
        (
            ["--version=maybe"],
            'invalid argument "maybe" for "--version" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (["--allow-metric-labels=x"], 'invalid argument "x" for "--allow-metric-labels" flag: '
         "x must be formatted as key=value"),
    ],
)  # fmt: skip
def test_messages(argv, message):
    with pytest.raises(UsageError) as caught:
        parse_options(argv)
    assert str(caught.value) == message


@pytest.mark.parametrize("flag", ["--log-dir=x", "--alsologtostderr", "--logtostderr", "--feature-x"])
def test_flags_of_long_ago_are_unknown(flag):
    with pytest.raises(UsageError, match="unknown flag: --"):
        parse_options([flag])


@pytest.mark.parametrize(
    ("argv", "name", "value"),
    [
        (["--config=a"], "config", "a"),
        (["--config", "a"], "config", "a"),
        (["--config", "--v"], "config", "--v"),
        (["--config=a", "--config=b"], "config", "b"),
        (["--config=a=b"], "config", "a=b"),
        (["--leader_elect=0"], "leader_elect", False),
        (["--leader-elect=F"], "leader_elect", False),
        (["--leader-elect"], "leader_elect", True),
        (["-v=2"], "v", 2),
        (["-v2"], "v", 2),
        (["-v", "2"], "v", 2),
        (["--v", "3"], "v", 3),
        (["-hv4"], "v", 4),
        (["--secure-port=0x10"], "secure_port", 16),
        (["--kube-api-qps=-1.5"], "kube_api_qps", -1.5),
        (["--authorization-always-allow-paths=/a,/b"], "authorization_always_allow_paths", ["/a", "/b"]),
        (["--disabled-metrics=a", '--disabled-metrics="b,c",d'], "disabled_metrics", ["a", "b,c", "d"]),
        (["--tls-cipher-suites="], "tls_cipher_suites", []),
        (["--tls-curve-preferences=29,23"], "tls_curve_preferences", [29, 23]),
        (
            ["--tls-sni-cert-key=c,k", "--tls-sni-cert-key=d,e:*.x.io,y"],
            "tls_sni_cert_key",
            [SNIPair("c", "k"), SNIPair("d", "e", ("*.x.io", "y"))],
        ),
        (["--allow-metric-labels=m,l='a'"], "allow_metric_labels", {"m,l": "'a'"}),
        (["--vmodule=a=1,b*=2,"], "vmodule", {"a": 1, "b*": 2}),
        (["--log-json-info-buffer-size=1Ki"], "log_json_info_buffer_size", 1024),
        (["--version"], "version", "true"),
        (["--version=raw"], "version", "raw"),
        (["--version=0"], "version", "false"),
        (["--feature-gates=A=true", "--feature-gates=B=false"], "feature_gates", ["A=true", "B=false"]),
        (["--bind-address=::"], "bind_address", "::"),
        (["", "--config=a"], "config", "a"),
        (["--help", "x"], "help", True),
    ],
)
def test_accepted_forms(argv, name, value):
    options = parse_options(argv)
    assert getattr(options, name) == value


def test_defaults_are_not_shared():
    parse_options([]).disabled_metrics.append("x")
    assert parse_options([]).disabled_metrics == []


def test_recorded_flagz():
    """Names and texts of all flags, with what the recorded process was given."""
    recorded = gzip.decompress((DATA / "flagz.txt.gz").read_bytes()).decode().splitlines()
    argv = [
        "--authentication-kubeconfig=kc",
        "--authorization-kubeconfig=kc",
        "--config=cfg",
        "--secure-port=26459",
        "-v=3",
    ]
    ours = [f"{name}={text}" for name, text in parse_options(argv).lines() if name not in OURS]
    assert ours == recorded


def test_help_says_what_the_rate_limit_means():
    text = " ".join(help_text().split())
    assert "API requests a second, and so the most pods bound a second. Not used with --config. (default 50)" in text


def test_options_have_every_flag():
    assert set(Options.__struct_fields__) == {flag.attribute for flag in FLAGS} | {"given"}
    assert parse_options(["--v=1", "--config", "x"]).given == {"v", "config"}


def test_help_shows_ten_sections_in_order():
    text = help_text()
    headers = [line.removesuffix(" flags:") for line in text.splitlines() if line.endswith(" flags:")]
    assert headers == list(SECTIONS)
    assert len(headers) == 10
    assert "\nUsage:\n  kube-scheduler [flags]\n" in text
    assert "policy-config-file" not in text
    assert text.endswith(usage_text())


def test_help_lines():
    lines = help_text().splitlines()
    names = [line.split("--")[1].split()[0] for line in lines if line.lstrip().startswith("-")]
    shown = [flag for flag in FLAGS if not flag.hidden]
    assert names == [
        f.name for s in SECTIONS for f in sorted((f for f in shown if f.section == s), key=lambda f: f.name)
    ]
    text = "\n".join(lines)
    for part in (
        "  -v, --v Level ",
        "  -h, --help ",
        "--version version[=true] ",
        '(default "kube-scheduler")',
        "(default [/healthz,/readyz,/livez])",
        "(default 10259)",
        "(default 5m0s)",
        "(default true)",
        "--leader-elect   ",
        "DEPRECATED: kubeconfig file",
    ):
        assert part in text
    assert all(flag.usage.startswith("DEPRECATED") for flag in FLAGS if flag.section == "Deprecated")


def test_help_wraps_to_a_terminal():
    assert all(len(line) <= 120 for line in usage_text(width=120).splitlines())
    assert max(map(len, usage_text().splitlines())) > 120
