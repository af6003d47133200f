"""What a name, a label key or a label value may look like, and how a bad one is reported.

Texts of `staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go`.
"""

from __future__ import annotations

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = "((" + "[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

_label = re.compile(_LABEL)
_subdomain = re.compile(_SUBDOMAIN)
_qualified = re.compile(_QUALIFIED)
_value = re.compile(_VALUE)


def _length(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def _shape(message: str, pattern: str, *examples: str) -> str:
    said = ", ".join(f"or '{e}'" if i else f"'{e}'" for i, e in enumerate(examples)).replace(", or", ",  or")
    return f"{message} (e.g. {said}, regex used for validation is '{pattern}')"


def subdomain_problems(name: str) -> list[str]:
    """Problems of a DNS-1123 subdomain: the name of most objects."""
    problems = [_length(253)] if len(name) > 253 else []
    if not _subdomain.fullmatch(name):
        message = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(_shape(message, _SUBDOMAIN, "example.com"))
    return problems


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


def label_key_problems(key: str) -> list[str]:
    """Problems of a qualified name: label and annotation keys, taint keys, resource names, gate names."""
    problems: list[str] = []
    prefix, slash, name = key.rpartition("/")
    if slash:
        if "/" in prefix:
            message = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', "
            message += "and must start and end with an alphanumeric character"
            shape = _shape(message, _QUALIFIED, "MyName", "my.name", "123-abc")
            return [shape + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
        if prefix == "":
            problems.append("prefix part must be non-empty")
        else:
            problems.extend(f"prefix part {p}" for p in subdomain_problems(prefix))
    if name == "":
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append(f"name part {_length(63)}")
    if not _qualified.fullmatch(name):
        message = "name part must consist of alphanumeric characters, '-', '_' or '.', "
        message += "and must start and end with an alphanumeric character"
        problems.append(_shape(message, _QUALIFIED, "MyName", "my.name", "123-abc"))
    return problems


def label_value_problems(value: str) -> list[str]:
    """Problems of a label value."""
    problems = [_length(63)] if len(value) > 63 else []
    if not _value.fullmatch(value):
        message = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        pattern = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
        problems.append(_shape(message, pattern, "MyValue", "my_value", "12345"))
    return problems
