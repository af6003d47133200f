"""The Kubernetes client: credentials, REST, reflector, informers, work queue, Lease lock, events.

Usable on its own as a library; knows nothing of scheduling. asyncio, one event loop, no threads to lock against.

    config = load_kubeconfig()                                   # as kubectl finds it; or load_in_cluster()
    async with RestClient.connect(config) as client, InformerFactory(client) as factory:
        pods = factory.informer(Resource.of("/api/v1/pods", dict))
        pods.add_handler(on_add=lambda pod, is_initial: print(pod["metadata"]["name"]))
        factory.start()
        await factory.wait_for_sync()

A resource's objects decode to `dict`, or to any msgspec struct with `metadata.name`, `.namespace` and
`.resource_version`; only the fields the struct names are decoded. `examples/controller.py` is a whole controller.
"""

from skedge.client.clientconfig import ClientConfig, load_in_cluster, load_kubeconfig
from skedge.client.core_events import CoreEventBroadcaster
from skedge.client.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    CertificateError,
    ClientError,
    Conflict,
    ConnectionFailed,
    ConnectionLost,
    ConnectionRefused,
    DecodeError,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    KubeconfigError,
    MethodNotAllowed,
    NotFound,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unauthorized,
)
from skedge.client.events import EventBroadcaster, EventRecorder, ObjectRef, serves_events_v1
from skedge.client.hooks import ClientHooks, LeaderHooks, QueueHooks
from skedge.client.http1 import Response
from skedge.client.informer import Inbox, Informer, InformerFactory, Registration, Tombstone
from skedge.client.leaderelection import LeaderElector
from skedge.client.leasecandidate import LeaseCandidate
from skedge.client.leaselock import LeaseLock
from skedge.client.rest import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, RestClient
from skedge.client.transport import HttpTransport, Stream, Transport
from skedge.client.watch import Resource
from skedge.client.workqueue import QueueShutDown, RateLimit, WorkQueue
from skedge.stores.store import Store

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "CertificateError",
    "ClientConfig",
    "ClientError",
    "ClientHooks",
    "Conflict",
    "ConnectionFailed",
    "ConnectionLost",
    "ConnectionRefused",
    "CoreEventBroadcaster",
    "DecodeError",
    "EventBroadcaster",
    "EventRecorder",
    "Expired",
    "Forbidden",
    "HttpTransport",
    "Inbox",
    "Informer",
    "InformerFactory",
    "InternalError",
    "Invalid",
    "KubeconfigError",
    "LeaderElector",
    "LeaderHooks",
    "LeaseCandidate",
    "LeaseLock",
    "MethodNotAllowed",
    "NotFound",
    "ObjectRef",
    "QueueHooks",
    "QueueShutDown",
    "RateLimit",
    "Registration",
    "RequestTimeout",
    "Resource",
    "Response",
    "RestClient",
    "ServerError",
    "Store",
    "Stream",
    "Tombstone",
    "TooManyRequests",
    "Transport",
    "Unauthorized",
    "WorkQueue",
    "load_in_cluster",
    "load_kubeconfig",
    "serves_events_v1",
]
