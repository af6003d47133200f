"""TLS settings of a client and the `ssl.SSLContext` made of them, rebuilt when certificate files are rotated."""

from __future__ import annotations

import base64
import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import IO

from skedge.client.errors import KubeconfigError

_PEM_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """Where trust and our own certificate come from; data wins over files. `server_name` replaces the host name (SNI).

    `origin` maps a field (`ca`, `cert`, `key`) to its place in the kubeconfig, for errors.
    """

    ca_data: bytes = b""
    ca_file: str = ""
    cert_data: bytes = b""
    cert_file: str = ""
    key_data: bytes = b""
    key_file: str = ""
    insecure: bool = False
    server_name: str = ""
    origin: tuple[tuple[str, str], ...] = ()

    def where(self, what: str) -> str:
        return dict(self.origin).get(what, what)

    @property
    def is_set(self) -> bool:
        """Whether anything here asks for TLS, so that a server without scheme means https."""
        return bool(self.ca_data or self.ca_file or self.cert_data or self.cert_file or self.insecure)

    def fingerprint(self) -> tuple[tuple[str, int, int], ...]:
        """Changes when one of the files is replaced."""
        found = []
        for name in (self.ca_file, self.cert_file, self.key_file):
            if name:
                try:
                    stat = os.stat(name)
                    found.append((name, stat.st_mtime_ns, stat.st_ino))
                except OSError:
                    found.append((name, 0, 0))
        return tuple(found)

    def ca_base64(self) -> str:
        """The trusted certificates as an exec plugin gets them."""
        pem = self.ca_data or (self._read(self.ca_file, "ca") if self.ca_file else b"")
        return base64.b64encode(pem).decode("ascii")

    def context(self, certificate: tuple[bytes, bytes] | None = None) -> ssl.SSLContext:
        """Build the context; `certificate` (PEM certificate, key) from a plugin takes the place of the configured one.

        Raises KubeconfigError naming the field whose file or data cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_alpn_protocols(["http/1.1"])
        # As Go does it: any trusted certificate may end the chain, and the subject's common name is no host name.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.hostname_checks_common_name = False
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca_data or self.ca_file:
            pem = self.ca_data or self._read(self.ca_file, "ca")
            try:
                context.load_verify_locations(cadata=b"\n".join(_PEM_CERTIFICATE.findall(pem)).decode("ascii"))
            except (ssl.SSLError, ValueError) as error:
                raise KubeconfigError(f"{self.where('ca')}: holds no usable PEM certificate ({_why(error)})") from None
        else:
            context.load_default_certs()
        if certificate is not None:
            self._load_pair(context, certificate[0], certificate[1])
        elif self.cert_data or self.cert_file:
            cert = self.cert_data or self._read(self.cert_file, "cert")
            key = self.key_data or self._read(self.key_file, "key")
            self._load_pair(context, cert, key)
        return context

    def _read(self, name: str, what: str) -> bytes:
        try:
            with open(name, "rb") as file:
                return file.read()
        except OSError as error:
            raise KubeconfigError(f"{self.where(what)}: {name}: {(error.strerror or str(error)).lower()}") from None

    def _load_pair(self, context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
        try:
            with as_file(cert.rstrip() + b"\n" + key) as name:
                context.load_cert_chain(name, password=lambda: b"")
        except (ssl.SSLError, OSError, ValueError) as error:
            where = self.where("cert")
            raise KubeconfigError(
                f"{where}: the client certificate and its key cannot be used ({_why(error)})"
            ) from None


@contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Content as a path while OpenSSL reads it, which takes certificates from nowhere else.

    In memory where the system can: the file system may be read-only, and a key is best not in it.
    """
    in_memory = hasattr(os, "memfd_create")
    file: IO[bytes]
    with open(os.memfd_create("pem"), "wb") if in_memory else NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if in_memory else file.name


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or error).replace("_", " ").lower()
