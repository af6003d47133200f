"""Kubernetes' rules for names and label values, and their messages.

Each check returns the list of things wrong with a text, empty when it is right.

Upstream: `staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go`.
"""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME})?"
_LABEL_1123: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123: Final = rf"{_LABEL_1123}(\.{_LABEL_1123})*"

_NAME_RE = re.compile(_NAME)
_VALUE_RE = re.compile(_VALUE)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN_1123)

_EMPTY: Final = "must be non-empty"
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_EXAMPLES: Final = f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_1123}')"
)


def qualified_name_problems(text: str) -> list[str]:
    """What keeps `text` from being a qualified name (`[dns.prefix/]Name`): label keys, resource names."""
    parts = text.split("/")
    if len(parts) > 2:
        return [
            f"a qualified name {_NAME_RULE} {_NAME_EXAMPLES} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append(f"prefix part {_EMPTY}")
        else:
            problems += [f"prefix part {problem}" for problem in subdomain_problems(parts[0])]
    name = parts[-1]
    if not name:
        problems.append(f"name part {_EMPTY}")
    elif len(name.encode()) > 63:
        problems.append(f"name part {_too_long(63)}")
    if not _NAME_RE.fullmatch(name):
        problems.append(f"name part {_NAME_RULE} {_NAME_EXAMPLES}")
    return problems


def label_value_problems(text: str) -> list[str]:
    """What keeps `text` from being a label value."""
    problems = [] if len(text.encode()) <= 63 else [_too_long(63)]
    if not _VALUE_RE.fullmatch(text):
        problems.append(_VALUE_RULE)
    return problems


def subdomain_problems(text: str) -> list[str]:
    """What keeps `text` from being a lowercase RFC 1123 subdomain, the form of most object names."""
    problems = [] if len(text.encode()) <= 253 else [_too_long(253)]
    if not _SUBDOMAIN_RE.fullmatch(text):
        problems.append(_SUBDOMAIN_RULE)
    return problems


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"
