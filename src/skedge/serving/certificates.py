"""The serving certificate: files that are given, a pair kept in a directory, or a self-signed one made on the spot.

Upstream: `apiserver/pkg/server/options/serving.go`, `client-go/util/cert`. `cryptography` is imported only when a pair
has to be made or its names are needed.
"""

from __future__ import annotations

import ipaddress
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from skedge.clock import Clock

if TYPE_CHECKING:
    from cryptography import x509

_PAIR_NAME: Final = "kube-scheduler"
_KEY_BITS: Final = 2048
_VALID: Final = timedelta(days=365)


class CertificateError(Exception):
    """A pair that cannot be read or made; the message names the file."""


class KeyPair(NamedTuple):
    """PEM texts: the certificate with its chain, and its key."""

    certificate: str
    key: str


SERVING_PAIR: Final = "unable to load server certificate"
SNI_PAIR: Final = "failed to load SNI cert and key"
"""What an error about a pair begins with."""


def read_pem(path: str) -> str:
    """A file of PEM blocks. What is not ASCII goes: it is in the comments between blocks, and OpenSSL takes none."""
    return Path(path).read_bytes().decode("ascii", "ignore")


def load_pair(certificate_file: str, key_file: str, failure: str = SERVING_PAIR) -> KeyPair:
    """Read a pair from two files; CertificateError, beginning with `failure`, names the file."""
    texts = []
    for path in (certificate_file, key_file):
        try:
            texts.append(read_pem(path))
        except OSError as error:
            raise CertificateError(f"{failure}: {path}: {error.strerror}") from None
    return KeyPair(*texts)


def pair_in_directory(directory: str) -> tuple[str, str]:
    """Where a pair is looked for, or written to, in a `--cert-dir`."""
    return os.path.join(directory, f"{_PAIR_NAME}.crt"), os.path.join(directory, f"{_PAIR_NAME}.key")


def self_signed_pair(clock: Clock, bind_address: str = "") -> KeyPair:
    """A pair signed by a CA of its own: for `localhost`, 127.0.0.1 and a specific `bind_address`, valid for a year."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = clock.now()
    start = datetime.fromtimestamp(int(now), UTC) - timedelta(hours=1)

    def named(kind: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localhost{kind}@{int(now)}")])

    def usage(*, ca: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=True, key_encipherment=True, key_cert_sign=ca, content_commitment=False,
            data_encipherment=False, key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip

    def builder(subject: x509.Name, key: rsa.RSAPrivateKey, *, ca: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(named("-ca"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + _VALID + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(usage(ca=ca), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        )

    ca_key, leaf_key = (rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS) for _ in range(2))
    ca = builder(named("-ca"), ca_key, ca=True).sign(ca_key, hashes.SHA256())
    leaf = (
        builder(named(""), leaf_key, ca=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_alternative_names(bind_address)), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key_text = leaf_key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    return KeyPair((leaf.public_bytes(pem) + ca.public_bytes(pem)).decode(), key_text.decode())


def _alternative_names(bind_address: str) -> list[x509.GeneralName]:
    from cryptography import x509

    addresses = [ipaddress.ip_address("127.0.0.1")]
    with suppress(ValueError):
        bound = ipaddress.ip_address(bind_address)
        if not bound.is_unspecified and bound not in addresses:
            addresses.append(bound)
    return [x509.DNSName("localhost"), *map(x509.IPAddress, addresses)]


def write_pair(pair: KeyPair, certificate_file: str, key_file: str) -> None:
    """Keep a pair in files; the key readable by its owner only."""
    try:
        os.makedirs(os.path.dirname(certificate_file) or ".", exist_ok=True)
        for path, text, mode in ((certificate_file, pair.certificate, 0o644), (key_file, pair.key, 0o600)):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="ascii") as file:
                file.write(text)
    except OSError as error:
        raise CertificateError(f"error creating self-signed certificates: {error.filename}: {error.strerror}") from None


def names_of(certificate: str) -> tuple[str, ...]:
    """The DNS names and addresses a certificate stands for; without any, its common name."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        leaf = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError:
        raise CertificateError(f"{SNI_PAIR}: not a PEM certificate") from None
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return tuple(str(each.value) for each in leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    found = [*names.get_values_for_type(x509.DNSName), *names.get_values_for_type(x509.IPAddress)]
    return tuple(map(str, found))
