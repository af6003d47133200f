"""What a name, a label key or a label value may look like, and how a bad one is reported.

Texts of `staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go`.
"""

from __future__ import annotations

import re

from skedge.api.validation import label_value_problems, subdomain_problems
from skedge.api.validation import qualified_name_problems as label_key_problems

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_label = re.compile(_LABEL)


def _length(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _shape(message: str, pattern: str, *examples: str) -> str:
    said = ", ".join(f"or '{e}'" if i else f"'{e}'" for i, e in enumerate(examples)).replace(", or", ",  or")
    return f"{message} (e.g. {said}, regex used for validation is '{pattern}')"


def label_problems(name: str) -> list[str]:
    """Problems of a DNS-1123 label: namespaces, containers, volumes, services."""
    problems = [_length(63)] if len(name) > 63 else []
    if not _label.fullmatch(name):
        message = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(_shape(message, _LABEL, "my-name", "123-abc"))
    return problems


def path_segment_problems(name: str) -> list[str]:
    """Problems of a name that only has to be a path segment: RBAC objects."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


__all__ = [
    "label_key_problems",
    "label_problems",
    "label_value_problems",
    "path_segment_problems",
    "subdomain_problems",
]
