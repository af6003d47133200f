"""A certificate authority for tests of serving: small keys, made once a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from skedge.serving.certificates import KeyPair

_PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates; `intermediate` makes another authority below this one."""

    def __init__(self, name: str, issuer: Authority | None = None) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer, signer_name = (issuer._key, issuer._name) if issuer else (self._key, self._name)
        self._certificate = self._sign(self._name, self._key, signer, signer_name, ca=True)
        self.pem = self._certificate.public_bytes(_PEM).decode()

    def issue(self, name: str, *organizations: str, dns: tuple[str, ...] = (), chain: str = "") -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._sign(subject, key, self._key, self._name, ca=False, dns=dns)
        private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return KeyPair(made.public_bytes(_PEM).decode() + chain, private.decode())

    @staticmethod
    def _sign(
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        signer: ec.EllipticCurvePrivateKey,
        signer_name: x509.Name,
        *,
        ca: bool,
        dns: tuple[str, ...] = (),
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(signer_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if dns:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in dns]), False)
        return builder.sign(signer, hashes.SHA256())


@cache
def authority(name: str) -> Authority:
    """The authority of this name: `serving`, `clients`, `proxies`, `strangers`, or `below clients`."""
    return Authority(name, authority("clients") if name == "below clients" else None)
