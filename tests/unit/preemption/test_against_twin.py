"""Dry runs on views of all nodes at once against victims really taken out, one node at a time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skedge.framework.status import Code
from skedge.profiles.search import Search
from twins import preemption as twin
from twins.crowded import Crowded

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_candidates_victims_and_choice(seed: int) -> None:
    crowded = Crowded(seed)
    cluster = crowded.cluster
    profile = cluster.profiles["default-scheduler"]
    for _ in range(3):  # what is kept from one preemption to the next must not go stale
        pod = crowded.pod()
        search = Search(profile, pod, cluster.nominator)
        search.run()
        if len(search.rows):
            cluster.cache.assume_pod(pod, cluster.cache.table.names[int(search.rows[0])])
            continue
        statuses = search.diagnosis.node_statuses()
        result, outcome = search.preempt()
        expected = {
            node: twin.on_node(cluster, search, node)
            for node, status in statuses.items()
            if status.code is Code.UNSCHEDULABLE
        }
        helped = {node: found for node, found in expected.items() if isinstance(found[0], list)}
        got = {node: ([v.key for v in c.victims], c.num_pdb_violations) for node, c in outcome.candidates.items()}
        assert got == helped
        rejected = {node: found for node, found in expected.items() if node not in helped}
        assert {node: status.reasons for node, status in outcome.rejected.items()} == rejected
        assert result is not None
        if not helped:
            assert result.nominate == ""
            return
        tie = twin.choice({node: (c.victims, c.num_pdb_violations) for node, c in outcome.candidates.items()})
        assert result.nominate in tie
        for victim in outcome.chosen.victims:
            cluster.cache.remove_pod(victim)
        cluster.cache.assume_pod(pod, result.nominate)
