"""What must always hold (50-testing), over closed loops: passes, their writes, and a cluster that answers."""

from __future__ import annotations

import copy

from hypothesis import given, note
from hypothesis import strategies as st

from binder.core.policy import Policy
from tests.binder.properties import laws, raw
from tests.binder.properties.budget import examples
from tests.binder.properties.life import Life
from tests.binder.properties.loop import Loop, Wish
from tests.binder.properties.raw import H, T

QUIET_AFTER = 30
"""Rounds of pass and answer without any event: more would be a loop of writes."""

Act = tuple[str, object]
History = list[tuple[Act, int]]
nodes = st.sampled_from(("n0", "n1", "n2"))
vms = st.tuples(st.sampled_from(("x", "x", "x", "y")), st.sampled_from(("a", "b", "c", "d")))
offers = st.sampled_from(({H: "4"}, {H: "2"}, {H: "2", T: "2"}, {H: "1"}, {H: "0"}))
looks = st.fixed_dictionaries(
    {
        "taints": st.sampled_from((*[raw.TAINTS[0]] * 5, raw.TAINTS[1], raw.TAINTS[2], raw.TAINTS[3])),
        "ready": st.sampled_from(("True", "True", "True", "False")),
        "unschedulable": st.sampled_from((False, False, False, True)),
        "labels": st.sampled_from(({"zone": "1"}, {"zone": "1"}, {})),
    }
)
orders = st.sampled_from(("o1", "o2", "a"))
acts: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("node"), st.tuples(nodes, offers, looks)),
    st.tuples(st.just("node gone"), nodes),
    *[st.tuples(st.just("vm"), st.tuples(vms, st.sampled_from(({H: "1"}, {H: "2"}, {H: "1", T: "1"})),
                                         st.sampled_from(("", "", "", "o1", "o2", "o1,o2"))))] * 3,
    st.tuples(st.just("stop"), vms),
    st.tuples(st.just("strategy"), st.tuples(vms, st.sampled_from(("Always", "Manual", "RerunOnFailure")))),
    st.tuples(st.just("vm gone"), vms),
    st.tuples(st.just("order"), st.tuples(orders, st.sampled_from(("h", "h", "t")), st.sampled_from((1, 2)))),
    st.tuples(st.just("order gone"), orders),
    st.tuples(st.just("raw"), st.tuples(nodes, st.sampled_from(({H: "1"}, {H: "2"})), st.booleans())),
    st.tuples(st.just("refuse"), nodes),
    st.tuples(st.just("fail"), vms),
    st.tuples(st.just("budget"), st.sampled_from(({}, {"h": 1}, {"h": 3}))),
    st.tuples(st.just("wait"), st.sampled_from((10, 70, 310, 700))),
    st.tuples(st.just("crash"), st.integers(0, 4)),
)  # fmt: skip
histories = st.lists(st.tuples(acts, st.integers(0, 3)), min_size=4, max_size=30)
"""Each event with how many rounds of pass and answer follow it."""


def begin(*, hold_s: int) -> Loop:
    """Two nodes, two classes, three VMs, an order; two namespaces, of which one can be limited."""
    loop = Loop(Life(policy=Policy(restart_hold_s=hold_s)))
    act(loop, ("node", ("n0", {H: "2", T: "2"}, {"labels": {"zone": "1"}})))
    act(loop, ("node", ("n1", {H: "4"}, {"labels": {"zone": "1"}})))
    loop.life.put("GPUClass", raw.gpu_class("h", H, default=True, nodeSelector={"zone": "1"}))
    loop.life.put("GPUClass", raw.gpu_class("t", T, default=True, tolerations=raw.TOLERATIONS[1]))
    loop.life.put("Namespace", raw.namespace("x", {"team": "r"}))
    act(loop, ("order", ("o1", "h", 1)))
    act(loop, ("vm", (("x", "a"), {H: "1"}, "")))
    act(loop, ("vm", (("x", "b"), {H: "2"}, "o1")))
    act(loop, ("vm", (("y", "a"), {H: "1", T: "1"}, "")))
    return loop


def act(loop: Loop, event: Act) -> None:  # noqa: C901, PLR0912 - one branch per event
    """Something happens in the cluster."""
    life = loop.life
    match event:
        case ("node", (str(name), dict(offered), dict(look))):
            for resource, units in offered.items():
                key = (name, resource)
                loop.most[key] = max(loop.most.get(key, 0), int(units))
            life.put("Node", raw.node(name, 0, offered, **look))
        case ("node gone", str(name)):
            life.delete("Node", ("", name))
        case ("vm", ((namespace, name), dict(gpus), str(names))) if (namespace, name) not in loop.wishes:
            loop.wishes[namespace, name] = Wish(gpus, names)
            life.put("VirtualMachine", raw.vm(namespace, name, 0, "Always", names))
        case ("stop", tuple(key)):
            set_strategy(loop, key, "Halted")
        case ("strategy", (tuple(key), str(strategy))):
            set_strategy(loop, key, strategy)
        case ("vm gone", tuple(key)):
            loop.wishes.pop(key, None)
            loop.end_vmi(key)
            life.delete("VirtualMachine", key)
        case ("order", (str(name), str(class_name), int(units))) if ("x", name) not in life.claims:
            life.put("GPUClaim", raw.claim("x", name, class_name, units, kept=False))
        case ("order gone", str(name)):
            claim = loop.get("GPUClaim", "x", name)
            if claim is not None and claim["metadata"].get("finalizers"):
                claim["metadata"]["deletionTimestamp"] = raw.DEAD
                life.put("GPUClaim", claim)
            else:
                life.delete("GPUClaim", ("x", name))
        case ("raw", (str(node), dict(gpus), bool(comes))):
            life.put("Pod", raw.raw_pod("y", "p", node, gpus, "Running" if comes else "Succeeded"))
        case ("refuse", str(node)):
            loop.refusing.add(node)
        case ("fail", tuple(key)):
            vmi = loop.get("VirtualMachineInstance", *key)
            if vmi is not None:
                vmi["status"]["phase"] = "Failed"
                life.put("VirtualMachineInstance", vmi)
                for pod in [
                    p for p in loop.cluster()["Pod"] if p["metadata"]["uid"] in vmi["status"]["activePods"]
                ]:
                    life.put("Pod", pod | {"status": {"phase": "Failed"}})
        case ("budget", dict(limits)):
            life.put("GPUBudget", raw.budget("b1", "", limits, {"team": "r"}))
        case ("wait", int(seconds)):
            life.pass_time(seconds)
        case ("crash", int(cut)):
            loop.run_pass(cut)


def set_strategy(loop: Loop, key: tuple[str, str], strategy: str) -> None:
    vm = loop.get("VirtualMachine", *key)
    if vm is not None:
        loop.wishes[key].strategy = vm["spec"]["runStrategy"] = strategy
        loop.life.put("VirtualMachine", vm)


def checked_pass(loop: Loop, recent: list[int]) -> int:
    """One pass that is carried out whole, and every law after it; how much it decided."""
    before = copy.deepcopy(loop.cluster())
    result = loop.run_pass()
    note(f"{[*result.decisions]} {result.waiting} {result.notices}")
    laws.no_unit_is_booked_twice(loop, result)
    laws.deletions_are_allowed(loop, result, before, recent)
    laws.budgets_hold(loop, result, before)
    if not result.notices:  # a mass outage moves and loses nothing
        laws.sets_are_whole(loop)
    return len(result.decisions)


def live(loop: Loop, history: History) -> None:
    """Events with rounds between them, until nothing more happens."""
    recent: list[int] = []
    come_to_rest(loop, recent)
    for event, rounds in history:
        note(f"--- {event}")
        act(loop, event)
        for _ in range(rounds):
            checked_pass(loop, recent)
            loop.respond()
    note("--- nothing more happens")
    come_to_rest(loop, recent)


def come_to_rest(loop: Loop, recent: list[int]) -> None:
    """Rounds, until neither the binder nor the cluster does anything more."""
    for _ in range(QUIET_AFTER):
        decided = checked_pass(loop, recent)
        if not loop.respond() and not decided:
            break
    else:
        raise AssertionError("it never comes to rest")


@given(histories)
@examples(40)
def test_laws_hold_after_every_pass_and_everything_comes_to_rest(history: History) -> None:
    """Laws 1 to 5 and 7; a pass with nothing new decides nothing."""
    live(begin(hold_s=300), history)


@given(histories)
@examples(40)
def test_nobody_waits_while_a_node_would_take_the_set(history: History) -> None:
    """Law 6, and R12: by the reference, without holds for restarts, which it does not know."""
    loop = begin(hold_s=0)
    live(loop, history)
    laws.nobody_waits_for_nothing(loop, loop.life.decide())
