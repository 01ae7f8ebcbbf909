"""The ledger is what the books say at the end of a pass: R1, R26, R27, R30."""

from __future__ import annotations

import orjson
import pytest

from admission.ledger import read_ledger
from binder.core.policy import Policy
from binder.core.run_pass import run_pass
from binder.core.world import World, look_at
from model.meta import Lean
from projections.folds import ledger
from projections.folds.ledger import BudgetEntry, ClassEntry
from projections.folds.memory import Lesson, Memory, as_fields, recalled
from tests.binder.deciding import Binder, decide
from tests.builders import (
    H100,
    NOW_MS,
    T4,
    budget,
    claims,
    gpu_class,
    namespace,
    node,
    order,
    raw_pod,
    running_vm,
    state,
    template_claim,
)

HELD = ClassEntry(H100, nodes=2, allocatable=6, bound=1, raw=2, lost=5, pending=3, free=3, largest=8)
CLUSTER: tuple[Lean, ...] = (
    gpu_class(),
    node("a", 4),
    node("b", 2),
    node("c", 8, unschedulable=True),
    raw_pod("r", "a", 2),
    *running_vm("vm1", node="b"),
    namespace("default"),
    namespace("other", team="x"),
    budget("root", h100=9, resources={H100: 7}),
    budget("team", parent="root", labels={"team": "x"}),
)
POOL = {"pool": "gpu"}
LIVE = (template_claim("vm1", node="b"), order("o", 3), order("p", 5, phase="Lost", lostFrom="b"))


@pytest.mark.parametrize("is_enabled", [True, False])
def test_pass_writes_classes_budgets_and_namespaces_into_the_ledger(is_enabled: bool) -> None:
    """R30: also with the feature switched off."""
    learned = learned_of(decide(state(*CLUSTER), *LIVE, is_enabled=is_enabled).lessons)
    assert learned == {
        "class/h100": HELD,
        "budget/root": BudgetEntry(
            class_limits={"h100": 9},
            class_units={"h100": 9},
            resource_limits={H100: 7},
            resource_units={H100: 2},
        ),
        "budget/team": BudgetEntry(),
        "namespace/default": ("root",),
        "namespace/other": ("root", "team"),
    }


def test_admission_reads_what_the_pass_has_written() -> None:
    fields = as_fields(decide(state(*CLUSTER), *LIVE).lessons)[ledger.NAME]
    read = read_ledger(fields)
    assert read.classes == {"h100": HELD}
    assert [name for name, _ in read.over("other")] == ["root", "team"]
    assert read.budgets["root"].class_units == {"h100": 9}


def test_pass_over_what_it_knows_learns_nothing_of_it() -> None:
    binder = Binder()
    binder.passes(state(*CLUSTER), *LIVE)
    assert learned_of(binder.passes(state(*CLUSTER), *LIVE).lessons) == {}


def test_what_has_gone_leaves_the_ledger() -> None:
    """A new binder finds entries of what went while none was at work."""
    binder = Binder()
    binder.passes(state(*CLUSTER), *LIVE)
    binder.passes(state(gpu_class("a100"), node("a", 4), namespace("default")))
    fields = set(binder.stored[ledger.NAME])
    assert fields == {"class/a100"}


def test_class_that_is_being_deleted_says_so() -> None:
    """R30: its units still count, nothing new of it is sold."""
    meta = gpu_class().metadata.model_copy(update={"deletion_timestamp": "2026-12-01T00:00:00Z"})
    leaving = gpu_class().model_copy(update={"metadata": meta})
    entry = learned_of(decide(state(leaving, node("a", 4)), order("o", 3, node="a")).lessons)["class/h100"]
    assert isinstance(entry, ClassEntry)
    assert (entry.is_leaving, entry.bound) == (True, 3)


def test_budget_with_a_fault_above_it_says_so() -> None:
    learned = learned_of(decide(state(budget("b", parent="gone"))).lessons)
    assert learned["budget/b"] == BudgetEntry(fault="parent gone does not exist")


def test_blocked_pass_leaves_the_ledger_as_it_is() -> None:
    """R33: an incomplete state would count too little."""
    cluster = state(*CLUSTER)
    cluster.complete.discard("Node")
    assert decide(cluster, *LIVE).lessons == ()


def test_largest_is_of_all_nodes_that_the_class_selects_and_follows_what_they_offer() -> None:
    """Kept by difference: one that is closed just now could hold it when it is back."""
    cluster = state(gpu_class(), node("a", 4), node("b", 4), node("c", 2))
    world, memory = look_at(cluster, {}), Memory()
    found = [largest(world, memory)]
    closed = (node("a", 4, unschedulable=True), node("b", 4, ready="False"))
    for changed in (*closed, node("a", 1), node("b", 2, unschedulable=True)):
        name, body = changed.metadata.name, changed.model_dump_json(by_alias=True).encode()
        cluster.shelves["Node"].put(("", name), changed.metadata.uid, "9", body)
        world.update({})
        found.append(largest(world, memory))
    assert found == [4, 4, 4, 4, 2]


def test_class_has_the_nodes_that_it_accepts_and_the_largest_of_those_with_its_labels() -> None:
    """R8a: kept by difference; a node that is cordoned comes and goes by its labels, too."""
    cluster = state(gpu_class(nodeSelector={"pool": "gpu"}), node("a", 4, labels=POOL), node("b", 8))
    world, memory, found = look_at(cluster, {}), Memory(), []
    for changed in (
        node("a", 4, labels=POOL),
        node("b", 8, labels=POOL, unschedulable=True),
        node("a", 4, labels=POOL, unschedulable=True),
        node("b", 8, unschedulable=True),
    ):
        name, body = changed.metadata.name, changed.model_dump_json(by_alias=True).encode()
        cluster.shelves["Node"].put(("", name), changed.metadata.uid, "9", body)
        world.update({})
        units, entry = largest(world, memory), memory.ledger["class/h100"]
        assert isinstance(entry, ClassEntry)
        found.append((entry.nodes, units))
    assert found == [(1, 4), (1, 8), (0, 8), (0, 4)]


@pytest.mark.parametrize("field", ["class/h100", "class/gone", "budget/root", "namespace/default", "new/1"])
def test_field_that_cannot_be_read_is_written_anew_or_taken_away(field: str) -> None:
    """Whatever another version left there: after a pass the ledger says what the books say."""
    binder = Binder()
    binder.passes(state(*CLUSTER), *LIVE)
    right = dict(binder.stored[ledger.NAME])
    binder.stored[ledger.NAME][field] = b'"?"'
    memory, unreadable = recalled(binder.stored)
    assert unreadable == (f"ledger {field}",)
    result = run_pass(look_at(state(*CLUSTER), claims(*LIVE)), memory, Policy(), NOW_MS)
    memory.learn(result.lessons)
    fields = as_fields([Lesson(ledger.NAME, name, value) for name, value in memory.ledger.items()])
    assert fields[ledger.NAME] == right


def test_class_that_no_node_offers_has_a_largest_of_none() -> None:
    """R8: a claim of one unit is too large then, also while another waits for it."""
    for live in ((), (order("o"),)):
        entry = learned_of(decide(state(gpu_class()), *live).lessons)["class/h100"]
        assert isinstance(entry, ClassEntry)
        assert entry.largest == 0


def test_limits_and_units_are_written_by_name_however_they_came_in() -> None:
    """R4: equal states give equal bytes."""
    pair = (order("a", 1, class_name="y"), order("b", 1, class_name="x"))
    pods = (raw_pod("p", "a"), raw_pod("q", "a", resource=T4))
    cluster = (namespace("default"), gpu_class("x"), gpu_class("y", T4))
    limits = (
        budget("b", x=1, y=1, resources={H100: 1, T4: 1}),
        budget("b", y=1, x=1, resources={T4: 1, H100: 1}),
    )
    for live, raw, limited in ((pair, pods, limits[0]), (pair[::-1], pods[::-1], limits[1])):
        fields = as_fields(decide(state(*cluster, *raw, limited), *live).lessons)[ledger.NAME]
        entry = orjson.loads(fields["budget/b"])
        assert [list(entry[key]) for key in ("class_limits", "class_units")] == [["x", "y"]] * 2
        assert [list(entry[key]) for key in ("resource_limits", "resource_units")] == [[H100, T4]] * 2


def largest(world: World, memory: Memory) -> int:
    memory.learn(run_pass(world, memory, Policy(), NOW_MS).lessons)
    world.learned_from()
    entry = memory.ledger["class/h100"]
    assert isinstance(entry, ClassEntry)
    return entry.largest


def learned_of(lessons: tuple[Lesson, ...]) -> dict[str, object]:
    return {lesson.field: lesson.value for lesson in lessons if lesson.projection == ledger.NAME}
