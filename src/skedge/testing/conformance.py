"""Compares decisions with recorded ones: `python -m skedge.testing.conformance FILE.jsonl[.gz] ...`

Prints a line a difference (case, node, field, expected, got) and a summary a family; exit status 1 on any difference.
With `--plugins A,B` only rejections and scores by these plugins are compared. With `--incremental SEED` each single-pod
case is reached step by step, on detours (`testing.incremental`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from skedge.api.core import Pod
from skedge.assembly import all_plugins
from skedge.framework.status import Status
from skedge.preemption.evaluator import Outcome
from skedge.profiles.search import CycleError, Search
from skedge.snapshot.pods import PodInfo
from skedge.testing.cases import Cluster, Compare, Difference, read_cases
from skedge.testing.extenders import compare_extenders
from skedge.testing.incremental import Growth
from skedge.testing.podgroup import compare_podgroup
from skedge.testing.sampling import compare_sampling
from skedge.testing.sequence import compare_sequence


def compare_case(
    line: Mapping[str, Any], plugins: frozenset[str] | None = None, seed: int | None = None
) -> list[Difference]:
    """The differences of one single-pod case; `plugins` limits the comparison to what these say.

    With a `seed` the cluster comes about step by step, else at once.
    """
    case = line["case"]
    if seed is not None:
        cluster = Growth(case, seed).run()
    else:
        cluster = Cluster(case.get("config"))
        cluster.fill(case)
    return compare_decision(cluster, case["id"], msgspec.convert(case["pod"], Pod), line["expected"], plugins)


def compare_decision(
    cluster: Cluster, case_id: str, pod: Pod, expected: Mapping[str, Any], plugins: frozenset[str] | None = None
) -> list[Difference]:
    """Evaluates a pod in a cluster and compares with a recorded decision."""
    found: list[Difference] = []

    def compare(node: str, field: str, want: Any, got: Any) -> None:
        if want != got:
            found.append(Difference(case_id, node, field, want, got))

    info = PodInfo(pod)
    profile = cluster.profile_of(info)
    compare("", "ignored", expected.get("ignored", False), profile is None)
    if profile is None or expected.get("ignored"):
        return found
    compare("", "skipped", expected.get("skipped", False), info.terminating)
    if info.terminating or expected.get("skipped"):
        return found
    if plugins is None and "plugins" in expected:
        _compare_lists(profile, expected["plugins"], compare)
    for plugin in profile.pre_enqueue:
        status = plugin.pre_enqueue(info)
        if not status.ok:
            if plugins is None or plugin.name in plugins:
                compare("", "preEnqueue", expected.get("preEnqueue"), _status(status.by(plugin.name)))
            return found
    if "preEnqueue" in expected:
        if plugins is None or expected["preEnqueue"]["plugin"] in plugins:
            compare("", "preEnqueue", expected["preEnqueue"], None)
        return found
    if expected.get("noScorePlugins"):
        profile.sampler = None  # any of the feasible nodes is right: all were recorded
    search = Search(profile, info, cluster.nominator)
    try:
        _compare_search(search, expected, plugins, compare)
    except CycleError as error:
        if "error" not in expected:
            compare("", "error", None, str(error))
    return found


def _compare_lists(profile: Any, expected: Mapping[str, Any], compare: Compare) -> None:
    for point, attribute in (
        ("filter", "filter"),
        ("postFilter", "post_filter"),
        ("preEnqueue", "pre_enqueue"),
        ("preFilter", "pre_filter"),
        ("preScore", "pre_score"),
    ):
        compare("", f"plugins.{point}", expected[point], [plugin.name for plugin in getattr(profile, attribute)])
    scores = [{"name": enabled.plugin.name, "weight": enabled.weight} for enabled in profile.score]
    compare("", "plugins.score", expected["score"], scores)


def _compare_search(
    search: Search, expected: Mapping[str, Any], plugins: frozenset[str] | None, compare: Compare
) -> None:
    search.run()
    diagnosis = search.explain()
    wanted_pre = expected.get("preFilter", {})
    rejected = diagnosis.pre_filter
    if plugins is None or wanted_pre.get("plugin") in plugins or (rejected and rejected.plugin in plugins):
        code = wanted_pre.get("code", "Success")
        compare("", "preFilter.code", code, rejected.code.word if rejected else "Success")
        if rejected is not None:
            compare("", "preFilter.plugin", wanted_pre.get("plugin"), rejected.plugin)
            compare("", "preFilter.reasons", wanted_pre.get("reasons"), list(rejected.reasons))
    names = search.table.names
    if plugins is not None:
        _compare_some(search, expected, plugins, compare)
        return
    if "nominatedNodeFits" in expected:
        compare("", "nominatedNodeFits", expected["nominatedNodeFits"], search.nominated_fits)
    if "filter" in expected and not search.nominated_fits:
        got = {name: _status(status) for name, status in diagnosis.node_statuses().items()}
        _compare_rejections(expected["filter"], got, compare)
    feasible = sorted(names[row] for row in search.rows)
    if "feasible" in expected and "error" not in expected:
        compare("", "feasible", expected["feasible"], feasible)
    if len(feasible) > 1 and profile_scores(search):
        totals = search.scores()
        _compare_scores(search, expected, totals, compare)
        best = sorted(names[row] for row, total in zip(search.rows, totals, strict=True) if total == totals.max())
    else:
        best = feasible
    if "error" in expected:
        compare("", "error", expected["error"], None)
        return
    if feasible and "best" in expected:
        compare("", "best", expected["best"], best)
    if not feasible:
        _compare_failure(search, expected, compare)


def profile_scores(search: Search) -> bool:
    """Whether the profile scores at all."""
    return bool(search.profile.score)


def _compare_failure(search: Search, expected: Mapping[str, Any], compare: Compare) -> None:
    diagnosis = search.diagnosis
    without = expected.get("fitErrorMessageWithoutPostFilter")
    compare("", "fitErrorMessageWithoutPostFilter", without, diagnosis.message(post_filter=False))
    compare("", "unschedulablePlugins", expected.get("unschedulablePlugins"), sorted(diagnosis.unschedulable_plugins))
    if search.profile.post_filter:
        result, outcome = search.preempt()
        compare("", "fitErrorMessage", expected.get("fitErrorMessage"), diagnosis.message())
        wanted = expected.get("postFilter")
        if wanted is not None:
            nominating = None if result is None or result.nominate is None else "set" if result.nominate else "clear"
            compare("", "postFilter.nominating", wanted.get("nominating"), nominating)
        _compare_preemption(outcome, expected, compare)


def _compare_preemption(outcome: Outcome | None, expected: Mapping[str, Any], compare: Compare) -> None:
    """Candidates, victims and the pick; `outcome` is None where the profile does not preempt."""
    wanted = expected.get("preemption")
    if outcome is None:
        if wanted is not None:
            compare("", "preemption", wanted, None)
        return
    got = {
        node: {"victims": [pod.key for pod in candidate.victims], "numPDBViolations": candidate.num_pdb_violations}
        for node, candidate in outcome.candidates.items()
    }
    compare("", "preemption.candidates", None if wanted is None else wanted["candidates"], got or None)
    if wanted is not None:
        compare("", "preemption.oneOf", True, outcome.nominated in wanted["nominatedNodeOneOf"])
    for node, status in expected.get("preemptionRejected", {}).items():
        found = outcome.rejected.get(node)
        compare(node, "preemptionRejected", _plain(status), None if found is None else _plain(_status(found)))


def _plain(status: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": status["code"], "reasons": sorted(status["reasons"])}


def _compare_some(search: Search, expected: Mapping[str, Any], plugins: frozenset[str], compare: Compare) -> None:
    """What single plugins say: a node they were recorded to reject must be rejected, one that fits must not."""
    table, diagnosis = search.table, search.diagnosis
    if diagnosis.pre_filter is not None or "filter" not in expected or search.nominated_fits:
        return
    looked_at = {table.names[row]: i for i, row in enumerate(diagnosis.rows.tolist())}
    recorded = expected["filter"]
    for name in (*recorded, *expected.get("feasible", ())):
        position = looked_at.get(name)
        if position is None:
            continue
        rejection = recorded.get(name)
        for plugin, codes in diagnosis.filters:
            if plugin.name not in plugins:
                continue
            code = int(codes[position])
            status = plugin.filter_status(search.state, search.pod, code).by(plugin.name) if code else None
            if rejection is None:
                compare(name, f"filter.{plugin.name}", None, status and _status(status))
            elif rejection["plugin"] == plugin.name:
                compare(name, f"filter.{plugin.name}", _sorted(rejection), status and _sorted(_status(status)))
    scored = [table.row_of[name] for name in expected.get("scores", {})]
    if "error" in expected or not scored:
        return
    search.only(scored)
    parts = search.scores_by_plugin()
    for position, row in enumerate(search.rows.tolist()):
        wanted = expected["scores"][table.names[row]]
        for plugin_name in plugins & {enabled.plugin.name for enabled in search.profile.score}:
            got = parts.get(plugin_name)
            value = 0 if got is None else int(got[position])
            compare(table.names[row], f"scores.{plugin_name}", wanted.get(plugin_name, 0), value)


def _compare_rejections(
    expected: Mapping[str, Mapping[str, Any]], got: Mapping[str, Mapping[str, Any]], compare: Compare
) -> None:
    for node in sorted({*expected, *got}):
        want, have = expected.get(node), got.get(node)
        compare(node, "filter", want and _sorted(want), have and _sorted(have))


def _compare_scores(search: Search, expected: Mapping[str, Any], totals: Any, compare: Compare) -> None:
    recorded = expected.get("scores")
    if recorded is None:
        return
    parts = search.scores_by_plugin()
    for position, row in enumerate(search.rows.tolist()):
        node = search.table.names[row]
        wanted = recorded.get(node, {})
        for plugin in sorted({*parts, *wanted} - {"total"}):
            got = int(parts[plugin][position]) if plugin in parts else 0
            compare(node, f"scores.{plugin}", wanted.get(plugin, 0), got)
        compare(node, "scores.total", wanted.get("total"), int(totals[position]))


def _status(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "code": status.code.word, "reasons": list(status.all_reasons())}


def _sorted(status: Mapping[str, Any]) -> dict[str, Any]:
    return {**status, "reasons": sorted(status["reasons"])}


# --- command ----------------------------------------------------------------------------------------------------------


class Tally(NamedTuple):
    cases: int
    failed: int


def run(
    paths: Iterable[Path], plugins: frozenset[str] | None = None, seed: int | None = None
) -> Iterator[tuple[str, list[Difference]]]:
    """(family, differences) of each case in the files. Raises NoCase for a line that is none."""
    for path in paths:
        for number, line in enumerate(read_cases(path), 1):
            try:
                family = line["case"]["family"]
                found = _compare_line(family, line, plugins, seed)
            except (KeyError, TypeError, ValueError, AttributeError, msgspec.ValidationError) as error:
                what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise NoCase(f"{path}: case {number}: {what}") from error
            yield family, found


class NoCase(Exception):
    """A line of a file is no recorded case; the message says which and why."""


def _compare_line(
    family: str, line: Mapping[str, Any], plugins: frozenset[str] | None, seed: int | None
) -> list[Difference]:
    match family:
        case "sequence":
            return compare_sequence(line, plugins)
        case "sampling":
            return compare_sampling(line)
        case "extenders":
            return compare_extenders(line)
        case "podgroup":
            return compare_podgroup(line)
    return compare_case(line, plugins, seed)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m skedge.testing.conformance", description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl[.gz]")
    parser.add_argument("--json", action="store_true", help="differences and summary as JSON lines")
    parser.add_argument("--plugins", help="compare only what these plugins (comma-separated) say")
    parser.add_argument("--incremental", type=int, metavar="SEED", help="reach each case step by step, on detours")
    arguments = parser.parse_args(argv)
    plugins = frozenset(arguments.plugins.split(",")) if arguments.plugins is not None else None
    unknown = sorted((plugins or frozenset()) - all_plugins(legacy=True).keys())
    if unknown:
        print(f"error: --plugins: there is no plugin {unknown[0]!r}", file=sys.stderr)
        return 1
    cases: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    try:
        for family, differences in run(arguments.files, plugins, arguments.incremental):
            cases[family] += 1
            failed[family] += bool(differences)
            for difference in differences:
                print(json.dumps(difference._asdict()) if arguments.json else difference)
    except (OSError, EOFError, UnicodeDecodeError, json.JSONDecodeError, NoCase) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for family in sorted(cases):
        if arguments.json:
            print(json.dumps({"family": family, "cases": cases[family], "passed": cases[family] - failed[family]}))
        else:
            print(f"{family}: {cases[family] - failed[family]} of {cases[family]} cases equal")
    return 1 if sum(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
