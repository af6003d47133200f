"""A client's TLS context."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from serving_authority import authority
from skedge.client.errors import KubeconfigError
from skedge.client.tls import TlsConfig, as_file


def test_a_client_certificate_needs_no_place_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    pair = authority("clients").issue("admin")
    trusted = (authority("serving").pem + "# Autorité\n").encode()
    config = TlsConfig(ca_data=trusted, cert_data=pair.certificate.encode(), key_data=pair.key.encode())
    assert len(config.context().get_ca_certs()) == 1
    with as_file(b"content") as name:
        assert Path(name).read_bytes() == b"content"


def test_a_pair_that_does_not_match() -> None:
    one, other = authority("clients").issue("one"), authority("clients").issue("other")
    config = TlsConfig(
        cert_data=one.certificate.encode(), key_data=other.key.encode(), origin=(("cert", "users[0].cert"),)
    )
    with pytest.raises(KubeconfigError, match=r"^users\[0\]\.cert: .* \(key values mismatch\)$"):
        config.context()
