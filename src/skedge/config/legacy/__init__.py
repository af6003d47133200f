"""The scheduler's input of releases 1.16 to 1.22 made into profiles: Policy, algorithm providers, v1alpha1 files.

Converts; runs nothing. Upstream (v1.20): `framework/plugins/legacy_registry.go`, `algorithmprovider`, `factory.go`.
"""

from skedge.config.legacy.convert import ConvertedProfile, convert_policy, convert_provider
from skedge.config.legacy.policy import Policy, decode_policy
from skedge.config.legacy.registry import PREDICATES, PRIORITIES, PROVIDERS

__all__ = [
    "PREDICATES",
    "PRIORITIES",
    "PROVIDERS",
    "ConvertedProfile",
    "Policy",
    "convert_policy",
    "convert_provider",
    "decode_policy",
]
