"""The node that a pass chooses, or its reason to choose none, is that of a reference made from the rules."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from binder.core.refusals import look_of
from binder.core.run_pass import PassResult, run_pass
from model.decisions import BindClaim, PinLauncher
from model.nodes import Node
from projections.folds import rejections
from projections.folds.memory import Lesson
from projections.folds.rejections import Rejection
from tests.binder.properties.budget import examples
from tests.binder.properties.life import Life
from tests.binder.reference.choice import Reference
from tests.binder.reference.cluster import Cluster
from tests.binder.reference.clusters import clusters, refusals


def life_of(cluster: Cluster, refused: dict[str, set[str]]) -> Life:
    """The cluster as the core reads it, and the memory of the refusals."""
    life = Life()
    for kind, objects in cluster.items():
        for one in objects:
            life.put(kind, one)
    found = life.state.of(Node)
    for uid, names in refused.items():
        by_node = {
            name: Rejection(found["", name].metadata.uid, look_of(found["", name]), life.now_ms + 1000, "")
            for name in names
        }
        life.memory.learn([Lesson(rejections.NAME, uid, by_node)] if by_node else ())
    return life


def answers(result: PassResult) -> dict[str, str]:
    """By set: the node, or `!` and the reason."""
    found = {one.set: f"!{one.reason}" for one in result.waiting}
    return found | {one.set: one.node for one in result.decisions if isinstance(one, PinLauncher)}


@given(st.data())
@examples(150)
def test_each_launcher_gets_the_node_or_the_reason_that_the_rules_say(data: st.DataObject) -> None:
    """R7, R8, R9, R11, R12, R18, R26, R28, R29."""
    cluster = data.draw(clusters())
    refused = data.draw(refusals(cluster))
    life = life_of(cluster, refused)
    expected = Reference(cluster, refused).place_all()
    result = run_pass(life.look(), life.memory, life.policy, life.now_ms)
    found = {key: value for key, value in answers(result).items() if key in expected}
    note(f"{expected=} {found=}")
    binds_more = any(isinstance(one, BindClaim) and one.set not in expected for one in result.decisions)
    for key, answer in expected.items():
        if answer == "!free now" or (binds_more and answer.startswith("!")):
            assert found[key].startswith("!"), (
                "none of them was placed; what is free now is told by the next pass"
            )
        else:
            assert found[key] == answer
    assert found.keys() == expected.keys()
    for bind in (one for one in result.decisions if isinstance(one, BindClaim) and one.set in expected):
        assert bind.node == expected[bind.set], "the whole set is on the launcher's node"
