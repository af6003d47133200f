"""Syntax of label keys, values and qualified names, with the reference's words.

Upstream: `apimachinery/pkg/api/validate/content`.
"""

import re

_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME = re.compile(_PART, re.ASCII)
_SUBDOMAIN_TEXT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN = re.compile(_SUBDOMAIN_TEXT, re.ASCII)
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_PART}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_TEXT}')"
)


def label_key_errors(key: str) -> list[str]:
    """What is wrong with a label key (`[prefix/]name`); empty if nothing is."""
    parts = key.split("/")
    errors: list[str] = []
    if len(parts) > 2:
        return [
            "a valid label key "
            + _NAME_RULE[:-1]
            + ") with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            errors.append("prefix part must be non-empty")
        else:
            if len(parts[0]) > 253:
                errors.append("prefix part must be no more than 253 bytes")
            if not _SUBDOMAIN.fullmatch(parts[0]):
                errors.append(f"prefix part {_SUBDOMAIN_RULE}")
    name = parts[-1]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        errors.append("name part must be no more than 63 bytes")
    if not _NAME.fullmatch(name):
        errors.append(f"name part {_NAME_RULE}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """What is wrong with a label value; empty if nothing is."""
    errors = []
    if len(value.encode()) > 63:
        errors.append("must be no more than 63 bytes")
    if value and not _NAME.fullmatch(value):
        errors.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
            f"for validation is '({_PART})?')"
        )
    return errors


def is_extended_resource(name: str) -> bool:
    """Whether a name is that of an extended resource: with a domain that is not kubernetes.io's, fit for a quota."""
    if "/" not in name or name.startswith("requests.") or "kubernetes.io/" in name:
        return False
    return not label_key_errors(f"requests.{name}")
