import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skedge.config import documents
from skedge.config.fields import ConfigError


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        ("a: 1\n---\n", {"a": 1}),
        ("a: yes\nb: off\nc: y\nd: 'y'", {"a": True, "b": False, "c": True, "d": "y"}),
        ("a: 012\nb: 0x1F\nc: 1_000\nd: -7", {"a": 10, "b": 31, "c": 1000, "d": -7}),
        ("a: 1e3\nb: .5\nc: -1.5E-2", {"a": 1000.0, "b": 0.5, "c": -0.015}),
        ("a: 1:30\nb: 2001-01-01\nc: ~\nd: !!str 5", {"a": "1:30", "b": "2001-01-01", "c": None, "d": "5"}),
        ("1: a\ntrue: b\nnull: c", {"1": "a", "true": "b", "null": "c"}),
        ("a: &x {k: 1}\nb: *x", {"a": {"k": 1}, "b": {"k": 1}}),
        ("b: &x {k: 1, l: 2}\nc: {<<: *x, l: 3}", {"b": {"k": 1, "l": 2}, "c": {"k": 1, "l": 3}}),
        ('{"a": [1, "b", null, true]}', {"a": [1, "b", None, True]}),
        ("\ufeffa: b", {"a": "b"}),
    ],
)
def test_data(text, data):
    assert documents.load(text).data == data


@pytest.mark.parametrize(
    ("text", "duplicates"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", ['yaml: unmarshal errors:\n  line 4: key "c" already set in map']),
        ("a: 1\na: 2\na: 3", [
            'yaml: unmarshal errors:\n  line 2: key "a" already set in map\n  line 3: key "a" already set in map'
        ]),
        ('{"a": 1, "b": [{"c": 1, "c": 2}], "a": 2}', ['duplicate field "a"', 'duplicate field "b[0].c"']),
    ],
)  # fmt: skip
def test_repeated_keys(text, duplicates):
    assert documents.load(text).duplicates == duplicates


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12)
)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x: [1,\ny", "yaml: line "),
        ("\x00", "control characters"),
        (b"\xff\xfe\xff", "invalid UTF-8"),
        ("[" * 100_000, "depth"),
        ("- " * 100_000, "depth"),
        ('{"a":' * 100_000, "depth"),
        (BOMB, "excessive aliasing"),
        ("*x", "unknown anchor"),
        ("&x [*x]", "unknown anchor"),
        ("k: .inf", "cannot represent"),
        ("k: !python/object:os.system x", "cannot use tag"),
        ("? [a]\n: b", "invalid map key"),
        ("--- a\n--- b\n", "only one document"),
        ('{"a": NaN}', "invalid number NaN"),
        ("{a: b}", "json parse error"),
        ('{"a": ' + "9" * 5000 + "}", "json parse error"),
        ("a: " + "9" * 5000, "cannot represent"),
        ("<<: 5", "map merge"),
    ],
)
def test_refused(text, part):
    with pytest.raises(ConfigError, match=part):
        documents.load(text)


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(ConfigError):
        documents.load(text)
