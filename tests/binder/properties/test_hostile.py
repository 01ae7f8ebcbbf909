"""Objects that make no sense, and sizes that nobody has: a reason each, no exception, and no end of time."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binder.core.run_pass import PassResult, run_pass
from binder.core.sets import MAX_MESSAGE
from binder.journal import intent_body
from model.names import GATE
from model.reasons import Reason
from tests.binder.properties import raw
from tests.binder.properties.budget import examples
from tests.binder.properties.from_models import objects
from tests.binder.properties.life import Life
from tests.binder.properties.raw import H, Raw


@given(st.lists(st.lists(objects(), max_size=6), min_size=1, max_size=4))
@examples(80)
def test_no_object_that_the_models_take_stops_a_pass(history: list[list[tuple[str, Raw]]]) -> None:
    """Also when it contradicts itself: Bound without a node, owners nowhere, times of another age."""
    life = Life()
    for step in history:
        for kind, one in step:
            life.put(kind, one)
        life.pass_time(400)
        result = life.decide()
        assert all(len(one.message) <= MAX_MESSAGE for one in result.waiting)
        assert intent_body(result, life.policy, "1-0", life.now_ms)


def clusters(size: int) -> dict[str, Callable[[Life], None]]:
    """What a tenant can do to others, of that size; each leaves somebody waiting."""
    return {
        "VMs that name one order": lambda life: _name_one_order(life, size),
        "orders that one VM names": lambda life: _name_orders(life, size, size),
        "orders that many VMs name": lambda life: _name_many_orders(life, size // 25),
        "terms of an affinity": lambda life: _put_terms(life, size),
        "characters of a label": lambda life: life.put("Node", _node(labels={"a": "b" * 100 * size})),
        "forged pods of one VMI": lambda life: _forge_pods(life, size),
        "VMIs that refer to one VM": lambda life: _refer_to_one_vm(life, size),
        "volumes of a pod": lambda life: _put_launcher(life, disks=[f"d{n}" for n in range(size)]),
        "taints of a node": lambda life: life.put("Node", _node(taints=_taints(size))),
        "Lost orders": lambda life: _put_orders(life, size, phase="Lost"),
        "orders on one node": lambda life: _put_orders(life, size, phase="Bound", node="n0"),
        "pods on one node": lambda life: _put_raw_pods(life, size),
    }


SMALL, TIMES = 250, 8


@pytest.mark.parametrize("what", clusters(0))
def test_time_grows_with_size_and_not_with_its_square(what: str) -> None:
    """Eight times the size may cost three times eight; the square would cost sixty-four. Processor time.

    A busy neighbour on the same processor can cost as much once, and does not each time.
    """
    tries = ((_cost(what, SMALL), _cost(what, TIMES * SMALL)) for _ in range(3))
    seen = []
    for small, large in tries:
        seen.append(f"{small:.3f} s, then {large:.3f} s")
        if large < 3 * TIMES * max(small, 0.004):
            return
    pytest.fail("; ".join(seen))


def _cost(what: str, size: int) -> float:
    """Seconds of processor time that the world and two passes take; the better of two."""
    return min(_cost_once(what, size) for _ in range(2))


def _cost_once(what: str, size: int) -> float:
    life = Life()
    life.put("Node", _node())
    life.put("GPUClass", raw.gpu_class("h", H))
    _put_launcher(life)
    clusters(size)[what](life)
    for shelf in life.state.shelves.values():
        shelf.decoded()
    began = time.process_time()
    life.decide()
    result = life.decide()
    took = time.process_time() - began
    assert all(one.reason in Reason for one in result.waiting)
    return took


def _node(**look: object) -> Raw:
    return raw.node("n0", 0, {H: "2"}, **look)


def _put_launcher(life: Life, name: str = "z", orders: str = "", **look: object) -> None:
    life.put("VirtualMachine", raw.vm("x", name, 0, "Always", orders))
    life.put(
        "VirtualMachineInstance", raw.vmi("x", name, 0, "", vm_life=0, orders=orders, pods=(f"{name}0",))
    )
    life.put("Pod", raw.launcher("x", f"{name}0", name, 0, **{"gpus": {H: "1"}, "gates": [GATE]} | look))


def _name_one_order(life: Life, size: int) -> None:
    for number in range(size):
        _put_launcher(life, f"v{number}", "o1")
    life.put("GPUClaim", raw.claim("x", "o1", "h", 1))


def _name_orders(life: Life, size: int, claims: int) -> None:
    """Then all others, once the first have been looked at."""
    _put_launcher(life, "v", ",".join(f"o{number}" for number in range(size)))
    _put_orders(life, claims)
    life.look()
    _put_launcher(life, "v", ",".join(f"p{number}" for number in range(size)))


def _name_many_orders(life: Life, size: int) -> None:
    """Each of so many VMs names so many orders: the annotations grow with the square."""
    for number in range(int(size**0.5) + 1):
        _put_launcher(life, f"v{number}", ",".join(f"o{one}" for one in range(int(size**0.5) + 1)))
    _put_orders(life, int(size**0.5) + 1)


def _put_terms(life: Life, size: int) -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]}
    _put_launcher(life, terms=[term] * size)


def _forge_pods(life: Life, size: int) -> None:
    for number in range(size):
        life.put("Pod", raw.launcher("x", f"f{number}", "z", 0, gpus={H: "1"}, node="n0", phase="Running"))


def _refer_to_one_vm(life: Life, size: int) -> None:
    for number in range(size):
        life.put("VirtualMachineInstance", raw.vmi("x", f"i{number}", 0, "", vm_life=0, vm_name="z"))
        user = raw.uid_of("VM", "x", "z", 0)
        life.put("GPUClaim", raw.claim("x", f"o{number}", "h", 1, vm_uid=user))


def _taints(size: int) -> list[Raw]:
    return [{"key": f"k{number}", "effect": "NoExecute"} for number in range(size)]


def _put_orders(life: Life, size: int, **look: object) -> None:
    for number in range(size):
        life.put("GPUClaim", raw.claim("x", f"o{number}", "h", 1, **look))


def _put_raw_pods(life: Life, size: int) -> None:
    for number in range(size):
        life.put("Pod", raw.raw_pod("x", f"f{number}", "n0", {H: "1"}, "Running"))


def test_cycles_and_chains_of_budgets_refuse_and_end() -> None:
    """R27: what is broken allows nothing new."""
    life = Life()
    life.put("Node", _node())
    life.put("GPUClass", raw.gpu_class("h", H))
    life.put("Namespace", raw.namespace("x", {}))
    life.put("GPUClaim", raw.claim("x", "o1", "h", 1))
    for number in range(200):
        life.put("GPUBudget", raw.budget(f"b{number}", f"b{(number + 1) % 200}", {}, {}))
    result: PassResult = run_pass(life.look(), life.memory, life.policy, life.now_ms)
    assert [one.reason for one in result.waiting] == [Reason.BUDGET_EXCEEDED]


def test_message_with_a_tenants_words_has_an_end() -> None:
    """An annotation may be as long as 256 kB."""
    life = Life()
    life.put("Node", _node())
    life.put("GPUClass", raw.gpu_class("h", H))
    _put_launcher(life, "a", "o" * 200_000)
    (waiting,) = life.decide().waiting
    assert waiting.reason is Reason.CLAIM_NOT_FOUND
    assert len(waiting.message) == MAX_MESSAGE
