"""Log lines of both formats, levels, streams."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from skedge.telemetry import logs
from skedge.telemetry.log_formats import JsonFormatter, KlogFormatter, ObjectRef, quote


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Put the process's logging back as it was."""
    root = logging.getLogger()
    handlers, level, verbosity = root.handlers[:], root.level, logs.verbosity()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logs.set_verbosity(verbosity)
    logs.set_vmodule(())


POD = SimpleNamespace(metadata=SimpleNamespace(name="p", namespace="ns"))
NODE = SimpleNamespace(metadata=SimpleNamespace(name="n", namespace=None))

VALUES: dict[str, tuple[Any, str, Any]] = {
    "text": ("a b", '"a b"', "a b"),
    "quoted": ('say "x"\t\\', '"say \\"x\\"\\t\\\\"', 'say "x"\t\\'),
    "control": ("a\x00b", '"a\\x00b"', "a\x00b"),
    "unicode": ("größer", '"größer"', "größer"),
    "lines": ("a\nb", "<\n\ta\n\tb\n >", "a\nb"),
    "true": (True, "true", True),
    "number": (3, "3", 3),
    "fraction": (0.5, "0.5", 0.5),
    "large": (1e6, "1e+06", 1000000.0),
    "nothing": (None, "<nil>", None),
    "pod": (POD, '"ns/p"', {"name": "p", "namespace": "ns"}),
    "node": (NODE, '"n"', {"name": "n"}),
    "reference": (ObjectRef("p", "ns"), '"ns/p"', {"name": "p", "namespace": "ns"}),
    "error": (OSError("no such thing"), '"no such thing"', "no such thing"),
    "silent error": (TimeoutError(), '"TimeoutError"', "TimeoutError"),
    "list": (["a", POD], '["a",{"name":"p","namespace":"ns"}]', ["a", {"name": "p", "namespace": "ns"}]),
    "set": ({"b", "a"}, '["a","b"]', ["a", "b"]),
    "mapping": ({"a": 1, 2: ("x",)}, '{"a":1,"2":["x"]}', {"a": 1, "2": ["x"]}),
    "other": (re.compile("x"), "\"re.compile('x')\"", "re.compile('x')"),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_in_text(name: str) -> None:
    value, text, _ = VALUES[name]
    stream = io.StringIO()
    logs.configure(stream=stream)
    logs.get_logger("skedge.some.module").info("Said", key=value, last=1)
    assert stream.getvalue().partition("] ")[2] == f'"Said" key={text} last=1\n'


@pytest.mark.parametrize("name", VALUES)
def test_values_in_json(name: str) -> None:
    value, _, expected = VALUES[name]
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    logs.get_logger("skedge.some.module").info("Said", key=value)
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue())["key"] == expected


def record(severity: int = logging.INFO, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("skedge.a", severity, "/x/dir/file.py", 123, "message", (), None)
    made.created = 1_700_000_000.25
    vars(made).update(extra)
    return made


@pytest.mark.parametrize(
    ("severity", "letter"),
    [(logging.INFO, "I"), (logging.WARNING, "W"), (logging.ERROR, "E"), (logging.CRITICAL, "F"), (logging.DEBUG, "I")],
)
def test_text_header(severity: int, letter: str) -> None:
    line = KlogFormatter(17).format(record(severity, values={}))
    assert re.fullmatch(letter + r'111[45] \d\d:\d\d:20\.250000      17 file\.py:123\] "message"', line)


@pytest.mark.parametrize(
    ("format", "wanted"), [("text", '] FLAG: --x="a"\n'), ("json", '"FLAG: --x=\\"a\\"","v":1}\n')]
)
def test_plain_lines_are_not_quoted(format: Any, wanted: str) -> None:
    stream = io.StringIO()
    logs.configure(format, 1, stream=stream)
    log = logs.get_logger("skedge.a")
    assert log.v(1)
    log.plain('FLAG: --x="a"')
    assert stream.getvalue().endswith(wanted)


def test_json_keys_and_their_order() -> None:
    line = JsonFormatter().format(record(values={"err": ValueError("bad"), "n": 1}, v=None))
    assert line == '{"ts":1700000000250.0,"caller":"dir/file.py:123","msg":"message","err":"bad","n":1}'
    line = JsonFormatter().format(record(values={}, v=4))
    assert line == '{"ts":1700000000250.0,"caller":"dir/file.py:123","msg":"message","v":4}'


def test_errors_come_first_and_absent_ones_not_at_all() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    log = logs.get_logger("skedge.a")
    log.error(ValueError("bad"), "Failed", n=1)
    log.error(None, "Leaderelection lost")
    first, second = (line.partition("] ")[2] for line in stream.getvalue().splitlines())
    assert first == '"Failed" err="bad" n=1'
    assert second == '"Leaderelection lost"'
    assert stream.getvalue().startswith("E")


def test_the_caller_is_where_the_line_was_asked_for() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    logs.get_logger("skedge.a").warning("Careful")
    assert re.match(r"W.* test_logs\.py:\d+\] ", stream.getvalue())


def test_the_next_line_carries_the_level_asked_for_and_only_that() -> None:
    stream = io.StringIO()
    logs.configure("json", 3, stream=stream)
    log = logs.get_logger("skedge.a")
    if log.v(3):
        log.info("Detail")
    log.info("Plain")
    assert [json.loads(line)["v"] for line in stream.getvalue().splitlines()] == [3, 0]


def test_levels_change_for_loggers_that_exist() -> None:
    log = logs.get_logger("skedge.queue.active")
    assert not log.v(1)
    logs.set_verbosity(2)
    assert log.v(2)
    assert not log.v(3)
    assert logs.get_logger("skedge.made.later").v(2)
    assert logs.verbosity() == 2


@pytest.mark.parametrize(
    ("vmodule", "level"),
    [
        ("active=4", 4),
        ("act*=4,active=9", 4),
        ("skedge/queue/*=5", 5),
        ("queue=4", 1),
        ("active=0", 1),
        ("", 1),
    ],
)
def test_modules_may_say_more_but_not_less(vmodule: str, level: int) -> None:
    logs.set_verbosity(1)
    logs.set_vmodule(logs.parse_vmodule(vmodule))
    assert logs.get_logger("skedge.queue.active").verbosity == level


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", '"x" does not have the pattern=N format'),
        ("=1", '"=1" does not have the pattern=N format'),
        ("a=1,b=", '"b=" does not have the pattern=N format'),
        ("a=x", 'parsing verbosity in "a=x": strconv.ParseUint: parsing "x": invalid syntax'),
        ("a=-1", 'parsing verbosity in "a=-1": strconv.ParseUint: parsing "-1": invalid syntax'),
        (
            "a=2147483648",
            'parsing verbosity in "a=2147483648": strconv.ParseUint: parsing "2147483648": value out of range',
        ),
    ],
)
def test_what_vmodule_refuses(text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        logs.parse_vmodule(text)
    assert str(error.value) == message


def test_libraries_speak_from_warning_on_and_without_tracebacks() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    library = logging.getLogger("some.library")
    library.info("chatter")
    try:
        raise ValueError("inside")
    except ValueError:
        library.exception("Broke %s", "here")
    assert stream.getvalue().partition("] ")[2] == "Broke here: ValueError('inside')\n"
    stream = io.StringIO()
    logs.configure("json", stream=stream)
    library.warning("careful")
    assert {**json.loads(stream.getvalue()), "ts": 0, "caller": ""} == {
        "ts": 0,
        "caller": "",
        "logger": "some.library",
        "msg": "careful",
    }


def test_split_streams_keep_their_order_round_an_error() -> None:
    errors, infos = io.StringIO(), io.StringIO()
    handler = logs.configure(stream=errors, info_stream=infos, buffer_size=10_000)
    log = logs.get_logger("skedge.a")
    log.info("one")
    assert infos.getvalue() == ""
    log.error(None, "two")
    assert '"one"' in infos.getvalue()
    assert '"two"' in errors.getvalue()
    log.info("three")
    handler.flush()
    assert '"three"' in infos.getvalue()


def test_a_full_buffer_is_written() -> None:
    infos = io.StringIO()
    logs.configure(stream=io.StringIO(), info_stream=infos, buffer_size=60)
    log = logs.get_logger("skedge.a")
    log.info("a")
    assert infos.getvalue() == ""
    log.info("b")
    assert infos.getvalue().count("\n") == 2


def test_a_broken_stream_hurts_nobody() -> None:
    closed = io.StringIO()
    closed.close()
    logs.configure(stream=closed)
    log = logs.get_logger("skedge.a")
    log.info("lost")
    log.error(None, "lost too")


def test_quote() -> None:
    assert quote('a"\x1f') == '"a\\"\\x1f"'
