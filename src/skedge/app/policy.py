"""The Policy in a ConfigMap, read once before a scheduler is built. Upstream (v1.20): `scheduler.go`, `factory.go`."""

from __future__ import annotations

from skedge.client.clientconfig import ClientConfig
from skedge.client.errors import ClientError
from skedge.client.rest import RestClient
from skedge.config.complete import Completed, use_config_map
from skedge.config.fields import ConfigError
from skedge.config.gates import FeatureGates


async def use_policy(
    done: Completed, client_config: ClientConfig, gates: FeatureGates, *, user_agent: str
) -> list[str]:
    """Puts the Policy that a configuration names into effect, if any; returns notes for the log. Raises ConfigError."""
    source = done.policy
    if source is None:
        return []
    path = f"/api/v1/namespaces/{source.namespace}/configmaps/{source.name}"
    try:
        async with RestClient.connect(client_config, user_agent=user_agent, connections=1) as client:
            found = await client.get(path)
    except ClientError as error:
        raise ConfigError(f"couldn't get policy config map {source.namespace}/{source.name}: {error}") from None
    known = len(done.warnings)
    use_config_map(done, (found or {}).get("data") or {}, gates=gates)
    return done.warnings[known:]
