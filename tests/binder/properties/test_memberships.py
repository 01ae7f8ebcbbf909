"""Each order that a VM or nobody uses is looked after: it is in exactly one set (R16, R18)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from binder.core.sets import Stage
from model.claims import GPUClaim
from tests.binder.properties import raw
from tests.binder.properties.budget import examples
from tests.binder.properties.events import Event, events, happen, start
from tests.binder.properties.life import Life

Key = tuple[str, str]


def memberships(life: Life) -> Counter[Key]:
    """In how many sets each claim is."""
    found: Counter[Key] = Counter()
    for one in life.look().sets.values():
        members = {(member.ref.namespace, member.ref.name) for member in one.members}
        found.update(members | {(c.metadata.namespace, c.metadata.name) for c in one.unsold})
    return found


def is_order(claim: GPUClaim) -> bool:
    return not claim.metadata.owner_references and claim.metadata.deletion_timestamp is None


def held_up(life: Life) -> set[Key]:
    """Orders that a gated launcher names and that cannot be told apart from its obstacle."""
    waiting = [one for one in life.look().sets.values() if one.stage is Stage.GATED and one.obstacle]
    names = {(one.key.partition("/")[0], one.key.partition("/")[2]): one for one in waiting}
    links = life.world.relations
    return {(key[0], order) for key in names for order in links.names_of(key)}


@given(st.lists(events, max_size=30))
@examples(40)
def test_every_order_is_in_one_set(history: list[Event]) -> None:
    life = Life()
    start(life)
    for event in history:
        happen(life, event)
    found, excused = memberships(life), held_up(life)
    for key, claim in life.claims.items():
        if is_order(claim) and key not in excused:
            assert found[key] == 1, f"{key} is in {found[key]} sets"


def test_order_is_in_the_set_of_a_vm_also_while_a_run_of_its_predecessor_lingers() -> None:
    """The VMI has ended and says nothing for the VM that has its name now."""
    life = Life()
    start(life)
    life.put("VirtualMachine", raw.vm("x", "a", 0, "Always", "o1"))
    life.put("VirtualMachineInstance", raw.vmi("x", "a", 0, "Failed", vm_life=1))
    life.put("GPUClaim", raw.claim("x", "o1", "h", 1))
    assert memberships(life)["x", "o1"] == 1
