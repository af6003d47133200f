"""TLS of the server: certificates given as files, or generated (a CA, a serving certificate, client certificates)."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class ServerTLS:
    """Files of the serving certificate, and of the CA that signs client certificates (None: none are asked for)."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def context(self) -> ssl.SSLContext:
        """A server context. Raises OSError and ssl.SSLError for unusable files."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.cert, self.key)
        if self.client_ca is not None:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def certificates(directory: Path, host: str, now: float) -> ServerTLS:
    """A server's certificate from a directory, where everything is made that is missing: the certificates of an
    authority, of the server on `host`, and of an administrator (`admin.crt`, `admin.key`)."""
    authority = Authority(directory, now)
    if not (directory / "admin.crt").exists():
        authority.client("admin", ["system:masters"])
    return authority.serving(sorted({host, "127.0.0.1", "localhost"}))


class Authority:
    """A certificate authority in a directory: `ca.crt`, `ca.key`, and what it issued. Made when it is not there."""

    def __init__(self, directory: Path, now: float) -> None:
        self.directory = directory
        self._now = datetime.fromtimestamp(now, UTC)
        directory.mkdir(parents=True, exist_ok=True)
        self.ca_cert = directory / "ca.crt"
        self._ca_key = directory / "ca.key"
        if not self.ca_cert.exists() or not self._ca_key.exists():
            self._make_ca()

    def serving(self, hosts: Sequence[str]) -> ServerTLS:
        """A serving certificate for host names and addresses."""
        cert, key = self._issue("server", "kube-apiserver", (), hosts, server=True)
        return ServerTLS(cert, key, self.ca_cert)

    def client(self, name: str, groups: Sequence[str] = ()) -> tuple[Path, Path]:
        """Certificate and key files of a client: CN is the user, O the groups."""
        return self._issue(name.replace(":", "-"), name, groups, (), server=False)

    def _make_ca(self) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("skedge-ca", ())
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        cert = (
            self._builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        _save(self.ca_cert, self._ca_key, cert, key)

    def _issue(
        self, file: str, name: str, groups: Sequence[str], hosts: Sequence[str], *, server: bool
    ) -> tuple[Path, Path]:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        cert_file, key_file = self.directory / f"{file}.crt", self.directory / f"{file}.key"
        ca = x509.load_pem_x509_certificate(self.ca_cert.read_bytes())
        ca_key = serialization.load_pem_private_key(self._ca_key.read_bytes(), None)
        assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(_name(name, groups), ca.subject, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        builder = builder.add_extension(authority, critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_san(host) for host in hosts]), critical=False)
        _save(cert_file, key_file, builder.sign(ca_key, hashes.SHA256()), key)
        return cert_file, key_file

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        from cryptography import x509

        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - timedelta(minutes=5))
            .not_valid_after(self._now + _LIFETIME)
        )


def _name(common: str, groups: Sequence[str]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _san(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _save(cert_file: Path, key_file: Path, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    from cryptography.hazmat.primitives import serialization

    pem = serialization.Encoding.PEM
    key_file.touch(mode=0o600)
    key_file.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    cert_file.write_bytes(cert.public_bytes(pem))
