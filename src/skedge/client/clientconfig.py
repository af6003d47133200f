"""Where the API server is and how to be let in: one context of a kubeconfig, or the service account of a pod.

Upstream: `client-go/tools/clientcmd/client_config.go`, `client-go/rest/config.go` (`InClusterConfig`).
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from skedge.client.credentials import (
    Credentials,
    StaticCredentials,
    TokenFile,
    basic,
    bearer,
    impersonation,
)
from skedge.client.errors import KubeconfigError
from skedge.client.exec_plugin import ExecPlugin, exec_config
from skedge.client.kubeconfig import Fields, Kubeconfig
from skedge.client.oidc import OidcProvider
from skedge.client.tls import TlsConfig
from skedge.clock import Clock
from skedge.telemetry.logs import get_logger

log = get_logger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Everything a transport needs. `server` is a URL without trailing slash; its path, if any, is a prefix.

    `proxy` is a URL or "" for a direct connection. `headers` are sent with every request (impersonation).
    """

    server: str
    tls: TlsConfig = field(default_factory=TlsConfig)
    credentials: Credentials = field(default_factory=StaticCredentials)
    proxy: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    namespace: str = "default"


def load_kubeconfig(
    path: str | os.PathLike[str] | None = None,
    *,
    context: str = "",
    env: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
) -> ClientConfig:
    """The client configuration of a context, by default the current one (see `Kubeconfig.load` for which files).

    Raises KubeconfigError, one line that names the file and the field. Token files and certificates are read here or on
    first use; exec plugins and issuers are asked on the first request.
    """
    cluster, user, namespace = Kubeconfig.load(path, env).context(context)
    server = _server(cluster, cluster.text("server"))
    proxy = _proxy_url(cluster)
    ca_data, ca_file = cluster.data("certificate-authority-data"), cluster.file_path("certificate-authority")
    if ca_data and ca_file:
        raise cluster.error("certificate-authority", "is set together with certificate-authority-data; keep one")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and (ca_data or ca_file):
        raise cluster.error("insecure-skip-tls-verify", "cannot be true when a certificate authority is given")
    tls = TlsConfig(
        ca_data=ca_data,
        ca_file=ca_file,
        insecure=insecure,
        server_name=cluster.text("tls-server-name"),
        origin=(("ca", cluster.where("certificate-authority-data" if ca_data else "certificate-authority")),),
    )
    cluster.flag("disable-compression")  # nothing is ever compressed
    info = _exec_cluster(cluster, server, tls, proxy)
    cluster.refuse_rest()
    credentials: Credentials = StaticCredentials()
    headers: tuple[tuple[str, str], ...] = ()
    if user is not None:
        tls = _client_certificate(user, tls)
        credentials = _credentials(user, info, clock)
        headers = _impersonation(user)
        user.raw("extensions")
        user.refuse_rest()
    url = urlsplit(server if "://" in server else f"{'https' if tls.is_set else 'http'}://{server}")
    if url.scheme == "https":
        tls.context()  # fail now rather than in the first request
    return ClientConfig(
        server=urlunsplit((url.scheme, url.netloc, url.path.rstrip("/"), "", "")),
        tls=tls,
        credentials=credentials,
        proxy=proxy or proxy_from_environment(url, env),
        headers=headers,
        namespace=namespace,
    )


def load_in_cluster(
    *, env: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT, clock: Clock | None = None
) -> ClientConfig:
    """The client configuration of a pod: its service account's token, re-read as it is rotated."""
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise KubeconfigError(
            "unable to load in-cluster configuration, "
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
        )
    token, ca, namespace = directory / "token", directory / "ca.crt", directory / "namespace"
    if not os.access(token, os.R_OK):
        raise KubeconfigError(f"unable to load in-cluster configuration, {token} cannot be read")
    tls = TlsConfig(ca_file=str(ca) if ca.exists() else "", origin=(("ca", "in-cluster configuration"),))
    tls.context()
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        name = namespace.read_text("utf-8").strip()
    except OSError:
        name = ""
    return ClientConfig(
        server=server,
        tls=tls,
        credentials=TokenFile(str(token), "in-cluster configuration", clock=clock),
        proxy=proxy_from_environment(urlsplit(server), env),
        namespace=name or "default",
    )


def with_server(config: ClientConfig, server: str, *, env: Mapping[str, str] = os.environ) -> ClientConfig:
    """The same credentials for another server, a URL or host:port. Raises KubeconfigError."""
    url = urlsplit(server if "://" in server else f"{'https' if config.tls.is_set else 'http'}://{server}")
    if not _is_server(url):
        raise KubeconfigError(f"{server} is not a URL or host:port of an API server")
    address = urlunsplit((url.scheme, url.netloc, url.path.rstrip("/"), "", ""))
    return replace(config, server=address, proxy=config.proxy or proxy_from_environment(url, env))


def proxy_from_environment(url: SplitResult, env: Mapping[str, str]) -> str:
    """The proxy that HTTPS_PROXY or HTTP_PROXY names for `url` unless NO_PROXY excludes it; never for loopback."""
    host = url.hostname or ""
    name = f"{url.scheme}_proxy"
    proxy = env.get(name.upper()) or env.get(name) or ""
    if not proxy or host == "localhost" or _excluded(host, env.get("NO_PROXY") or env.get("no_proxy") or ""):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _excluded(host: str, no_proxy: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is not None and address.is_loopback:
        return True
    for entry in (part.strip().lower() for part in no_proxy.split(",")):
        if entry == "*":
            return True
        if address is not None:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                continue
        elif entry and (host == entry.lstrip(".") or host.endswith("." + entry.lstrip("."))):
            return True
    return False


def _server(cluster: Fields, server: str) -> str:
    if not server:
        raise cluster.error("server", "must be set")
    if not _is_server(urlsplit(server if "://" in server else f"https://{server}")):
        raise cluster.error("server", f"{server} is not a URL or host:port")
    return server


def _is_server(url: SplitResult) -> bool:
    try:
        valid = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        return False
    return valid and not url.query and not url.fragment


def _proxy_url(cluster: Fields) -> str:
    proxy = cluster.text("proxy-url")
    if not proxy:
        return ""
    url = urlsplit(proxy)
    if url.scheme not in ("http", "https"):
        raise cluster.error("proxy-url", f"scheme {url.scheme or '(none)'} is not supported, expected http or https")
    if not url.hostname:
        raise cluster.error("proxy-url", f"{proxy} names no host")
    return proxy


def _exec_cluster(cluster: Fields, server: str, tls: TlsConfig, proxy: str) -> dict[str, Any]:
    """`spec.cluster` of the ExecCredential that a plugin with provideClusterInfo gets."""
    info: dict[str, Any] = {"server": server}
    if tls.server_name:
        info["tls-server-name"] = tls.server_name
    if tls.insecure:
        info["insecure-skip-tls-verify"] = True
    if tls.ca_data or tls.ca_file:
        info["certificate-authority-data"] = tls.ca_base64()
    if proxy:
        info["proxy-url"] = proxy
    if cluster.flag("disable-compression"):
        info["disable-compression"] = True
    for i, item in enumerate(cluster.items("extensions")):
        extension = Fields(item, f"{cluster.path}.extensions[{i}]", cluster.file)
        if extension.text("name") == EXEC_EXTENSION:
            info["config"] = extension.raw("extension")
    return info


def _client_certificate(user: Fields, tls: TlsConfig) -> TlsConfig:
    cert_data, cert_file = user.data("client-certificate-data"), user.file_path("client-certificate")
    key_data, key_file = user.data("client-key-data"), user.file_path("client-key")
    for name, data, file in (("client-certificate", cert_data, cert_file), ("client-key", key_data, key_file)):
        if data and file:
            raise user.error(name, f"is set together with {name}-data; keep one")
    if (cert_data or cert_file) and not (key_data or key_file):
        raise user.error("client-key", "must be set (or client-key-data) to use the client certificate")
    if (key_data or key_file) and not (cert_data or cert_file):
        raise user.error("client-certificate", "must be set (or client-certificate-data) to use the client key")
    cert = user.where("client-certificate-data" if cert_data else "client-certificate")
    key = user.where("client-key-data" if key_data else "client-key")
    return replace(
        tls,
        cert_data=cert_data,
        cert_file=cert_file,
        key_data=key_data,
        key_file=key_file,
        origin=(*tls.origin, ("cert", cert), ("key", key)),
    )


def _credentials(user: Fields, cluster_info: dict[str, Any], clock: Clock | None) -> Credentials:
    token, token_file = user.text("token"), user.file_path("tokenFile")
    username, password = user.text("username"), user.text("password")
    if (token or token_file) and (username or password):
        raise user.error("username", "basic auth is set together with a token; keep one")
    plugin = ExecPlugin(exec_config(user.mapping("exec"), cluster_info), clock=clock) if "exec" in user else None
    provider = user.mapping("auth-provider") if "auth-provider" in user else None
    if provider is not None and plugin is not None:
        raise user.error("auth-provider", "is set together with exec; keep one")
    oidc = None
    if provider is not None:
        name = provider.text("name")
        if name != "oidc":
            hint = ", use an exec plugin" if name in ("gcp", "azure") else ""
            raise provider.error("name", f'"{name}" is not supported{hint}')
        oidc = OidcProvider(provider.mapping("config"), user.path.split('"')[1], clock=clock)
        provider.refuse_rest()
    chosen: Credentials | None = None
    if token_file:
        chosen = TokenFile(token_file, user.where("tokenFile"), fallback=token, clock=clock)
    elif token:
        chosen = StaticCredentials(bearer(token))
    elif username or password:
        chosen = StaticCredentials(basic(username, password))
    if chosen is None:
        return plugin or oidc or StaticCredentials()
    if plugin is not None or oidc is not None:
        # kubectl prefers the credentials that stand in the file, too.
        unused = "exec" if plugin is not None else "auth-provider"
        log.warning("Not used: the user has a token or password of its own", field=user.where(unused))
    return chosen


def _impersonation(user: Fields) -> tuple[tuple[str, str], ...]:
    as_user, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    extra = user.mapping("as-user-extra")
    values = {key: extra.texts(key) for key in extra.keys()}  # noqa: SIM118 (no mapping)
    if not as_user:
        for key, value in (("as-uid", uid), ("as-groups", groups), ("as-user-extra", values)):
            if value:
                raise user.error(key, "cannot be used without as")
    return impersonation(as_user, uid, groups, values)
