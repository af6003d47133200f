import msgspec
import pytest

from skedge.config.durations import Duration
from skedge.config.fields import ConfigError
from skedge.config.strict import Int32, Raw, StrictError, decode_struct


class Inner(msgspec.Struct, rename="camel"):
    some_name: str = ""
    weight: Int32 = 0


class Outer(msgspec.Struct, rename="camel"):
    count: Int32 = 7
    share: float = 1.0
    flag: bool = False
    wait: Duration = Duration(0)
    data: bytes = b""
    items: list[Inner] = []
    words: dict[str, str] = {}
    one: Inner | None = None
    anything: Raw = None


def test_everything():
    data = {
        "count": 3,
        "share": 2,
        "flag": True,
        "wait": "1m",
        "data": "aGk=",
        "items": [{"someName": "a", "weight": 1}, None],
        "words": {"a": "b"},
        "one": {"someName": "x"},
        "anything": [1, {"q": None}],
    }
    expected = Outer(3, 2.0, True, Duration.of(60), b"hi", [Inner("a", 1), Inner()], {"a": "b"}, Inner("x"))
    expected.anything = [1, {"q": None}]
    assert decode_struct(data, Outer) == expected


def test_null_is_absence():
    assert decode_struct({"count": None, "items": None, "one": None}, Outer) == Outer()


def test_all_unknown_fields_with_their_paths():
    data = {"Count": 1, "items": [{}, {"somename": "a", "x": 1}], "one": {"y": {}}}
    with pytest.raises(StrictError) as caught:
        decode_struct(data, Outer)
    assert caught.value.problems == [
        'unknown field "Count"',
        'unknown field "items[1].somename"',
        'unknown field "items[1].x"',
        'unknown field "one.y"',
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"count": "x"}, "json: cannot unmarshal string into Go struct field Outer.count of type int32"),
        ({"count": 1.5}, "json: cannot unmarshal number 1.5 into Go struct field Outer.count of type int32"),
        ({"count": 1 << 31}, "json: cannot unmarshal number 2147483648 into Go struct field Outer.count of type int32"),
        ({"count": True}, "json: cannot unmarshal bool into Go struct field Outer.count of type int32"),
        ({"flag": 1}, "json: cannot unmarshal number into Go struct field Outer.flag of type bool"),
        ({"items": {}}, "json: cannot unmarshal object into Go struct field Outer.items of type []v1.Inner"),
        ({"items": [3]}, "json: cannot unmarshal number into Go struct field Outer.items[0] of type v1.Inner"),
        ({"one": []}, "json: cannot unmarshal array into Go struct field Outer.one of type v1.Inner"),
        ({"one": {"weight": []}}, "json: cannot unmarshal array into Go struct field Inner.one.weight of type int32"),
        ({"words": {"a": 1}}, "json: cannot unmarshal number into Go struct field Outer.words.a of type string"),
        ({"wait": "2"}, 'wait: time: missing unit in duration "2"'),
        ({"wait": 2}, "wait: json: cannot unmarshal number into Go value of type string"),
        ({"data": "$"}, "data: illegal base64 data"),
        ([], "json: cannot unmarshal array into Go value of type v1.Outer"),
    ],
)
def test_wrong_types(data, message):
    with pytest.raises(ConfigError) as caught:
        decode_struct(data, Outer)
    assert str(caught.value) == message


def test_wrong_types_weigh_more_than_unknown_fields_and_come_all_at_once():
    with pytest.raises(ConfigError) as caught:
        decode_struct({"x": 1, "count": "a", "flag": "b"}, Outer)
    assert not isinstance(caught.value, StrictError)
    assert str(caught.value).count("cannot unmarshal") == 2
