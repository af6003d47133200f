"""TLS settings under Go's names, made into `ssl` contexts. Upstream: `component-base/cli/flag/ciphersuites_flag.go`."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skedge.client.tls import as_file
from skedge.serving.certificates import SERVING_PAIR, SNI_PAIR, CertificateError, KeyPair, names_of

VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
TLS13_SUITES: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Names that are accepted and change nothing: TLS 1.3 suites cannot be chosen."""

PREFERRED: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
INSECURE: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "ECDHE-ECDSA-RC4-SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "ECDHE-RSA-DES-CBC3-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "ECDHE-RSA-RC4-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_RC4_128_SHA": "RC4-SHA",
}
_CURVES: Final[Mapping[int, str]] = {23: "prime256v1", 24: "secp384r1", 25: "secp521r1", 29: "X25519"}
"""TLS CurveIDs this runtime can choose."""


class TlsError(ValueError):
    """A TLS setting that is not known or cannot be used."""


@dataclass(frozen=True)
class SniPair:
    """A certificate for some server names; without patterns those its certificate names (`--tls-sni-cert-key`)."""

    pair: KeyPair
    patterns: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        return self.patterns or names_of(self.pair.certificate)


@dataclass(frozen=True)
class TlsSettings:
    """The `--tls-*` flags: versions, suites and curves by Go's names and numbers. Empty: this runtime's defaults.

    Curves: the first one this runtime knows is used, it cannot take a list.
    """

    min_version: str = ""
    cipher_suites: tuple[str, ...] = ()
    curves: tuple[int, ...] = ()

    def version(self) -> ssl.TLSVersion:
        if not self.min_version:
            return ssl.TLSVersion.TLSv1_2
        try:
            return VERSIONS[self.min_version]
        except KeyError:
            raise TlsError(f'unknown tls version "{self.min_version}"') from None

    def openssl_ciphers(self) -> str:
        """OpenSSL's cipher string for the suites below TLS 1.3, or "" for its defaults."""
        names = []
        for suite in self.cipher_suites:
            name = PREFERRED.get(suite) or INSECURE.get(suite)
            if name is not None:
                names.append(name)
            elif suite not in TLS13_SUITES:
                raise TlsError(f"Cipher suite {suite} not supported or doesn't exist")
        return ":".join(names)


def server_context(
    pair: KeyPair, settings: TlsSettings, client_cas: str = "", sni: Sequence[SniPair] = ()
) -> ssl.SSLContext:
    """A context that serves `pair`, and asks clients for a certificate when there are CAs (PEM) to check it with.

    Raises TlsError or CertificateError for settings and pairs that cannot be used.
    """
    context = _context(pair, settings, client_cas)
    if sni:
        by_name = {
            name.lower(): named
            for each, named in ((each, _context(each.pair, settings, client_cas, SNI_PAIR)) for each in sni)
            for name in each.names()
        }

        def choose(connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            chosen = _for_name(by_name, (name or "").lower())
            if chosen is not None:
                connection.context = chosen

        context.sni_callback = choose
    return context


def _for_name(by_name: Mapping[str, ssl.SSLContext], name: str) -> ssl.SSLContext | None:
    return by_name.get(name) or by_name.get("*." + name.partition(".")[2])


def _context(pair: KeyPair, settings: TlsSettings, client_cas: str, failure: str = SERVING_PAIR) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    version = settings.version()
    context.minimum_version = version
    ciphers = settings.openssl_ciphers()
    if version < ssl.TLSVersion.TLSv1_2:
        ciphers = (ciphers or "DEFAULT") + ":@SECLEVEL=0"
    try:
        if ciphers:
            context.set_ciphers(ciphers)
    except ssl.SSLError:
        raise TlsError(f"no cipher suite of {', '.join(settings.cipher_suites)} is usable here") from None
    if curve := next((_CURVES[each] for each in settings.curves if each in _CURVES), ""):
        context.set_ecdh_curve(curve)
    # The chain a client proved itself with is asked for at every request; a resumed session has none.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    with as_file(pair.certificate.encode()) as certificate, as_file(pair.key.encode()) as key:
        try:
            context.load_cert_chain(certificate, key)
        except ssl.SSLError as error:
            raise CertificateError(f"{failure}: {error.reason or 'not a PEM pair'}") from None
    if client_cas.strip():
        try:
            context.load_verify_locations(cadata=client_cas)
        except ssl.SSLError:
            raise CertificateError("unable to load client CA: not a PEM bundle") from None
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
