"""What a set that waits is told: one reason, the counts per cause, the nearest miss (R12)."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from binder.core.forming import template_claim_name
from model.claims import GPUClaim
from model.decisions import LoseClaim, MarkWaiting, WarnVmi
from model.meta import Condition, Lean
from model.reasons import Reason
from tests.binder.deciding import Binder, decide, reason_of, warnings
from tests.binder.refusing import REFUSED
from tests.builders import (
    H100,
    T4,
    gpu_class,
    launcher,
    node,
    order,
    pinned_launcher,
    raw_pod,
    started_vm,
    state,
    template_claim,
    vm,
    vmi,
)

WANTED = f"1 of {H100}"
ZONE: dict[str, Any] = {"nodeSelector": {"zone": "a"}}


def message_of(*objects: Lean, live: tuple[GPUClaim, ...] = ()) -> tuple[Reason, str]:
    (waiting,) = decide(state(*objects), *live).waiting
    return waiting.reason, waiting.message


STAGES: list[tuple[Reason, str, tuple[dict[str, Any], ...]]] = [
    (Reason.CLASS_CONSTRAINTS, "2 not accepted by the class (taint, label, not Ready or cordoned)", ()),
    (Reason.POD_CONSTRAINTS, "1 excluded by the VM's own selector or affinity", ({"labels": {"zone": "a"}},)),
    (
        Reason.OTHER_RESOURCES,
        "1 with the units but short of cpu, memory or another resource; nearest is n2, short of memory",
        ({"labels": {"zone": "a", "vm": "yes"}, "more": {"memory": "1Gi"}},),
    ),
]


@pytest.mark.parametrize(("reason", "text", "further"), STAGES, ids=[one[0] for one in STAGES])
def test_reason_is_the_last_stage_that_some_node_reached(
    reason: Reason, text: str, further: tuple[dict[str, Any], ...]
) -> None:
    """R8, R12: the counts of all stages, in their order."""
    closed = [node("n0", labels={}), node("n1", labels={"zone": "a"}, ready="False")]
    more = [node(f"n{i}", **changes) for i, changes in enumerate(further, start=2)]
    found, message = message_of(
        *closed, *more, gpu_class(**ZONE), *started_vm("vm1", node_selector={"vm": "yes"})
    )
    assert found is reason
    assert message.startswith(f"no room for {WANTED} on {len(closed) + len(more)} nodes: ")
    assert message.endswith(text)


def test_nearest_is_the_node_with_most_free_and_of_equal_ones_the_first() -> None:
    """R12."""
    nodes = [node("full", 4), node("b", 4), node("a", 4)]
    taken = [raw_pod("r1", "full", 4), raw_pod("r2", "a", 2), raw_pod("r3", "b", 2)]
    _, message = message_of(*nodes, *taken, gpu_class(), *started_vm("vm1", 3))
    assert message == (
        f"no room for 3 of {H100} on 3 nodes: 3 without enough free units; nearest is a with 2 free"
    )


def test_overbooked_node_has_nothing_free_never_less() -> None:
    """Case 006: no negative number in a message."""
    reason, message = message_of(node("n", 1), raw_pod("r", "n", 3), gpu_class(), *started_vm("vm1"))
    assert (reason, message.rpartition("; ")[2]) == (Reason.NO_ROOM, "nearest is n with 0 free")


def test_too_large_is_what_no_node_could_hold_even_when_empty() -> None:
    """Also for two resources that no one node has both of."""
    assert message_of(node("n", 2), node("m", 3), gpu_class(), *started_vm("vm1", 4)) == (
        Reason.TOO_LARGE,
        f"no node offers 4 of {H100}: 2 have some of it",
    )
    both = (node("h"), node("t", resource=T4), gpu_class(), gpu_class("t4", T4))
    reason, message = message_of(*both, *started_vm("vm1", 1, requests={T4: "1"}))
    assert (reason, message) == (
        Reason.TOO_LARGE,
        f"no node offers 1 of {H100}, 1 of {T4}: 2 have some of it",
    )


def test_no_node_at_all_is_too_large() -> None:
    """An empty cluster is no error."""
    assert message_of(gpu_class(), *started_vm("vm1"))[0] is Reason.TOO_LARGE


def test_nodes_that_refused_are_counted() -> None:
    """R8d, R13."""
    binder = Binder()
    pod = pinned_launcher(pin="a", node="a", status=REFUSED)
    binder.passes(state(node("a"), gpu_class(), vm(), vmi(), pod))
    gated = (vm(), vmi(uid="vmi-2"), launcher(vmi_uid="vmi-2"))
    there = state(node("a"), node("b", ready="False"), gpu_class(), *gated)
    (waiting,) = binder.passes(there).waiting
    assert waiting.reason is Reason.NODES_REFUSED
    assert waiting.message == (
        f"no room for {WANTED} on 2 nodes: 1 not accepted by the class (taint, label, not Ready or cordoned),"
        " 1 that have refused this VM"
    )


WORDS: list[tuple[Reason, str, tuple[Lean, ...], tuple[GPUClaim, ...]]] = [
    (
        Reason.CLAIM_NOT_FOUND,
        "order default/o, named by the VM, does not exist",
        (gpu_class(), vm(claims="o"), vmi(claims="o"), launcher()),
        (),
    ),
    (
        Reason.CLAIM_NOT_FOUND,
        "order default/o, named by the VM, is going away",
        (gpu_class(), vm(claims="o"), vmi(claims="o"), launcher()),
        (order("o", node="gpu-1", vm_uid="vm-vm1", deleting=True),),
    ),
    (
        Reason.CLAIM_IN_USE,
        "order default/o is in use by VM vm2",
        (gpu_class(), vm(), vm("vm2"), vmi(claims="o"), launcher()),
        (order("o", node="gpu-1", vm_uid="vm-vm2"),),
    ),
    (
        Reason.CLASS_NOT_FOUND,
        "GPUClass none does not exist",
        (gpu_class(), vm(), vmi(gpu_class="none"), launcher()),
        (),
    ),
    (
        Reason.CLASS_AMBIGUOUS,
        f"classes a, b all sell {H100} and not exactly one is the default: set gpu.cozystack.io/class",
        (gpu_class("b"), gpu_class("a"), *started_vm("vm1")),
        (),
    ),
    (
        Reason.VOLUME_PENDING,
        "PersistentVolumeClaim default/disk does not exist",
        (
            gpu_class(),
            *started_vm("vm1", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}]),
        ),
        (),
    ),
]


@pytest.mark.parametrize(
    ("reason", "text", "objects", "live"), WORDS, ids=[f"{o[0]}-{o[1][:30]}" for o in WORDS]
)
def test_set_that_cannot_be_formed_says_which_word_is_wrong(
    reason: Reason, text: str, objects: tuple[Lean, ...], live: tuple[GPUClaim, ...]
) -> None:
    """R7, R18: what a user reads names the object and the cause."""
    assert message_of(node(units=4), *objects, live=live) == (reason, text)


@pytest.mark.parametrize(
    "objects",
    [(), (vm(claims="o"),), (vm(claims="o"), vmi(claims="o"), launcher())],
    ids=["nobody's", "named by a VM that has not started", "named by one that waits"],
)
def test_order_of_no_class_says_so_once(objects: tuple[Lean, ...]) -> None:
    """R12: whoever names it."""
    result = decide(state(node(), gpu_class("other", T4), *objects), order("o"))
    (mark,) = (one for one in result.decisions if isinstance(one, MarkWaiting))
    assert (mark.claim.name, mark.reason, mark.message) == (
        "o",
        Reason.CLASS_NOT_FOUND,
        "GPUClass h100 does not exist",
    )


def test_name_that_is_taken_says_by_what() -> None:
    """R7: never adopted."""
    taken = order("vm1-h100-vmi-vm1", node="gpu-1")
    assert message_of(node(), gpu_class(), *started_vm("vm1"), live=(taken,)) == (
        Reason.NAME_TAKEN,
        "claim default/vm1-h100-vmi-vm1 exists and is not this VMI's; delete or rename it",
    )


def marked(claim: GPUClaim, reason: Reason, message: str, since: str = "2026-01-01T00:00:00Z") -> GPUClaim:
    """The claim with the condition that an earlier pass wrote."""
    placed = Condition(
        type="Placed", status="False", reason=reason, message=message, last_transition_time=since
    )
    return claim.model_copy(update={"status": claim.status.model_copy(update={"conditions": (placed,)})})


def test_condition_that_says_it_already_is_not_written_again() -> None:
    """R12: equal states give equal text, so nothing to write."""
    there = (node(units=1), node("gpu-2", 2), raw_pod("r", "gpu-2", 2), gpu_class())
    first = decide(state(*there), order("o", 2))
    (mark,) = first.decisions
    assert isinstance(mark, MarkWaiting)
    assert (mark.since, mark.generation) == ("2027-01-15T08:00:00Z", 1)
    known = marked(order("o", 2), mark.reason, mark.message)
    assert decide(state(*there), known).decisions == ()


def test_condition_that_changes_keeps_since_when_it_waits() -> None:
    """R12: lastTransitionTime is when the status changed, not the reason."""
    known = marked(order("o", 2), Reason.NO_ROOM, "other words")
    (mark,) = decide(state(node(units=1), gpu_class()), known).decisions
    assert isinstance(mark, MarkWaiting)
    assert (mark.reason, mark.since) == (Reason.TOO_LARGE, "2026-01-01T00:00:00Z")


def test_mere_counts_are_refreshed_for_a_few_a_pass_and_reasons_at_once() -> None:
    """Decision 0035: a node that flaps costs no write for everyone who waits."""
    full = state(node(units=2), raw_pod("r", "gpu-1", 2), gpu_class())
    stale = [marked(order(f"o{n:02}"), Reason.NO_ROOM, "old counts") for n in range(30)]
    assert len(decide(full, *stale).decisions) == 20
    assert len(decide(full, *(order(f"o{n:02}") for n in range(30))).decisions) == 30
    news = [marked(order(f"o{n:02}"), Reason.CLASS_CONSTRAINTS, "old reason") for n in range(30)]
    assert len(decide(full, *news).decisions) == 30


def test_held_and_lost_members_keep_their_own_condition() -> None:
    """R12: what waits is the rest of the set."""
    objects = (vm(claims="o,p"), vmi(claims="o,p"), launcher(units=3))
    held = order("o", 1, node="gpu-1", vm_uid="vm-vm1")
    marks = [
        one
        for one in decide(state(node(units=2), gpu_class(), *objects), held, order("p", 2)).decisions
        if isinstance(one, MarkWaiting)
    ]
    assert [one.claim.name for one in marks] == ["p"]


def test_tenant_is_warned_once_per_reason_and_again_when_it_comes_back() -> None:
    """R12: per change of *reason*, not of counts; also after a crash; and an end of waiting is a change."""
    binder, gated = Binder(), tuple(started_vm("vm1", 2))
    one = (node(units=2), raw_pod("r", "gpu-1"), gpu_class())
    two = (*one, node("gpu-2", 2), raw_pod("r2", "gpu-2", 2))
    closed = (node(units=2, ready="False"), gpu_class())
    waiting = template_claim(units=2)
    assert warnings(binder.passes(state(*one, *gated))) == [Reason.NO_ROOM]
    assert warnings(binder.passes(state(*two, *gated), waiting)) == []
    assert warnings(binder.passes(state(*closed, *gated), waiting)) == [Reason.CLASS_CONSTRAINTS]
    assert warnings(binder.passes(state(*one, *gated), waiting)) == [Reason.NO_ROOM]
    assert warnings(binder.passes(state(node(units=2), gpu_class(), *gated), waiting)) == []
    assert warnings(binder.passes(state(*one, *gated), waiting)) == [Reason.NO_ROOM]


def test_warning_is_for_the_vmi_that_waits_now() -> None:
    """R12: the next run of a VM is told anew."""
    binder = Binder()
    full = (node(units=1), raw_pod("r", "gpu-1"), gpu_class())
    assert warnings(binder.passes(state(*full, *started_vm("vm1")))) == [Reason.NO_ROOM]
    again = (vm(), vmi(uid="vmi-2"), launcher(vmi_uid="vmi-2"))
    (warning,) = (o for o in binder.passes(state(*full, *again)).decisions if isinstance(o, WarnVmi))
    assert warning.vmi.uid == "vmi-2"


def test_orders_without_a_vm_warn_nobody() -> None:
    """R12: their condition says it."""
    result = decide(state(gpu_class()), order("o"))
    assert (warnings(result), reason_of(result)) == ([], Reason.TOO_LARGE)


def test_equal_states_give_equal_text_in_whatever_order_they_came() -> None:
    """R4, R12."""
    objects = [node(f"n{i}", i) for i in range(4)] + [node("x", 9, ready="False")]
    there = (gpu_class(), *started_vm("vm1", 5))
    assert message_of(*objects, *there) == message_of(*reversed(objects), *there)


def test_a_node_without_a_unit_has_none_of_it() -> None:
    """R12: what the message counts is there."""
    (waiting,) = decide(state(node(units=0), gpu_class()), order("o")).waiting
    assert waiting.message == f"no node offers 1 of {H100}: 0 have some of it"


def test_a_set_that_leaves_the_only_node_is_told_that_there_is_no_other() -> None:
    """R22: not that room has just come free."""
    short = state(node(units=1), gpu_class())
    live = [order(name, node="gpu-1", boundAt=f"2026-12-01T0{hour}:00:00Z") for hour, name in enumerate("ab")]
    binder = Binder()
    binder.passes(short, *live)
    (loss,) = binder.passes(short, *live, after_s=300).decisions
    assert isinstance(loss, LoseClaim)
    assert loss.message == f"node gpu-1 offers less than is held there; no other node offers 1 of {H100}"


def test_a_template_claim_that_is_named_is_said_to_be_none_of_the_orders() -> None:
    """R7, R18: it exists."""
    name = "vm1-h100-vmi-vm1"
    objects = (vm(claims=name), vmi(claims=name), launcher())
    (waiting,) = decide(state(node(), gpu_class(), *objects), template_claim()).waiting
    assert (
        waiting.message == f"order default/{name}, named by the VM, is no order but the claim of a VM's run"
    )


def test_a_template_claim_that_is_too_small_is_said_to_be_that() -> None:
    """R7: nobody deletes it."""
    objects = (*started_vm("vm1", 3), gpu_class(), node(units=4))
    (waiting,) = decide(state(*objects), template_claim(units=2)).waiting
    text = "has 2 units, 1 fewer than the VM asks for; restart the VM to have one made that fits"
    assert waiting.message == f"claim default/vm1-h100-vmi-vm1 {text}"


def waits_since(name: str, reason: str) -> GPUClaim:
    """An order that said so before, of a state that has changed since."""
    said = {"type": "Placed", "status": "False", "reason": reason, "message": "of an hour ago"}
    return order(name, 9, conditions=[said])


def test_new_reasons_are_written_at_once_and_take_no_turn_of_those_that_only_count_anew() -> None:
    """R12: twenty refreshed messages a pass, beside as many new reasons as there are."""
    news = [order(f"a{n:02d}", 9) for n in range(25)]
    stale = [waits_since(f"b{n:02d}", "TooLarge") for n in range(30)]
    result = decide(state(node(), gpu_class()), *news, *stale)
    marked = [one.claim.name for one in result.decisions if isinstance(one, MarkWaiting)]
    assert marked == [one.metadata.name for one in (*news, *stale[:20])]


def test_pass_that_may_not_decide_says_what_it_waits_for() -> None:
    """R33."""
    begun = state(node(), gpu_class())
    begun.complete -= {"Pod", "Node"}
    assert decide(begun).blocked == "waiting for the first complete list of Node, Pod"
    for silent_ms, blocked in ((60_999, ""), (61_000, "StaleLog: no watcher was heard of for 61 s")):
        silent = state(node(), gpu_class())
        silent.heard_ms -= silent_ms
        assert decide(silent).blocked == blocked
    silent.heard_ms += 1000
    assert decide(silent).blocked == ""


def test_vm_whose_devices_nobody_sells_is_told_so() -> None:
    """R7, R12: what it asks for is gated by a class that has gone since."""
    (waiting,) = decide(state(node(), *started_vm("vm1"))).waiting
    assert (waiting.reason, waiting.message) == (
        Reason.CLASS_NOT_FOUND, "no GPUClass sells what the VM asks for"
    )  # fmt: skip


def test_more_classes_than_a_message_holds_are_counted() -> None:
    """R7: five by name; exactly five leave nothing to count."""
    for count, text in (
        (5, "classes c0, c1, c2, c3, c4 all"),
        (7, "classes c0, c1, c2, c3, c4 and 2 more all"),
    ):
        classes = [gpu_class(f"c{n}") for n in range(count)]
        (waiting,) = decide(state(node(), *classes, *started_vm("vm1"))).waiting
        assert waiting.reason is Reason.CLASS_AMBIGUOUS
        assert waiting.message.startswith(text)


@pytest.mark.parametrize("length", [240, 241, 252, 300])
def test_name_of_a_template_claim_is_cut_and_told_apart_where_it_would_be_too_long(length: int) -> None:
    """R7: 253 characters at most, none of them wasted; equal beginnings give different names."""
    uid, classes = "12345678-and-more", ("h100", "h200")
    names = [template_claim_name(vmi("v" * (length - 5), uid=uid), one) for one in classes]
    assert len(set(names)) == 2
    for name, one in zip(names, classes, strict=True):
        assert name.endswith("-12345678")
        whole = f"{'v' * (length - 5)}-{one}-12345678"
        if len(whole) <= 253:
            assert name == whole
        else:
            digest = hashlib.sha256(whole.removesuffix("-12345678").encode()).hexdigest()[:8]
            assert name == f"{whole[: 253 - 9 - 9]}-{digest}-12345678"


def test_cut_name_ends_in_no_dash_before_its_digest() -> None:
    """R7: nor in a dot."""
    name = "v" * 230 + ".-.-.-" + "w" * 30
    made = template_claim_name(vmi(name, uid="12345678"), "h100")
    assert made.startswith("v" * 230 + "-")
    assert len(made) == 230 + 1 + 8 + 9
