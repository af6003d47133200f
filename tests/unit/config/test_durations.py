import pytest
from hypothesis import given
from hypothesis import strategies as st

from skedge.config.durations import Duration

MS = 1_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds", "shown"),
    [
        ("0", 0, "0s"),
        ("15s", 15_000 * MS, "15s"),
        ("300ms", 300 * MS, "300ms"),
        ("1h15m", 4_500_000 * MS, "1h15m0s"),
        ("-1s", -1_000 * MS, "-1s"),
        ("+5m", 300_000 * MS, "5m0s"),
        ("1.5h", 5_400_000 * MS, "1h30m0s"),
        (".5s", 500 * MS, "500ms"),
        ("1us", 1_000, "1µs"),
        ("1µs", 1_000, "1µs"),
        ("2ns", 2, "2ns"),
        ("10m", 600_000 * MS, "10m0s"),
        ("2562047h47m16.854775807s", (1 << 63) - 1, "2562047h47m16.854775807s"),
    ],
)
def test_parse_and_show(text, nanoseconds, shown):
    duration = Duration.parse(text)
    assert duration == nanoseconds
    assert str(duration) == shown
    assert Duration.parse(shown) == duration


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("2", 'time: missing unit in duration "2"'),
        ("x", 'time: invalid duration "x"'),
        ("-", 'time: invalid duration "-"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1h 5m", 'time: unknown unit "h " in duration "1h 5m"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
        ("9" * 5000 + "h", None),
    ],
)
def test_bad_durations(text, message):
    with pytest.raises(ValueError) as caught:
        Duration.parse(text)
    if message:
        assert str(caught.value) == message


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_duration_reads_back(nanoseconds):
    assert Duration.parse(str(Duration(nanoseconds))) == nanoseconds
