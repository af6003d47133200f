"""Credentials from a program (`users[].user.exec`): `ExecCredential` v1 and v1beta1.

The program runs once for all requests that wait for it, again when its answer expires, and again after a 401.
Upstream: `client-go/plugin/pkg/client/auth/exec`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from skedge.client.credentials import RenewingCredentials, bearer
from skedge.client.errors import KubeconfigError
from skedge.client.kubeconfig import Fields
from skedge.clock import Clock

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
NON_INTERACTIVE_TIMEOUT = 120.0
"""Seconds a program may take when nobody can be asked anything."""


class _Status(msgspec.Struct, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class ExecConfig:
    """`users[].user.exec`, checked. `cluster` is None unless the program asked for it (`provideClusterInfo`)."""

    origin: str
    command: str
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    api_version: str
    interactive: bool
    install_hint: str = ""
    cluster: dict[str, Any] | None = None


def exec_config(exec_: Fields, cluster_info: dict[str, Any]) -> ExecConfig:
    """Check an `exec` field. Raises KubeconfigError for one that could not run."""
    version, command = exec_.text("apiVersion"), exec_.text("command")
    if not version:
        raise exec_.error("apiVersion", f"must be set: one of {', '.join(API_VERSIONS)}")
    if version not in API_VERSIONS:
        raise exec_.error("apiVersion", f"{version} is not supported, expected one of {', '.join(API_VERSIONS)}")
    if not command:
        raise exec_.error("command", "must be set")
    if os.sep in command:
        command = str(exec_.file.parent / command)
    env = []
    for i, item in enumerate(exec_.items("env")):
        variable = Fields(item, f"{exec_.path}.env[{i}]", exec_.file)
        if not variable.text("name"):
            raise variable.error("name", "must be set")
        env.append((variable.text("name"), variable.text("value")))
        variable.refuse_rest()
    mode = exec_.text("interactiveMode") or ("IfAvailable" if version.endswith("beta1") else "")
    if mode not in ("Never", "IfAvailable", "Always"):
        problem = f"{mode} is not known, expected" if mode else "must be set to"
        raise exec_.error("interactiveMode", f"{problem} Never, IfAvailable or Always")
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise exec_.error("interactiveMode", "Always: standard input is not a terminal")
    provide = exec_.flag("provideClusterInfo")
    config = ExecConfig(
        origin=exec_.where(),
        command=command,
        args=tuple(exec_.texts("args")),
        env=tuple(env),
        api_version=version,
        interactive=mode != "Never" and terminal,
        install_hint=exec_.text("installHint"),
        cluster=cluster_info if provide else None,
    )
    exec_.refuse_rest()
    return config


class ExecPlugin(RenewingCredentials):
    """Runs the program and keeps its token or client certificate until it expires or is refused."""

    def __init__(self, config: ExecConfig, *, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._config = config
        self._expires: float | None = None

    def _due(self) -> bool:
        return self._expires is not None and self._clock.now() >= self._expires

    async def _fetch(self, rejected: bool) -> None:
        config = self._config
        status = self._decode(await self._run())
        if not status.token and not status.client_certificate_data and not status.client_key_data:
            raise KubeconfigError(
                f"{config.origin}: {config.command} returned neither a token nor a certificate and key"
            )
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise KubeconfigError(f"{config.origin}: {config.command} returned only a certificate or key, not both")
        self._expires = status.expiration_timestamp.timestamp() if status.expiration_timestamp else None
        self.authorization = bearer(status.token) if status.token else ""
        if status.client_certificate_data:
            self.certificate = (status.client_certificate_data.encode(), status.client_key_data.encode())
        else:
            self.certificate = None

    def _decode(self, output: bytes) -> _Status:
        config = self._config
        try:
            credential = msgspec.json.decode(output, type=_ExecCredential)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise KubeconfigError(
                f"{config.origin}: {config.command} printed no ExecCredential object in JSON: {error}"
            ) from None
        if credential.kind != "ExecCredential" or credential.api_version != config.api_version:
            raise KubeconfigError(
                f"{config.origin}: {config.command} returned {credential.kind or 'no kind'} of version "
                f"{credential.api_version or '(none)'}, expected ExecCredential of {config.api_version}"
            )
        if credential.status is None:
            raise KubeconfigError(f"{config.origin}: {config.command} returned no status")
        return credential.status

    async def _run(self) -> bytes:
        config = self._config
        spec: dict[str, Any] = {"interactive": config.interactive}
        if config.cluster is not None:
            spec["cluster"] = config.cluster
        info = {"kind": "ExecCredential", "apiVersion": config.api_version, "spec": spec}
        env = dict(os.environ) | dict(config.env)
        env["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(info).decode()
        try:
            process = await asyncio.create_subprocess_exec(
                config.command,
                *config.args,
                stdin=None if config.interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=env,
            )
        except OSError as error:
            hint = f"; {' '.join(config.install_hint.split())}" if config.install_hint else ""
            why = (error.strerror or str(error)).lower()
            raise KubeconfigError(f"{config.origin}: cannot run {config.command}: {why}{hint}") from None
        try:
            async with asyncio.timeout(None if config.interactive else NON_INTERACTIVE_TIMEOUT):
                output, _ = await process.communicate()
        except TimeoutError:
            seconds = round(NON_INTERACTIVE_TIMEOUT)
            raise KubeconfigError(f"{config.origin}: {config.command} did not answer within {seconds} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            raise KubeconfigError(f"{config.origin}: {config.command} failed with exit code {process.returncode}")
        return output
