"""What classes and budgets say of themselves, and when it is written: R26, R27, R30."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import pytest

from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.state import ClusterState
from binder.core.statuses import MAX_STATUSES, STATUS_EVERY_MS, STATUS_ROUND_MS
from binder.core.world import World, look_at
from model.claims import GPUBudget, GPUClass
from model.decisions import ObjectRef, WriteBudgetStatus, WriteClassStatus
from model.instants import rfc3339
from model.meta import Condition, Lean
from projections.folds import statuses
from projections.folds.memory import Memory
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
    state,
)

Write = WriteClassStatus | WriteBudgetStatus
NOW = rfc3339(NOW_MS)
NOT_ACCEPTED = "not Ready, cordoned, tainted, being deleted or without a label of its nodeSelector"
One = TypeVar("One", GPUClass, GPUBudget)


@dataclass
class Passes:
    """A world that lives, its memory, and the time."""

    cluster: ClusterState
    memory: Memory = field(default_factory=Memory)
    now_ms: int = NOW_MS
    world: World = field(init=False)

    def __post_init__(self) -> None:
        self.world = look_at(self.cluster, {})

    def after(self, seconds: float, *changed: Lean) -> PassResult:
        """One pass then, over what has changed; what it learned is remembered."""
        self.now_ms += int(seconds * 1000)
        self.cluster.heard_ms = self.now_ms
        for one in changed:
            meta = one.metadata  # type: ignore[attr-defined]
            body = one.model_dump_json(by_alias=True).encode()
            self.cluster.shelves[type(one).__name__].put((meta.namespace, meta.name), meta.uid, "9", body)
        self.world.update({})
        result = run_pass(self.world, self.memory, Policy(), self.now_ms)
        self.memory.learn(result.lessons)
        self.world.learned_from()
        return result


def writes_of(result: PassResult) -> list[Write]:
    return [one for one in result.decisions if isinstance(one, WriteClassStatus | WriteBudgetStatus)]


def first_writes(*objects: Lean, live: tuple[object, ...] = (), **policy: bool) -> dict[str, Write]:
    world = look_at(state(*objects), claims(*live))  # type: ignore[arg-type]
    return {one.set: one for one in writes_of(run_pass(world, Memory(), Policy(**policy), NOW_MS))}  # type: ignore[arg-type]


def ready_of(*objects: Lean) -> Condition:
    write = first_writes(gpu_class(), *objects)["class h100"]
    (condition,) = write.status.conditions
    return condition


def valid_of(name: str, *objects: Lean) -> Condition:
    write = first_writes(*objects)[f"budget {name}"]
    (condition,) = write.status.conditions
    return condition


def said(one: GPUClass, **changes: object) -> GPUClass:
    """The class with the status that a first pass writes for it, and what has changed since."""
    write = first_writes(one, node("a", 4))["class h100"]
    return one.model_copy(update={"status": write.status.model_copy(update=changes)})


@pytest.mark.parametrize("is_enabled", [True, False])
def test_class_says_who_has_its_units(is_enabled: bool) -> None:
    """R26, R30: also with the feature switched off."""
    held = (order("o", 1, node="a"), order("p", 5), order("q", 2, phase="Lost", lostFrom="b"))
    objects = (gpu_class(), node("a", 4), node("b", 4), raw_pod("r", "b", 3))
    write = first_writes(*objects, live=held, is_enabled=is_enabled)["class h100"]
    assert write.ref == ObjectRef("", "h100", "class-h100")
    numbers = write.status.model_dump(exclude={"conditions"})
    assert numbers == {
        "nodes": 2, "allocatable": 8, "bound": 1, "raw": 3, "lost": 2, "pending": 5, "free": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        ((node("a", 4), node("b", 2)), ("True", "HasNodes", f"2 of 2 nodes with {H100}")),
        ((node("a", 4), node("b", 2, unschedulable=True)), ("True", "HasNodes", f"1 of 2 nodes with {H100}")),
        (
            (node("a", 4, unschedulable=True),),
            (
                "False",
                "ClassConstraints",
                f"none of 1 nodes with {H100} is accepted: {NOT_ACCEPTED}",
            ),
        ),
        ((), ("False", "NoNodes", f"no node offers {H100}")),
    ],
    ids=["all", "some", "none accepted", "none"],
)
def test_class_is_ready_when_a_node_can_give_a_unit(
    nodes: tuple[Lean, ...], want: tuple[str, str, str]
) -> None:
    """R8a: what keeps the class from all nodes is named."""
    condition = ready_of(*nodes)
    assert (condition.type, condition.status, condition.reason, condition.message) == ("Ready", *want)
    assert condition.last_transition_time == NOW


def test_budget_says_what_its_namespaces_use_of_what_it_limits_and_of_all_else() -> None:
    """R27: a limit that nobody uses is there with zero."""
    objects = (namespace("default"), gpu_class(), gpu_class("a100", "nvidia.com/A"), raw_pod("r", "a", 2))
    limited = budget("b", h100=9, never=1, resources={"nvidia.com/Z": 1})
    write = first_writes(*objects, limited, live=(order("o", 3), order("p", class_name="a100")))["budget b"]
    assert isinstance(write, WriteBudgetStatus)
    assert write.ref == ObjectRef("", "b", "budget-b")
    assert write.status.used.model_dump() == {
        "classes": {"a100": 1, "h100": 3, "never": 0},
        "resources": {H100: 2, "nvidia.com/Z": 0},
    }
    assert list(write.status.used.classes) == ["a100", "h100", "never"], "R4: equal uses give equal bytes"


@pytest.mark.parametrize(
    ("name", "budgets", "want"),
    [
        ("a", (budget("a"),), ("True", "Valid", "it and all above it count")),
        ("a", (budget("a", parent="b"), budget("b")), ("True", "Valid", "it and all above it count")),
        ("a", (budget("a", parent="gone"),), ("False", "ParentNotFound", "parent gone does not exist")),
        (
            "a",
            (budget("a", parent="b"), budget("b", parent="gone")),
            ("False", "ParentNotFound", "parent gone"),
        ),
        (
            "a",
            (budget("a", parent="b"), budget("b", parent="a")),
            ("False", "Cycle", "its parents form a cycle"),
        ),
        ("a", (budget("a", parent="a"),), ("False", "Cycle", "its parents form a cycle")),
    ],
    ids=["root", "child", "no parent", "no grandparent", "cycle of two", "its own parent"],
)
def test_budget_is_valid_when_all_its_parents_are_there(
    name: str, budgets: tuple[Lean, ...], want: tuple[str, str, str]
) -> None:
    condition = valid_of(name, *budgets)
    assert (condition.type, condition.status, condition.reason) == ("Valid", *want[:2])
    assert condition.message.startswith(want[2])


def test_what_is_being_deleted_gets_no_status() -> None:
    going = {"deletion_timestamp": "2026-12-01T00:00:00Z"}
    doomed = [
        one.model_copy(update={"metadata": one.metadata.model_copy(update=going)})
        for one in (gpu_class(), budget("b"))
    ]
    assert first_writes(*doomed) == {}


def test_object_that_says_so_is_not_written() -> None:
    """Steady state: no write, no deadline."""
    passes = Passes(state(said(gpu_class()), node("a", 4)))
    result = passes.after(0)
    assert (writes_of(result), result.wake_at_ms) == ([], None)


@pytest.mark.parametrize("one", [gpu_class(), budget("b")], ids=["class", "budget"])
def test_conditions_of_others_are_theirs(one: GPUClass | GPUBudget) -> None:
    theirs = Condition(type="Audited", status="True")
    (write,) = first_writes(one).values()
    status = write.status.model_copy(update={"conditions": (theirs, *write.status.conditions)})
    assert writes_of(Passes(state(one.model_copy(update={"status": status}))).after(60)) == []


def test_node_that_the_class_does_not_accept_is_told_of_when_it_comes_and_goes() -> None:
    """R8a: it offers the resource, so it is counted among the nodes that could."""
    one = gpu_class(nodeSelector={"a": "b"})
    passes = Passes(state(one, node("a", 0, labels={"a": "b"})))
    (write,) = writes_of(passes.after(0))
    for other, count in ((node("b", 1), 2), (node("b", 1, resource=T4), 1)):
        passes.after(60, one.model_copy(update={"status": write.status}))
        (write,) = writes_of(passes.after(60, other))
        assert write.status.conditions[0].message == f"1 of {count} nodes with {H100}"


def test_status_that_another_wrote_over_is_written_again() -> None:
    passes = Passes(state(said(gpu_class()), node("a", 4)))
    assert writes_of(passes.after(0)) == []
    (write,) = writes_of(passes.after(60, said(gpu_class(), free=99)))
    assert isinstance(write, WriteClassStatus)
    assert write.status.free == 4


def test_condition_keeps_its_time_while_its_status_stands() -> None:
    """Only a change of True and False is a transition."""
    passes = Passes(state(said(gpu_class()), node("a", 4)))
    passes.after(0)
    (more,) = writes_of(passes.after(60, node("b", 4)))
    assert more.status.conditions[0].last_transition_time == NOW
    cordoned = (node("a", 4, unschedulable=True), node("b", 4, unschedulable=True))
    (none,) = writes_of(passes.after(60, *cordoned))
    assert none.status.conditions[0].last_transition_time == rfc3339(NOW_MS + 120_000)


def test_condition_says_which_generation_of_the_spec_it_speaks_of() -> None:
    """A spec that has changed is told of also where nothing else changes."""
    old = gpu_class()
    passes = Passes(state(said(of_generation(old, 3)), node("a", 4)))
    assert writes_of(passes.after(0)) == []
    newer = of_generation(said(of_generation(old, 3)), 4)
    (write,) = writes_of(passes.after(60, newer))
    assert (write.generation, write.status.conditions[0].observed_generation) == (4, 4)


def test_budget_says_which_generation_of_its_spec_it_speaks_of_and_since_when() -> None:
    passes = Passes(state(of_generation(budget("b"), 3)))
    (write,) = writes_of(passes.after(0))
    (newer,) = writes_of(
        passes.after(60, of_generation(budget("b"), 4).model_copy(update={"status": write.status}))
    )
    for one, generation in ((write, 3), (newer, 4)):
        (condition,) = one.status.conditions
        assert (one.generation, condition.observed_generation) == (generation, generation)
        assert condition.last_transition_time == NOW


def test_generation_that_the_log_does_not_know_is_left_as_it_stands() -> None:
    """An entry from before generations were kept must not make a write every five seconds."""
    assert ready_of().observed_generation == 0
    one = said(of_generation(gpu_class(), 3))
    assert writes_of(Passes(state(of_generation(one, 0), node("a", 4))).after(0)) == []


def test_status_that_changes_all_the_time_is_written_every_five_seconds() -> None:
    """And the pass says when to wake: what comes after the last change must be told, too."""
    passes = Passes(state(gpu_class()))
    written = []
    for second in range(1, 21):
        result = passes.after(1, node(f"n{second}", 1))
        written += [passes.now_ms for _ in writes_of(result)]
        assert result.wake_at_ms == written[-1] + STATUS_EVERY_MS
    assert [after - before for before, after in pairwise(written)] == [STATUS_EVERY_MS] * 3


def test_write_that_failed_is_tried_again_after_five_seconds_without_any_event() -> None:
    passes = Passes(state(gpu_class()))
    first = passes.after(0)
    assert len(writes_of(first)) == 1
    assert first.wake_at_ms == NOW_MS + STATUS_EVERY_MS
    assert writes_of(passes.after(0)) == [], "in the same millisecond"
    assert writes_of(passes.after(4.999)) == []
    assert len(writes_of(passes.after(0.001))) == 1


def test_status_that_is_right_again_is_forgotten() -> None:
    passes = Passes(state(gpu_class(), node("a", 4)))
    (write,) = writes_of(passes.after(0))
    assert isinstance(write, WriteClassStatus)
    assert set(passes.memory.statuses) == {"class/h100"}
    passes.after(4.999, gpu_class().model_copy(update={"status": write.status}))
    assert set(passes.memory.statuses) == {"class/h100"}, "within five seconds it is not written again"
    assert passes.after(0.001).wake_at_ms is None
    assert passes.memory.statuses == {}


def test_clock_that_went_back_delays_no_status() -> None:
    passes = Passes(state(gpu_class()))
    passes.after(0)
    assert len(writes_of(passes.after(-3600))) == 1


def test_many_statuses_are_written_in_rounds_those_that_waited_longest_first() -> None:
    """Launchers do not wait for 120 budgets; and nobody is forgotten."""
    names = [f"b{number:03}" for number in range(120)]
    passes = Passes(state(*(budget(name) for name in names)))
    rounds = []
    for second in (0, 1, 1):
        result = passes.after(second)
        rounds.append([one.set.removeprefix("budget ") for one in writes_of(result)])
        if len(rounds) < 3:
            assert result.wake_at_ms == passes.now_ms + STATUS_ROUND_MS
            assert passes.memory.statuses["budget/b119"] == 0, "never yet"
    assert [len(one) for one in rounds] == [MAX_STATUSES, MAX_STATUSES, 20]
    assert [name for names_of_round in rounds for name in names_of_round] == names
    assert result.wake_at_ms == passes.now_ms - 2 * STATUS_ROUND_MS + STATUS_EVERY_MS


def test_who_was_written_before_stands_behind_who_was_not() -> None:
    """Numbers that change all the time do not keep others from their turn."""
    names = [f"b{number:02}" for number in range(MAX_STATUSES + 10)]
    passes = Passes(state(*(budget(name) for name in names)))
    passes.after(0)
    again = [one.set.removeprefix("budget ") for one in writes_of(passes.after(STATUS_EVERY_MS / 1000))]
    assert again == names[MAX_STATUSES:] + names[: MAX_STATUSES - 10]


def test_what_has_gone_while_it_waited_is_forgotten() -> None:
    passes = Passes(state(budget("b")))
    passes.after(0)
    passes.cluster.shelves["GPUBudget"].drop(("", "b"), "budget-b")
    result = passes.after(10)
    assert writes_of(result) == []
    assert [(one.field, one.value) for one in result.lessons if one.projection == statuses.NAME] == [
        ("budget/b", None)
    ]


def test_status_of_a_class_that_changes_makes_no_new_order_of_nodes() -> None:
    """To sets it is the class that it was: each order of nodes would cost as much as there are nodes."""
    passes = Passes(state(gpu_class(), *(node(f"n{number}", 1) for number in range(3))))
    for number in range(5):
        passes.after(10, said(gpu_class(), free=number))
        live = claims(order(f"o{number}"))
        passes.world.update(live)
        run_pass(passes.world, passes.memory, Policy(), passes.now_ms)
    assert len(passes.world.room.sites) == 1


def test_status_of_a_budget_that_changes_keeps_the_tree() -> None:
    """A tree of many budgets over many namespaces costs all pairs of them."""
    passes = Passes(state(budget("b", h100=3), namespace("default")))
    tree = passes.world.budgets
    (write,) = writes_of(passes.after(0))
    assert isinstance(write, WriteBudgetStatus)
    passes.after(1, budget("b", h100=3).model_copy(update={"status": write.status}))
    assert passes.world.budgets is tree
    assert tree.budgets["b"].status == write.status
    passes.after(1, budget("b", h100=2))
    assert passes.world.budgets is not tree


def of_generation(one: One, generation: int) -> One:
    return one.model_copy(update={"metadata": one.metadata.model_copy(update={"generation": generation})})
