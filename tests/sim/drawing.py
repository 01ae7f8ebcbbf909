"""A script from a seed: who does what, when, and what goes wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.sim.faults import API_KINDS, CALLS, LOG, LOG_KINDS
from tests.sim.script import Act, Fault, Script

H, T = "nvidia.com/H100", "nvidia.com/A10"
NAMESPACES = ("t1", "t2")
VM_NAMES = tuple(f"vm{number}" for number in range(5))
ORDER_NAMES = ("o1", "o2")
NODE_NAMES = tuple(f"gpu-{number}" for number in range(5))
ACTIVE = "active"
PROCESSES = ("p1", "p2", "p3")
JUMPS_S = (-600, -30, -2, 2, 30, 50, 600)
LIFE_S = (120.0, 420.0)
BEGIN_S = 5.0
_SHORT = {
    "keep_grace_s": 60,
    "unschedulable_after_s": 30,
    "rejection_s": 120,
    "restart_hold_s": 60,
    "max_vmi_deletions": 2,
}

Draw = Callable[["Dice"], tuple[str, dict[str, Any]]]


class Dice(random.Random):
    """With the choices that scripts are made of."""

    def node(self) -> str:
        return self.choice(NODE_NAMES)

    def vm(self) -> dict[str, Any]:
        return {"ns": self.choice(NAMESPACES), "name": self.choice(VM_NAMES)}

    def order(self) -> dict[str, Any]:
        return {"ns": self.choice(NAMESPACES), "name": self.choice(ORDER_NAMES)}

    def gpus(self) -> dict[str, int]:
        return dict(self.choice(({H: 1}, {H: 1}, {H: 1}, {H: 2}, {H: 1, T: 1}, {T: 1}, {H: 4})))

    def names(self) -> str:
        return self.choice(("",) * 10 + ("o1", "o2", "o1,o2"))

    def process(self) -> str:
        return self.choice(PROCESSES)

    def victim(self) -> str:
        """A process, or whichever is active then."""
        return self.choice((ACTIVE, ACTIVE, *PROCESSES))

    def at(self) -> str:
        return self.choice(("", self.node()))

    def gpu_class(self) -> str:
        return self.choice(("h", "h", "t", "h2"))


def new_vm(dice: Dice) -> tuple[str, dict[str, Any]]:
    strategy = dice.choice(("Always",) * 6 + ("RerunOnFailure", "Manual", "Once"))
    vm = dice.vm() | {"gpus": dice.gpus(), "orders": dice.names(), "strategy": strategy}
    vm["class"] = dice.choice(("",) * 19 + ("h2",))
    vm["zone"] = dice.choice(("",) * 9 + ("b",))
    vm["cores"] = dice.choice((2,) * 9 + (400,))
    vm["disk"] = dice.choice(("",) * 12 + (dice.node(), dice.node(), "missing"))
    vm["lingers"] = dice.random() < 0.5
    vm["squatted"] = dice.choice(("",) * 9 + ("h",))
    return "create vm", vm


def new_node(dice: Dice) -> tuple[str, dict[str, Any]]:
    offered = {H: dice.choice((1, 2, 4, 8)), T: dice.choice((0, 0, 2))}
    return "create node", {"name": dice.node(), "gpus": offered, "zone": dice.choice(("a", "a", "b"))}


def _of_vm(what: str) -> Draw:
    return lambda dice: (what, dice.vm())


def _of_node(what: str, **more: Any) -> Draw:
    return lambda dice: (what, {"name": dice.node(), **more})


def _class(dice: Dice) -> tuple[str, dict[str, Any]]:
    name = dice.gpu_class()
    return "create class", {"name": name, "resource": T if name == "t" else H, "default": dice.random() < 0.5}


def _process(what: str) -> Draw:
    return lambda dice: (what, {"name": dice.process()})


def _raw(dice: Dice) -> dict[str, Any]:
    return {"ns": dice.choice(NAMESPACES), "name": dice.choice(("raw1", "raw2"))}


def _raw_wish(dice: Dice) -> dict[str, Any]:
    """Half of them go again soon, and take their time for it."""
    for_s = dice.choice((0.0, 0.0, 10.0, 30.0))
    return {"gpus": {H: dice.choice((1, 2))}, "node": dice.at(), "for_s": for_s}


def _sale(dice: Dice) -> dict[str, Any]:
    return {"class": dice.gpu_class(), "units": dice.choice((1, 1, 2))}


def _budget(dice: Dice) -> tuple[str, dict[str, Any]]:
    budget = {"name": dice.choice(("b1", "b2")), "team": dice.choice(("r", "s", ""))}
    limits = {dice.gpu_class(): dice.choice((0, 1, 2, 4))}
    return "set budget", budget | {"classes": limits, "parent": dice.choice(("", "", "b1"))}


def _doom(dice: Dice) -> tuple[str, dict[str, Any]]:
    """It dies at a call to come; or sleeps there, as long as another needs to take over."""
    calls = dice.choice(("writes", "writes", "commit", "conclude", "append", "lease"))
    nth, is_after, for_s = dice.randint(1, 4), dice.random() < 0.5, dice.choice((0, 20, 60))
    doom = {"name": dice.victim(), "calls": calls, "nth": nth, "after": is_after, "for_s": for_s}
    return "doom process", doom


def _order(dice: Dice) -> tuple[str, dict[str, Any]]:
    return "create order", dice.order() | _sale(dice)


DRAWS_OF_ORDERS: tuple[Draw, ...] = (_order, _order)
DRAWS: tuple[tuple[int, Draw], ...] = (
    (14, new_vm),
    (5, _of_vm("halt vm")),
    (4, _of_vm("run vm")),
    (6, _of_vm("restart vm")),
    (4, _of_vm("delete vm")),
    (5, _of_vm("migrate vm")),
    (3, _of_vm("crash vm")),
    (2, _of_vm("shut down vm")),
    (3, lambda dice: ("name orders", dice.vm() | {"orders": dice.names()})),
    (5, new_node),
    (3, _of_node("delete node")),
    (2, _of_node("replace node")),
    (4, _of_node("kill node")),
    (3, _of_node("revive node")),
    (2, _of_node("cordon")),
    (2, _of_node("uncordon")),
    (4, _of_node("taint", effect="NoExecute")),
    (1, _of_node("taint", effect="NoSchedule")),
    (4, _of_node("untaint")),
    (4, _of_node("plugin down")),
    (3, _of_node("plugin up")),
    (5, _of_node("refuse")),
    (2, _of_node("accept")),
    (1, lambda dice: ("relabel node", {"name": dice.node(), "zone": dice.choice(("a", "b", "c"))})),
    (7, _order),
    (3, lambda dice: ("delete order", dice.order())),
    (3, _budget),
    (1, lambda dice: ("delete budget", {"name": dice.choice(("b1", "b2"))})),
    (1, lambda dice: ("label namespace", {"name": dice.choice(NAMESPACES), "team": dice.choice(("r", "s"))})),
    (2, _class),
    (1, lambda dice: ("delete class", {"name": dice.choice(("h", "h2", "h2", "t"))})),
    (1, lambda dice: ("set default", {"name": dice.gpu_class(), "default": dice.random() < 0.5})),
    (3, lambda dice: ("create pod", _raw(dice) | _raw_wish(dice))),
    (3, lambda dice: ("delete pod", _raw(dice))),
    (2, lambda dice: ("forge launcher", dice.vm() | {"gpus": {H: 1}})),
    (2, lambda dice: ("forge claim", dice.vm() | {"class": dice.gpu_class()})),
    (1, lambda dice: ("forge owner", dice.order() | {"vm": dice.choice(VM_NAMES)})),
    (1, lambda dice: ("delete namespace", {"name": dice.choice(NAMESPACES)})),
    (4, _process("start process")),
    (1, lambda dice: ("switch process", {"name": dice.process(), "on": dice.random() < 0.7})),
    (2, lambda dice: ("stop process", {"name": dice.victim()})),
    (3, lambda dice: ("kill process", {"name": dice.victim()})),
    (9, _doom),
    (3, lambda dice: ("pause process", {"name": dice.victim(), "for_s": dice.choice((3, 20, 40, 130))})),
    (1, lambda dice: ("jump clock", {"name": dice.victim(), "by_s": dice.choice(JUMPS_S)})),
    (1, lambda dice: ("empty log", {})),
    (2, lambda dice: ("compact", {})),
    (1, lambda dice: ("kubevirt away", {"for_s": dice.choice((10, 60, 200))})),
)  # fmt: skip


def draw_script(seed: int) -> Script:
    """The life of a seed."""
    dice = Dice(seed)
    calm_s = dice.uniform(*LIFE_S)
    acts = [*_beginning(dice), *_middle(dice, calm_s)]
    policy = {} if dice.random() < 0.1 else {**_SHORT, **_some(dice)}
    acts.sort(key=lambda one: one.at_s)
    return Script(seed, policy, tuple(acts), tuple(_faults(dice, calm_s)), calm_s)


def _some(dice: Dice) -> dict[str, int]:
    return {"max_vmi_deletions": dice.choice((1, 1, 2, 5)), "keep_grace_s": dice.choice((15, 60))}


def _beginning(dice: Dice) -> list[Act]:
    """A cluster that is worth living in, and somebody of ours."""
    acts = [Act(0.0, "create namespace", {"name": one, "team": dice.choice("rs")}) for one in NAMESPACES]
    acts.append(Act(0.0, "create class", {"name": "h", "resource": H, "default": True}))
    acts.append(Act(0.0, "create class", {"name": "t", "resource": T, "default": False}))
    nodes = NODE_NAMES[: dice.randint(2, 5)]
    acts += [Act(0.0, "create node", new_node(dice)[1] | {"name": node}) for node in nodes]
    arrives_s = dice.choice((0.0,) * 6 + (30.0,))
    acts.append(Act(arrives_s, "kubevirt arrives", {}))
    for name in PROCESSES[: dice.choice((1, 2, 2, 2, 3))]:
        acts += [Act(dice.uniform(0.0, BEGIN_S), "start process", {"name": name})]
    vms = range(dice.randint(2, 8))
    acts += [Act(dice.uniform(0.0, 4 * BEGIN_S), *new_vm(dice)) for _ in vms]
    some = DRAWS_OF_ORDERS[: dice.choice((0, 1, 2))]
    acts += [Act(dice.uniform(0.0, BEGIN_S), *draw(dice)) for draw in some]
    return acts


def _middle(dice: Dice, calm_s: float) -> list[Act]:
    """Single acts, and now and then several at nearly one moment: races."""
    weights, draws = [weight for weight, _ in DRAWS], [draw for _, draw in DRAWS]
    acts, at_s = [], BEGIN_S
    while at_s < calm_s:
        acts.append(Act(round(at_s, 2), *dice.choices(draws, weights)[0](dice)))
        at_s += dice.uniform(0.0, 0.3) if dice.random() < 0.3 else dice.uniform(0.5, 20.0)
    return acts


def _faults(dice: Dice, calm_s: float) -> list[Fault]:
    """Now and then much, for a while; some lives have none."""
    found = []
    for _ in range(dice.choice((0, 2, 4, 8, 12))):
        calls = dice.choice(CALLS)
        kind = dice.choice(LOG_KINDS if calls == LOG else API_KINDS[calls])
        from_s = round(dice.uniform(0.0, calm_s), 2)
        to_s = round(from_s + dice.choice((1.0, 5.0, 20.0, 60.0, 150.0)), 2)
        rate = dice.choice((0.02, 0.1, 0.3, 0.7, 1.0))
        found.append(Fault(from_s, to_s, dice.choice(("", *PROCESSES)), calls, kind, rate))
    return found
