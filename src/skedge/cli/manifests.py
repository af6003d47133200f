"""Manifests: read from YAML with errors that name file and path, created through the API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

import yaml

from skedge.client.errors import ApiError
from skedge.client.rest import RestClient

PLURALS: Final = {
    ("v1", "Pod"): ("/api/v1", "pods", True),
    ("v1", "Node"): ("/api/v1", "nodes", False),
    ("v1", "Namespace"): ("/api/v1", "namespaces", False),
    ("v1", "Service"): ("/api/v1", "services", True),
    ("v1", "PersistentVolumeClaim"): ("/api/v1", "persistentvolumeclaims", True),
    ("v1", "PersistentVolume"): ("/api/v1", "persistentvolumes", False),
    ("apps/v1", "Deployment"): ("/apis/apps/v1", "deployments", True),
    ("apps/v1", "ReplicaSet"): ("/apis/apps/v1", "replicasets", True),
    ("apps/v1", "StatefulSet"): ("/apis/apps/v1", "statefulsets", True),
    ("apps/v1", "DaemonSet"): ("/apis/apps/v1", "daemonsets", True),
    ("batch/v1", "Job"): ("/apis/batch/v1", "jobs", True),
    ("policy/v1", "PodDisruptionBudget"): ("/apis/policy/v1", "poddisruptionbudgets", True),
    ("scheduling.k8s.io/v1", "PriorityClass"): ("/apis/scheduling.k8s.io/v1", "priorityclasses", False),
}


class ManifestError(Exception):
    """A manifest that can not be used; the message names the file and what is wrong."""


def read_manifests(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The objects of YAML files, in order. Raises ManifestError."""
    found: list[dict[str, Any]] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ManifestError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        found += parse(text, str(path))
    return found


def default_manifests() -> list[dict[str, Any]]:
    """The example workloads that come with the package."""
    folder = resources.files("skedge.cli").joinpath("examples")
    found: list[dict[str, Any]] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".yaml"):
            found += parse(entry.read_text(encoding="utf-8"), entry.name)
    return found


def parse(text: str, where: str) -> list[dict[str, Any]]:
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark is not None else ""
        raise ManifestError(f"{where}:{line} {getattr(error, 'problem', None) or 'malformed YAML'}") from None
    for i, document in enumerate(documents):
        _check(document, f"{where}: document {i + 1}" if len(documents) > 1 else where)
    return documents


def _check(document: Any, where: str) -> None:
    if not isinstance(document, dict):
        raise ManifestError(f"{where}: expected an object, got {type(document).__name__}")
    kind = (document.get("apiVersion"), document.get("kind"))
    if kind not in PLURALS:
        raise ManifestError(f"{where}: no way to create apiVersion {kind[0]!r}, kind {kind[1]!r}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ManifestError(f"{where}: metadata.name: expected a string")


async def create_all(client: RestClient, objects: Sequence[dict[str, Any]]) -> None:
    """Creates objects one after the other; unknown fields are refused. Raises ManifestError with the server's words."""
    for obj in objects:
        prefix, plural, namespaced = PLURALS[obj["apiVersion"], obj["kind"]]
        namespace = obj["metadata"].get("namespace", "default")
        scope = f"/namespaces/{namespace}" if namespaced else ""
        try:
            await client.create(f"{prefix}{scope}/{plural}", obj, {"fieldValidation": "Strict"})
        except ApiError as error:
            name = f"{namespace}/{obj['metadata']['name']}" if namespaced else obj["metadata"]["name"]
            raise ManifestError(f"{obj['kind']} {name}: {error}") from None
