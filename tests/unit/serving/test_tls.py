"""TLS names, contexts, and the making of certificates."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509

from serving_authority import authority
from skedge.clock import VirtualClock
from skedge.serving.certificates import (
    CertificateError,
    KeyPair,
    load_pair,
    names_of,
    pair_in_directory,
    self_signed_pair,
    write_pair,
)
from skedge.serving.tls import INSECURE, PREFERRED, SniPair, TlsError, TlsSettings, server_context

START = 1_700_000_000.0


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS10", ssl.TLSVersion.TLSv1),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3),
    ],
)
def test_versions(name: str, version: ssl.TLSVersion) -> None:
    assert TlsSettings(name).version() is version


def test_what_is_not_known() -> None:
    with pytest.raises(TlsError, match=r'^unknown tls version "TLS1\.2"$'):
        TlsSettings("TLS1.2").version()
    with pytest.raises(TlsError, match=r"^Cipher suite TLS_X not supported or doesn't exist$"):
        TlsSettings(cipher_suites=("TLS_X",)).openssl_ciphers()


def test_suites_are_translated_in_order_and_those_of_tls13_left_out() -> None:
    suites = ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA")
    assert TlsSettings(cipher_suites=suites).openssl_ciphers() == "ECDHE-RSA-AES256-GCM-SHA384:AES128-SHA"
    context = server_context(self_signed(), TlsSettings(cipher_suites=suites))
    names = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert names == ["ECDHE-RSA-AES256-GCM-SHA384", "AES128-SHA"]


def test_every_preferred_suite_is_usable() -> None:
    for suite in PREFERRED:
        server_context(self_signed(), TlsSettings(cipher_suites=(suite,)))
    assert not PREFERRED.keys() & INSECURE.keys()


def self_signed(address: str = "0.0.0.0") -> KeyPair:
    return authority("serving").issue("localhost", dns=("localhost",)) if address == "0.0.0.0" else made(address)


def made(address: str) -> KeyPair:
    return self_signed_pair(VirtualClock(START), address)


def test_a_made_pair() -> None:
    pair = made("10.1.2.3")
    leaf, ca = x509.load_pem_x509_certificates(pair.certificate.encode())
    assert leaf.subject.rfc4514_string() == "CN=localhost@1700000000"
    assert ca.subject.rfc4514_string() == leaf.issuer.rfc4514_string() == "CN=localhost-ca@1700000000"
    leaf.verify_directly_issued_by(ca)
    assert leaf.not_valid_before_utc.timestamp() == START - 3600
    assert (leaf.not_valid_after_utc.timestamp() - START) == 365 * 86400
    assert names_of(pair.certificate) == ("localhost", "127.0.0.1", "10.1.2.3")
    assert leaf.public_key().key_size == 2048  # type: ignore[union-attr]
    server_context(pair, TlsSettings())


def test_an_unspecified_address_is_no_name() -> None:
    assert names_of(made("::").certificate) == ("localhost", "127.0.0.1")


def test_a_pair_in_files(tmp_path: Path) -> None:
    pair = self_signed()
    files = pair_in_directory(str(tmp_path / "new"))
    assert [Path(file).name for file in files] == ["kube-scheduler.crt", "kube-scheduler.key"]
    write_pair(pair, *files)
    assert load_pair(*files) == pair
    assert stat.S_IMODE(Path(files[1]).stat().st_mode) == 0o600


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(CertificateError, match=f"^unable to load server certificate: {missing}: No such file"):
        load_pair(missing, missing)
    (tmp_path / "file").write_text("")
    with pytest.raises(CertificateError, match=f"^error creating self-signed certificates: .*{tmp_path}/file"):
        write_pair(self_signed(), f"{tmp_path}/file/x.crt", f"{tmp_path}/file/x.key")
    (tmp_path / "bytes").write_bytes(b"\xff")
    nothing = str(tmp_path / "bytes")
    with pytest.raises(CertificateError, match="not a PEM pair"):
        server_context(load_pair(nothing, nothing), TlsSettings())


def test_comments_between_blocks_may_be_in_any_language(tmp_path: Path) -> None:
    pair = self_signed()
    files = [tmp_path / "crt", tmp_path / "key"]
    for path, text in zip(files, pair, strict=True):
        path.write_text(f"# Autorité\n{text}", encoding="utf-8")
    server_context(load_pair(*map(str, files)), TlsSettings())


def test_pairs_that_cannot_be_used() -> None:
    one, other = self_signed(), self_signed()
    with pytest.raises(CertificateError, match="unable to load server certificate: KEY_VALUES_MISMATCH"):
        server_context(KeyPair(one.certificate, other.key), TlsSettings())
    with pytest.raises(CertificateError, match="unable to load server certificate"):
        server_context(KeyPair("", ""), TlsSettings())
    with pytest.raises(CertificateError, match="failed to load SNI cert and key: KEY_VALUES_MISMATCH"):
        server_context(one, TlsSettings(), sni=[SniPair(KeyPair(one.certificate, other.key))])
    with pytest.raises(CertificateError, match="unable to load client CA"):
        server_context(one, TlsSettings(), client_cas="rubbish")
    with pytest.raises(CertificateError, match="failed to load SNI cert and key"):
        SniPair(KeyPair("rubbish", "")).names()


def test_clients_are_asked_for_certificates_only_when_somebody_can_check_them() -> None:
    assert server_context(self_signed(), TlsSettings()).verify_mode is ssl.CERT_NONE
    context = server_context(self_signed(), TlsSettings(), authority("clients").pem)
    assert context.verify_mode is ssl.CERT_OPTIONAL


def test_sni_names_come_from_patterns_or_the_certificate() -> None:
    pair = authority("serving").issue("common", dns=("a.test", "*.b.test"))
    assert SniPair(pair).names() == ("a.test", "*.b.test")
    assert SniPair(pair, ("x",)).names() == ("x",)
    assert SniPair(authority("serving").issue("common")).names() == ("common",)
