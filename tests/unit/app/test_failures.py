import pytest

from skedge.app.failures import causes, reason
from skedge.client.errors import ConnectionRefused
from skedge.config.fields import ConfigError


def raised(error: BaseException) -> BaseException:
    return error


CASES = [
    (ConfigError("profiles[0]: wrong"), "profiles[0]: wrong"),
    (ConfigError("yaml: unmarshal errors:\n  line 5: wrong"), "yaml: unmarshal errors:\n  line 5: wrong"),
    (OSError(2, "No such file or directory", "/nowhere"), "/nowhere: no such file or directory"),
    (OSError(98, "Address already in use"), "address already in use"),
    (ExceptionGroup("unhandled errors in a TaskGroup", [ConnectionRefused("refused")]), "refused"),
    (ExceptionGroup("a", [ExceptionGroup("b", [ValueError("one"), ValueError("two")]), ValueError("one")]), "one; two"),
    (RuntimeError("two\nlines"), "two lines"),
    (RuntimeError(), "RuntimeError"),
]


@pytest.mark.parametrize(("error", "expected"), CASES, ids=[expected for _, expected in CASES])
def test_reason(error: BaseException, expected: str) -> None:
    assert reason(error) == expected


def test_causes_of_nested_groups() -> None:
    first, second = ValueError("1"), ValueError("2")
    assert list(causes(ExceptionGroup("", [first, ExceptionGroup("", [second])]))) == [first, second]
