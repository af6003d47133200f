"""What flags say of serving."""

from __future__ import annotations

from pathlib import Path

import pytest

from skedge.app.serving import ServingSettings, serving_settings
from skedge.client.errors import KubeconfigError
from skedge.config.fields import ConfigError
from skedge.config.options import parse_options
from skedge.serving.authentication import RequestHeaderConfig
from skedge.serving.server import Listen, SniFiles


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def settings(*flags: str) -> ServingSettings:
    return serving_settings(parse_options(list(flags)))


def test_defaults() -> None:
    found = settings()
    assert found.listen == Listen("0.0.0.0", 10259)
    assert found.insecure is None
    assert (found.authentication, found.authorization) == (None, None)
    assert (found.token_ttl, found.allowed_ttl, found.denied_ttl) == (10.0, 10.0, 10.0)
    assert found.allowed_paths == ("/healthz", "/readyz", "/livez")
    assert found.tolerate_lookup_failure


def test_no_port() -> None:
    assert settings("--secure-port=0", "--authentication-kubeconfig=/nowhere").listen is None


def test_everything(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("PEM")
    found = settings(
        "--bind-address=127.0.0.1",
        "--secure-port=1234",
        "--permit-port-sharing",
        "--tls-min-version=VersionTLS13",
        "--tls-sni-cert-key=c,k:*.example.com,example.com",
        "--cert-dir=/certs",
        "--port=10251",
        "--address=127.0.0.1",
        f"--requestheader-client-ca-file={tmp_path}/ca",
        "--requestheader-allowed-names=front",
        "--authentication-skip-lookup",
        "--authorization-always-allow-paths=/healthz,/metrics",
        "--authentication-token-webhook-cache-ttl=1m",
    )
    assert found.listen == Listen("127.0.0.1", 1234, share_port=True)
    assert found.insecure == Listen("127.0.0.1", 10251)
    assert found.secure.settings.min_version == "VersionTLS13"
    assert found.secure.directory == "/certs"
    assert found.secure.sni == (SniFiles("c", "k", ("*.example.com", "example.com")),)
    assert found.request_header == RequestHeaderConfig("PEM", ("front",))
    assert found.skip_lookup
    assert found.allowed_paths == ("/healthz", "/metrics")
    assert found.token_ttl == 60.0


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--requestheader-client-ca-file: .*/none: No such file"):
        settings(f"--requestheader-client-ca-file={tmp_path}/none")
    with pytest.raises(KubeconfigError, match="none"):
        settings(f"--authentication-kubeconfig={tmp_path}/none")
