"""An extender over HTTP: `POST PREFIX/VERB` with the names of the extender v1 types, which have no JSON tags.

Upstream: `pkg/scheduler/extender.go`, `kube-scheduler/extender/v1/types.go`. Replies are read as Go reads them: names
in any case, null and absent alike.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec

from skedge.client.errors import KubeconfigError
from skedge.client.tls import TlsConfig
from skedge.config import types as config_types
from skedge.framework.ports import ExtenderError, ExtenderFiltered, ExtenderVictims

DEFAULT_TIMEOUT: Final = 5.0
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_encode = msgspec.json.Encoder().encode


class PodRef(Protocol):
    """As much of a pod as is needed here."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...


class Bodies(Protocol):
    """Objects as JSON, all their fields, as the API server sent them."""

    def pod(self, pod: PodRef) -> bytes: ...

    def node(self, name: str) -> bytes: ...


def connect(
    configs: Sequence[config_types.Extender], bodies: Bodies, may_bind: Callable[[], Awaitable[None]] | None = None
) -> list[HttpExtender]:
    """The extenders of a configuration. Raises ValueError naming the field that cannot be used.

    `may_bind` is awaited before an extender is asked to bind: it makes a change in our name.
    """
    return [HttpExtender(config, bodies, f"extenders[{i}]", may_bind) for i, config in enumerate(configs)]


class HttpExtender:
    """One extender. Connections are made when they are needed, inside a running loop; `close` ends them."""

    def __init__(
        self,
        config: config_types.Extender,
        bodies: Bodies,
        where: str = "extender",
        may_bind: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._may_bind = may_bind
        self.name = config.url_prefix
        self.weight = config.weight if config.prioritize_verb else 0
        self.ignorable = config.ignorable
        self.managed_resources = frozenset(each.name for each in config.managed_resources)
        self.filters = bool(config.filter_verb)
        self.prioritizes = bool(config.prioritize_verb)
        self.preempts = bool(config.preempt_verb)
        self.binds = bool(config.bind_verb)
        self._config = config
        self._by_name = config.node_cache_capable
        self._bodies = bodies
        self._timeout = config.http_timeout.seconds or DEFAULT_TIMEOUT
        self._ssl = _tls_context(config, where)
        self._server_name = (config.tls_config.server_name or None) if config.tls_config else None
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    # --- verbs --------------------------------------------------------------------------------------------------------

    async def filter(self, pod: PodRef, nodes: Sequence[str]) -> ExtenderFiltered:
        """`Extender.filter`."""
        reply = _Reply(await self._post(self._config.filter_verb, self._args(pod, nodes)), "filter", self.name)
        error = reply.text("Error")
        if error:
            raise ExtenderError(error)
        failed, unresolvable = reply.texts("FailedNodes"), reply.texts("FailedAndUnresolvableNodes")
        listed = reply.get("NodeNames")
        if self._by_name and listed is not None:
            known = set(nodes)
            names = [reply.is_text(name) for name in reply.items(listed)]
            for name in names:
                if name not in known:
                    raise ExtenderError(
                        f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node '
                        "list"
                    )
            return ExtenderFiltered(names, failed, unresolvable, False)
        sent = reply.get("Nodes")
        items = [] if sent is None else reply.items(_find(sent, "items"))
        names = [reply.is_text(_find(_find(node, "metadata"), "name")) for node in items]
        return ExtenderFiltered(names, failed, unresolvable, sent is not None)

    async def prioritize(self, pod: PodRef, nodes: Sequence[str]) -> Mapping[str, int]:
        """`Extender.prioritize`."""
        answer = await self._post(self._config.prioritize_verb, self._args(pod, nodes))
        reply = _Reply({}, "prioritize", self.name)
        return {
            reply.is_text(_find(entry, "Host")): reply.is_number(_find(entry, "Score")) for entry in reply.items(answer)
        }

    async def preempt(
        self, pod: PodRef, candidates: Mapping[str, tuple[Sequence[PodRef], int]]
    ) -> Mapping[str, ExtenderVictims]:
        """`Extender.preempt`."""
        body: dict[str, Any] = {
            "Pod": msgspec.Raw(self._bodies.pod(pod)),
            "NodeNameToVictims": None,
            "NodeNameToMetaVictims": None,
        }
        victims = {
            node: {
                "Pods": [
                    {"UID": victim.uid} if self._by_name else msgspec.Raw(self._bodies.pod(victim)) for victim in pods
                ],
                "NumPDBViolations": violations,
            }
            for node, (pods, violations) in candidates.items()
        }
        body["NodeNameToMetaVictims" if self._by_name else "NodeNameToVictims"] = victims
        reply = _Reply(await self._post(self._config.preempt_verb, body), "preempt", self.name)
        return {
            node: ExtenderVictims(
                [reply.is_text(_find(victim, "UID")) for victim in reply.items(_find(entry, "Pods"))],
                reply.is_number(_find(entry, "NumPDBViolations")),
            )
            for node, entry in reply.mapping(reply.get("NodeNameToMetaVictims")).items()
        }

    async def bind(self, pod: PodRef, node_name: str) -> None:
        """`Extender.bind`."""
        if self._may_bind is not None:
            await self._may_bind()
        body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
        error = _Reply(await self._post(self._config.bind_verb, body), "bind", self.name).text("Error")
        if error:
            raise ExtenderError(error)

    def _args(self, pod: PodRef, nodes: Sequence[str]) -> dict[str, Any]:
        objects = None
        if not self._by_name:
            objects = {"metadata": {}, "items": [msgspec.Raw(self._bodies.node(name)) for name in nodes]}
        return {
            "Pod": msgspec.Raw(self._bodies.pod(pod)),
            "Nodes": objects,
            "NodeNames": list(nodes) if self._by_name else None,
        }

    # --- HTTP ---------------------------------------------------------------------------------------------------------

    async def _post(self, verb: str, body: Mapping[str, Any]) -> Any:
        url = f"{self.name.rstrip('/')}/{verb}"
        try:
            async with self._connected().post(
                url,
                data=_encode(body),
                headers={"Content-Type": "application/json"},
                server_hostname=self._server_name,
            ) as response:
                if response.status != 200:
                    raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
                raw = await response.read()
        except TimeoutError:
            raise ExtenderError(f'Post "{url}": no answer within {self._timeout:g} s') from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ExtenderError(f'Post "{url}": {error or type(error).__name__}') from error
        try:
            return msgspec.json.decode(raw)
        except msgspec.DecodeError as error:
            raise ExtenderError(f"cannot read the reply to {verb} of extender {self.name}: {error}") from None

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._ssl),
                timeout=aiohttp.ClientTimeout(total=self._timeout),
                trust_env=urlsplit(self.name).hostname not in _LOOPBACK,
            )
        return self._session


def _tls_context(config: config_types.Extender, where: str) -> ssl.SSLContext | bool:
    """True: the system's certificates are trusted. With `enableHTTPS` and no CA any certificate is taken."""
    tls = config.tls_config or config_types.ExtenderTLS()
    insecure = tls.insecure or (config.enable_https and not (tls.ca_file or tls.ca_data))
    if config.tls_config is None and not insecure:
        return True
    made = TlsConfig(
        ca_data=tls.ca_data,
        ca_file=tls.ca_file,
        cert_data=tls.cert_data,
        cert_file=tls.cert_file,
        key_data=tls.key_data,
        key_file=tls.key_file,
        insecure=insecure,
        server_name=tls.server_name,
        origin=tuple(
            (what, f"{where}.tlsConfig.{what}{'Data' if data else 'File'}")
            for what, data in (("ca", tls.ca_data), ("cert", tls.cert_data), ("key", tls.key_data))
        ),
    )
    try:
        return made.context()
    except KubeconfigError as error:
        raise ValueError(str(error)) from error


class _Reply:
    """A decoded reply; what is not as it should be raises ExtenderError."""

    def __init__(self, value: Any, verb: str, extender: str) -> None:
        self._what = f"the reply to {verb} of extender {extender}"
        self._value = self.mapping(value)

    def get(self, name: str) -> Any:
        return _find(self._value, name)

    def text(self, name: str) -> str:
        return self.is_text(self.get(name))

    def texts(self, name: str) -> dict[str, str]:
        return {key: self.is_text(value) for key, value in self.mapping(self.get(name)).items()}

    def mapping(self, value: Any) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._error("an object", value)
        return value

    def items(self, value: Any) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._error("a list", value)
        return value

    def is_text(self, value: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._error("a string", value)
        return value

    def is_number(self, value: Any) -> int:
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._error("an integer", value)
        return value

    def _error(self, wanted: str, value: Any) -> ExtenderError:
        return ExtenderError(f"{self._what} has {str(value)[:40]!r} where {wanted} is expected")


def _find(value: Any, name: str) -> Any:
    """A member of an object by its name, in any case if need be."""
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    lower = name.lower()
    return next((member for key, member in value.items() if key.lower() == lower), None)
