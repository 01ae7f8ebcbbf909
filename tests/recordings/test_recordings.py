"""The simulated cluster is held to the recordings of a real KubeVirt: same nodes, VMs, steps: same states."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import orjson
import pytest

from kube.port import Json
from tests.recordings.fields import fields_by_state, launcher_shape
from tests.recordings.playing import WATCHED, played
from tests.recordings.races import LATE_LOOKS, RACES, Race, settled
from tests.recordings.recording import NAMES, Event, recorded
from tests.recordings.steps import STEPS
from tests.recordings.timeline import timelines

_KINDS = {resource.kind for resource in WATCHED}
ALL_RACES = (*RACES, *LATE_LOOKS)
BUSY = ("launcher-deleted-before-it-ran", "vmi-deleted-by-run-strategy")
"""Recorded while the machine had much else to do."""
each_recording = pytest.mark.parametrize("name", NAMES)


@cache
def real(name: str) -> list[Event]:
    return [event for event in recorded(name) if event.kind in _KINDS]


@cache
def simulated(name: str) -> list[Event]:
    return played(name, STEPS[name])


def told(name: str, events: list[Event]) -> dict[str, list[str]]:
    races = ALL_RACES if name in BUSY else RACES
    return {role: settled(states, races) for role, states in timelines(events).items()}


def launchers(events: list[Event]) -> list[Json]:
    """Every launcher as it was created, by VM: those of several VMs race."""
    owners = {e.object["metadata"]["uid"]: "its VMI" for e in events if e.kind == "VirtualMachineInstance"}
    created = [e.object for e in events if e.kind == "Pod" and e.type == "ADDED"]
    created.sort(key=lambda pod: str(pod["metadata"]["generateName"]))
    return [launcher_shape(pod, owners) for pod in created]


def test_every_recording_has_its_steps() -> None:
    assert set(STEPS) == set(NAMES)


@each_recording
def test_every_object_goes_through_the_recorded_states(name: str) -> None:
    assert told(name, simulated(name)) == told(name, real(name))


@each_recording
def test_in_every_state_the_models_read_what_they_read_in_the_recording(name: str) -> None:
    recorded_fields, simulated_fields = fields_by_state(real(name)), fields_by_state(simulated(name))
    wanted = [(role, state) for role, states in recorded_fields.items() for state in states]
    shared = [(role, state) for role, state in wanted if state in simulated_fields[role]]
    for role, state in shared:
        assert simulated_fields[role][state] == recorded_fields[role][state], f"{role}: {state}"
    assert len(shared) > 0.8 * len(wanted), "all but the races are there to be compared"


@each_recording
def test_launchers_are_made_as_the_real_one_makes_them(name: str) -> None:
    """Labels, annotations, owner, selector, affinity, tolerations, resources, volumes, gates (048, R6)."""
    assert launchers(simulated(name)) == launchers(real(name))


@pytest.mark.parametrize(
    ("name", "left_out"), [(name, number) for name in NAMES for number in range(len(STEPS[name]))]
)
def test_comparison_notices_a_step_that_was_not_made(name: str, left_out: int) -> None:
    """What cannot fail proves nothing."""
    steps = STEPS[name][:left_out]  # later steps rest on it
    assert told(name, played(name, steps)) != told(name, real(name))


@pytest.mark.parametrize("race", ALL_RACES, ids=[f"{n} {race.why}" for n, race in enumerate(ALL_RACES)])
def test_no_rule_about_races_is_idle(race: Race) -> None:
    rest = [other for other in ALL_RACES if other is not race]
    seen = [
        states for name in NAMES for side in (real, simulated) for states in timelines(side(name)).values()
    ]
    assert any(settled(states, ALL_RACES) != settled(states, rest) for states in seen)


@each_recording
def test_same_seed_gives_the_same_bytes(name: str) -> None:
    again = played(name, STEPS[name])
    assert bytes_of(again) == bytes_of(simulated(name))


def test_another_process_gives_the_same_bytes() -> None:
    """Nothing rests on the order of sets, which changes with the seed of Python's hashes."""
    name = "two-vms-last-gpu-and-vm-deleted-while-gated"
    program = (
        "from tests.recordings import test_recordings as t;"
        f"print(t.digest(t.played({name!r}, t.STEPS[{name!r}])))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "4711"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert ran.stdout.strip() == digest(simulated(name))


def test_another_seed_gives_other_names_and_the_same_states() -> None:
    name = "refused-by-kubelet-then-other-node"
    other = played(name, STEPS[name], seed=7)
    assert bytes_of(other) != bytes_of(simulated(name))
    assert told(name, other) == told(name, simulated(name))


def digest(events: list[Event]) -> str:
    return hashlib.sha256(bytes_of(events)).hexdigest()


def bytes_of(events: list[Event]) -> bytes:
    return orjson.dumps([(event.at_s, event.kind, event.type, event.object) for event in events])
