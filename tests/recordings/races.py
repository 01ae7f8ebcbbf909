"""What may differ between two runs of the real cluster, as data: each rule with its reason.

`settled` brings a timeline to the form that all runs share. A rule looks at a state and its neighbours; it
drops the state or gives the word for both forms. A test holds that no rule is idle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Race:
    """Where all three patterns match in full, `state` is replaced, or dropped when `by` is None."""

    why: str
    state: str
    by: str | None = None
    before: str = ".*"
    after: str = ".*"

    def applies(self, before: str, state: str, after: str) -> bool:
        """Whether the state stands in the rule's place; the neighbours of the ends are empty."""
        wanted = ((self.before, before), (self.state, state), (self.after, after))
        return all(re.fullmatch(pattern, text) for pattern, text in wanted)


_LAGGING = "Scheduling passed=['Scheduling'] Ready=False/GuestNotRunning"

RACES = (
    Race(
        "the VMI lists its launcher 10 to 30 ms after its creation: its first Scheduling may lack it",
        state=r"Scheduling pods=\[''\] passed=\['Scheduling'\] Ready=False/GuestNotRunning",
        by=_LAGGING,
    ),
    Race(
        "an ended VMI is seen without its pods once more, or its finalizer goes first",
        before="(Failed|Succeeded) .*deleting",
        state="(Failed|Succeeded) (?!.*pods=).*Ready=False/PodNotExists.*deleting",
        after="gone",
    ),
    Race(
        "virt-handler notes the end of a deleted VMI, or virt-controller misses the launcher first",
        before="(Running|Succeeded|Failed) .*deleting",
        state="(Succeeded node=.* passed=.*'Succeeded'|Failed node=.* passed=.*'Running')].*deleting",
        by="ended deleting",
    ),
    Race(
        "the VM's first status after a start was made with or without sight of the new VMI",
        state="(Starting|Stopped)( failures=[0-9]+)? strategy=.*",
        after="Starting created.*",
    ),
    Race(
        "the kubelet of the recordings overwrote foreign conditions; virt-controller put its own back",
        state="Running node=[^ ]+ PodScheduled=True/ Ready=True/",
        after="Running node=[^ ]+ PodScheduled=True/ Ready=True/ virtual-machine-unpaused=True/NotPaused",
    ),
    *(
        Race(
            "after an outage the recorded kubelet did not call its pods ready again; a real one does",
            before=before,
            state=state,
        )
        for before, state in (
            ("Running node=.* Ready=False/ .*", "Running node=.* Ready=True/ .*"),
            ("Running created strategy=Always", "Running created ready strategy=Always"),
        )
    ),
    Race(
        "a pod that runs nowhere goes at once; a real API server shows the mark of the deletion just before",
        state="(Pending|Failed) .*deleting",
        after="gone",
    ),
    Race(
        "and so a VMI may or may not see its launcher on its way out",
        state=r"Failed (pods=\[''\] )?.*Ready=False/PodTerminating.*",
        after="Failed (?!pods=).*Ready=False/PodNotExists.*",
    ),
)

_LATE = "on a real API server an actor may look late and take two steps at once"
LATE_LOOKS = (
    Race(_LATE, state="Stopping created( ready)? strategy=.*", by="Stopping"),
    Race(_LATE, state="Stopped created( ready)? strategy=.*", before="Stopping"),
    Race(_LATE, state="Stopped strategy=.*", before="new .*", after="Starting created.*"),
    Race(_LATE, state="Scheduling pods=.*'gpu-.*", after="Scheduled .*"),
    Race(_LATE, state="Running .*PodTerminating.*deleting", before="Running .* Ready=True/ .*deleting"),
)
"""For a busy API server: the simulator's requests take no time, there every step is seen."""


def settled(states: Sequence[str], races: Sequence[Race] = RACES) -> list[str]:
    """The timeline without what may differ from run to run."""
    for race in races:
        states = [state for state, _ in groupby(_without(race, states))]
    return list(states)


def _without(race: Race, states: Sequence[str]) -> list[str]:
    around = zip(["", *states], states, [*states[1:], ""], strict=False)
    judged = [race.by if race.applies(*three) else three[1] for three in around]
    return [state for state in judged if state is not None]
