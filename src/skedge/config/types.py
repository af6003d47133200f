"""The configuration after decoding and defaulting.

Upstream: `kube-scheduler/config/v1/types.go`, `pkg/scheduler/apis/config`.
The defaults of the fields are those of an absent field; what else defaulting does is in `defaults`.
"""

from typing import Annotated, ClassVar

import msgspec

from skedge import names
from skedge.config.durations import Duration
from skedge.config.strict import INTERNAL, Int32, Int64, Raw

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Plugin(msgspec.Struct, rename="camel"):
    """A plugin in a set; weight 0 means not given."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(msgspec.Struct, rename="camel"):
    """Plugins switched on and off at one extension point; the name `*` under `disabled` means all."""

    enabled: list[Plugin] = []
    disabled: list[Plugin] = []

    def disables(self, name: str) -> bool:
        return any(plugin.name == name for plugin in self.disabled)


class Plugins(msgspec.Struct, rename="camel"):
    """One set per extension point, and `multi_point`, which stands for all of them."""

    pre_enqueue: PluginSet = msgspec.field(default_factory=PluginSet)
    queue_sort: PluginSet = msgspec.field(default_factory=PluginSet)
    pre_filter: PluginSet = msgspec.field(default_factory=PluginSet)
    filter: PluginSet = msgspec.field(default_factory=PluginSet)
    post_filter: PluginSet = msgspec.field(default_factory=PluginSet)
    pre_score: PluginSet = msgspec.field(default_factory=PluginSet)
    score: PluginSet = msgspec.field(default_factory=PluginSet)
    reserve: PluginSet = msgspec.field(default_factory=PluginSet)
    permit: PluginSet = msgspec.field(default_factory=PluginSet)
    pre_bind: PluginSet = msgspec.field(default_factory=PluginSet)
    bind: PluginSet = msgspec.field(default_factory=PluginSet)
    post_bind: PluginSet = msgspec.field(default_factory=PluginSet)
    multi_point: PluginSet = msgspec.field(default_factory=PluginSet)
    placement_generate: PluginSet = msgspec.field(default_factory=PluginSet)
    placement_score: PluginSet = msgspec.field(default_factory=PluginSet)

    def at(self, point: str) -> PluginSet:
        """The set of an extension point (or `multiPoint`), named as in `skedge.names`."""
        found: PluginSet = getattr(self, _ATTRIBUTES[point])
        return found

    def put(self, point: str, plugins: PluginSet) -> None:
        setattr(self, _ATTRIBUTES[point], plugins)


_ATTRIBUTES = dict(zip(Plugins.__struct_encode_fields__, Plugins.__struct_fields__, strict=True))
PLUGIN_SETS: tuple[str, ...] = tuple(_ATTRIBUTES)
"""The names of all sets, in the order of the reference."""


class PluginConfig(msgspec.Struct, rename="camel"):
    """Arguments of a plugin: a `PluginArgs`, or plain data (or None) for a plugin whose type is not known."""

    name: str = ""
    args: Raw = None


class Profile(msgspec.Struct, rename="camel"):
    """One scheduler name and the plugins it runs with."""

    go_name: ClassVar[str] = "KubeSchedulerProfile"

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = msgspec.field(default_factory=Plugins)
    plugin_config: list[PluginConfig] = []
    run_all_filters: Annotated[bool, INTERNAL] = False
    """Run every filter on a node even after one refused it (a legacy Policy's alwaysCheckAllPredicates)."""

    def args_of(self, plugin: str) -> object:
        """The arguments of a plugin, or None."""
        return next((config.args for config in self.plugin_config if config.name == plugin), None)


class LeaderElection(msgspec.Struct, rename="camel"):
    go_name: ClassVar[str] = "LeaderElectionConfiguration"

    leader_elect: bool = True
    lease_duration: Duration = Duration.of(15)
    renew_deadline: Duration = Duration.of(10)
    retry_period: Duration = Duration.of(2)
    resource_lock: str = "leases"
    resource_name: str = names.COMPONENT_NAME
    resource_namespace: str = "kube-system"


class ClientConnection(msgspec.Struct, rename="camel"):
    go_name: ClassVar[str] = "ClientConnectionConfiguration"

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = PROTOBUF
    qps: float = 50.0
    burst: Int32 = 100


class ManagedResource(msgspec.Struct, rename="camel"):
    go_name: ClassVar[str] = "ExtenderManagedResource"
    omit_zero: ClassVar[bool] = True

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderTLS(msgspec.Struct, rename="camel"):
    """Certificates for an extender; data beats files."""

    go_name: ClassVar[str] = "ExtenderTLSConfig"
    omit_zero: ClassVar[bool] = True

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(msgspec.Struct, rename="camel"):
    """An HTTP extender; `http_timeout` 0 stands for five seconds."""

    omit_zero: ClassVar[bool] = True

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: Duration = Duration(0)
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] = []
    ignorable: bool = False


class KubeSchedulerConfiguration(msgspec.Struct, rename="camel"):
    parallelism: Int32 = 16
    leader_election: LeaderElection = msgspec.field(default_factory=LeaderElection)
    client_connection: ClientConnection = msgspec.field(default_factory=ClientConnection)
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 = 100
    """Of the nodes, how many to look for; 0 asks for the reference's adaptive sample, absence for all nodes."""
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: list[Profile] = []
    extenders: list[Extender] = []
    delay_cache_until_active: bool = False
    legacy_plugins: Annotated[bool, INTERNAL] = False
    """Whether the plugins of a legacy Policy may be used."""
