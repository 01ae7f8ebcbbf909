"""Closed loops with what tenants and clocks do besides: orders named while a VM runs, forged references,
taints that are tolerated for a while, a clock that is set back. What a pass says of its deadline is true.
"""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from binder.core.run_pass import PassResult
from model.names import ANNOTATION_CLAIMS, GATE
from tests.binder.properties import raw
from tests.binder.properties.budget import examples
from tests.binder.properties.loop import Loop
from tests.binder.properties.raw import H
from tests.binder.properties.test_closed_loops import Act, act, acts, begin, checked_pass, come_to_rest, vms

HOUR_MS = 60 * 60 * 1000
hostile: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("name"), st.tuples(vms, st.sampled_from(("", "o1", "o2", "o1,o2")))),
    st.tuples(st.just("forge"), vms),
    st.tuples(st.just("tolerate"), st.sampled_from(raw.TOLERATIONS)),
    st.tuples(st.just("clock back"), st.sampled_from((5, 100, 4000))),
)
histories = st.lists(st.tuples(acts | acts | hostile, st.integers(0, 3)), min_size=4, max_size=30)


def act_hostile(loop: Loop, event: Act, recent: list[int]) -> None:
    """What a tenant or a clock does; everything else is done as in other loops."""
    life = loop.life
    match event:
        case ("name", (tuple(key), str(names))):
            vmi = loop.get("VirtualMachineInstance", *key)
            if vmi is not None:
                vmi["metadata"]["annotations"] = {ANNOTATION_CLAIMS: names} if names else {}
                life.put("VirtualMachineInstance", vmi)
        case ("forge", tuple(key)):
            vmi = loop.get("VirtualMachineInstance", *key)
            if vmi is not None:
                forge(loop, vmi)
        case ("tolerate", list(tolerations)):
            gpu_class = raw.gpu_class(
                "h", H, default=True, nodeSelector={"zone": "1"}, tolerations=tolerations
            )
            life.put("GPUClass", gpu_class)
        case ("clock back", int(seconds)):
            life.pass_time(-seconds)
            recent[:] = [min(at, life.now_ms) for at in recent]
        case _:
            act(loop, event)


def forge(loop: Loop, vmi: raw.Raw) -> None:
    """In another namespace: a claim of that VMI, and a VMI of the same VM with a gated launcher."""
    meta = vmi["metadata"]
    claim = raw.claim("evil", f"of-{meta['name']}", "h", 3)
    owner = raw.owner("VirtualMachineInstance", meta["name"], meta["uid"])
    loop.life.put("GPUClaim", claim | {"metadata": claim["metadata"] | {"ownerReferences": [owner]}})
    alike = raw.vmi("evil", meta["name"], 9, "Scheduling", pods=("evil",))
    alike["metadata"]["ownerReferences"] = meta["ownerReferences"]
    loop.life.put("VirtualMachineInstance", alike)
    loop.life.put("Pod", raw.launcher("evil", "evil", meta["name"], 9, gpus={H: "1"}, gates=[GATE]))


def silent_until(loop: Loop, wake_at_ms: int | None) -> PassResult:
    """The pass of the last moment before the deadline, or of the next hour where there is none."""
    life, now_ms = loop.life, loop.life.now_ms
    life.now_ms = life.state.heard_ms = wake_at_ms - 1 if wake_at_ms else now_ms + HOUR_MS
    result = life.decide()
    life.now_ms = life.state.heard_ms = now_ms
    return result


@given(histories)
@examples(40)
def test_laws_hold_whatever_tenants_and_clocks_do_and_no_deadline_is_hidden(
    history: list[tuple[Act, int]],
) -> None:
    """Laws 1 to 5 and 7, R4: it comes to rest, and until `wake_at_ms` time alone changes nothing."""
    loop, recent = begin(hold_s=300), list[int]()
    for event, rounds in history:
        note(f"--- {event}")
        act_hostile(loop, event, recent)
        for _ in range(rounds):
            checked_pass(loop, recent)
            loop.respond()
    come_to_rest(loop, recent)
    last = loop.life.decide()
    later = silent_until(loop, last.wake_at_ms)
    assert (later.decisions, later.waiting) == ((), last.waiting)
