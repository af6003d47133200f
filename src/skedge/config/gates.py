"""Feature gates: what is known, what is on, and the `--feature-gates` syntax.

Upstream: `component-base/featuregate`.
"""

from collections.abc import Iterable, Iterator

import msgspec

from skedge.config import gate_table
from skedge.config.fields import ConfigError, aggregate, go_quote

ALPHA, BETA, GA, DEPRECATED = "ALPHA", "BETA", "", "DEPRECATED"

_BOOLS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True)
_BOOLS |= dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False)


class Gate(msgspec.Struct, frozen=True):
    """A gate as compiled in; `stage` is ALPHA, BETA, DEPRECATED or "" for general availability."""

    default: bool
    stage: str
    locked: bool = False


def _table() -> dict[str, Gate]:
    locked = set(gate_table.LOCKED.split())
    rows = [
        (gate_table.ALPHA, False, ALPHA),
        (gate_table.BETA_ON, True, BETA),
        (gate_table.BETA_OFF, False, BETA),
        (gate_table.GA, True, GA),
        (gate_table.DEPRECATED_ON, True, DEPRECATED),
        (gate_table.DEPRECATED_OFF, False, DEPRECATED),
        ("AllAlpha", False, ALPHA),
        ("AllBeta", False, BETA),
    ]
    known = {name: Gate(default, stage, name in locked) for text, default, stage in rows for name in text.split()}
    return dict(sorted(known.items()))


GATES: dict[str, Gate] = _table()


def parse_bool(text: str) -> bool:
    """A boolean word as Go's `strconv.ParseBool` knows them; raises ValueError with its message."""
    if text not in _BOOLS:
        raise ValueError(f"strconv.ParseBool: parsing {go_quote(text)}: invalid syntax")
    return _BOOLS[text]


class FeatureGates:
    """The state of all gates of this process; read once, where things are built."""

    def __init__(self, **given: bool) -> None:
        self._given: dict[str, bool] = {}
        self.set(given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and self._given == other._given

    __hash__ = None  # type: ignore[assignment]

    def enabled(self, name: str) -> bool:
        """Whether a gate is on; a name that is no gate is a programming error (KeyError)."""
        gate = GATES[name]
        if name in self._given:
            return self._given[name]
        for whole, stage in (("AllAlpha", ALPHA), ("AllBeta", BETA)):
            if gate.stage == stage and whole in self._given and name != whole:
                return self._given[whole]
        return gate.default

    def items(self) -> Iterator[tuple[str, str, bool]]:
        """Name, stage and state of every gate, sorted by name."""
        return ((name, gate.stage, self.enabled(name)) for name, gate in GATES.items())

    def set_from_string(self, *texts: str) -> list[str]:
        """Apply `A=true,B=false` and return notes for the log; raises ConfigError, and then nothing is set."""
        return self.set(parse(texts))

    def set(self, wanted: dict[str, bool]) -> list[str]:
        """As `set_from_string`, from a mapping."""
        problems: list[str] = []
        notes: list[str] = []
        for name, value in wanted.items():
            gate = GATES.get(name)
            if gate is None:
                problems.append(f"unrecognized feature gate: {name}")
            elif gate.locked and value != gate.default:
                to, fixed = _word(value), _word(gate.default)
                problems.append(f"cannot set feature gate {name} to {to}, feature is locked to {fixed}")
            elif gate.stage == GA:
                notes.append(f"Setting GA feature gate {name}={_word(value)}. It will be removed in a future release.")
            elif gate.stage == DEPRECATED:
                setting = f"Setting deprecated feature gate {name}={_word(value)}"
                notes.append(f"{setting}. It will be removed in a future release.")
        if problems:
            raise ConfigError(aggregate(problems))
        before = self._given
        self._given = before | wanted
        if problems := list(self._unmet()):
            self._given = before
            raise ConfigError(aggregate(problems))
        return [*notes, *self._ineffective()]

    def _ineffective(self) -> Iterator[str]:
        for name in gate_table.WITHOUT_EFFECT.split():
            if self.enabled(name) != GATES[name].default:
                yield f"Feature gate {name}={_word(not GATES[name].default)} has no effect here"

    def _unmet(self) -> Iterator[str]:
        for name, needs in gate_table.DEPENDENCIES.items():
            missing = [need for need in needs if not self.enabled(need)]
            if missing and self.enabled(name):
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"


def parse(texts: Iterable[str]) -> dict[str, bool]:
    """`[component:]Name=bool,...` as a mapping; the only component is `kube`. Raises ConfigError."""
    wanted: dict[str, bool] = {}
    prefixes: set[str] = set()
    for pair in (pair.strip() for text in texts for pair in text.split(",")):
        if not pair:
            continue
        name, equals, word = pair.partition("=")
        component, colon, rest = name.partition(":")
        if colon:
            name = rest
        prefixes.add(component.strip() if colon else "")
        if not equals:
            raise ConfigError(f"missing bool value for {name}")
        name = name.strip()
        try:
            wanted[name] = parse_bool(word.strip())
        except ValueError as error:
            raise ConfigError(f"invalid value of {name}={word.strip()}, err: {error}") from None
    if {"", "kube"} <= prefixes:
        raise ConfigError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        )
    if unknown := sorted(prefixes - {"", "kube"}):
        raise ConfigError(f"component not registered: {unknown[0]}")
    return wanted


def _word(value: bool) -> str:
    return "true" if value else "false"
