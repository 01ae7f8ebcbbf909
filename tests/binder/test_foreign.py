"""Constraints that placement does not model are found on a launcher and named."""

from __future__ import annotations

from typing import Any

import pytest

from binder.core.foreign import caution, foreign_constraints
from model.pods import Pod
from tests.builders import launcher

TERM = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}]
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": TERM}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM[0]}]}


def pod(**spec: Any) -> Pod:
    return Pod.model_validate({"metadata": {"name": "p"}, "spec": spec})


def spread(how: str) -> dict[str, Any]:
    return {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": how}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({}, ()),
        ({"schedulerName": "default-scheduler"}, ()),
        ({"affinity": {"podAffinity": PREFERRED, "podAntiAffinity": PREFERRED}}, ()),
        ({"topologySpreadConstraints": [spread("ScheduleAnyway")]}, ()),
        ({"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}, ()),
        ({"affinity": {"podAffinity": REQUIRED}}, ("pod affinity",)),
        ({"affinity": {"podAntiAffinity": REQUIRED}}, ("pod anti-affinity",)),
        ({"topologySpreadConstraints": [spread("DoNotSchedule")]}, ("topology spread",)),
        ({"resourceClaims": [{"name": "gpu"}]}, ("resource claims",)),
        ({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}, ("host ports",)),
        ({"initContainers": [{"name": "c", "ports": [{"hostPort": 80}]}]}, ("host ports",)),
        ({"schedulerName": "other"}, ("scheduler other",)),
    ],
    ids=str,
)
def test_foreign_constraints_are_named(spec: dict[str, Any], named: tuple[str, ...]) -> None:
    assert foreign_constraints(pod(**spec)) == named


def test_several_are_named_in_one_line_and_always_in_the_same_order() -> None:
    both = pod(schedulerName="s" * 500, affinity={"podAntiAffinity": REQUIRED, "podAffinity": REQUIRED})
    text = f"the scheduler may still refuse: pod affinity, pod anti-affinity, scheduler {'s' * 63}"
    assert caution(both) == text


def test_usual_launcher_carries_none() -> None:
    assert caution(launcher()) == ""
