"""Looks at the API server's own objects all through a story: nothing is booked or used twice.

It reads no code of gpubinder's: units are summed here once more, from claims and from pods.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kube.port import Json, Selection, list_all
from model.resources import NODES, PODS
from tests.stories.conftest import Stage

EVERY_S = 0.2
ENDED = ("Succeeded", "Failed")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(slots=True)
class Judge:
    """What was wrong, and how often it has looked."""

    stage: Stage
    looks: int = 0
    wrong: list[str] = field(default_factory=list)
    _most: Counter[str] = field(default_factory=Counter)
    """The most units that a node has ever reported: a device plugin may restart in between."""

    async def look(self) -> None:
        """Once at all nodes, launchers and claims of the story."""
        for node in (await list_all(self.stage.client, NODES)).items:
            units = int((node.get("status") or {}).get("allocatable", {}).get(self.stage.resource, 0))
            self._most[node["metadata"]["name"]] = max(units, self._most[node["metadata"]["name"]])
        pods = (await list_all(self.stage.client, PODS, Selection(self.stage.namespace))).items
        self.wrong += [f"{pod['metadata']['name']} runs off its pin" for pod in pods if is_off_its_pin(pod)]
        self._check("used", used(pods, self.stage.resource))
        self._check("booked", booked(await self.stage.claims()))
        self.looks += 1

    def _check(self, what: str, units: Counter[str]) -> None:
        for node, count in units.items():
            if count > self._most[node]:
                self.wrong.append(
                    f"{count} units {what} on {node}, which never had more than {self._most[node]}"
                )


def used(pods: list[Json], resource: str) -> Counter[str]:
    """Units that pods on each node ask for; one that is on its way out still has them."""
    units: Counter[str] = Counter()
    for pod in pods:
        if pod["status"].get("phase") not in ENDED and pod["spec"].get("nodeName"):
            asked = [c.get("resources", {}).get("requests", {}) for c in pod["spec"]["containers"]]
            units[pod["spec"]["nodeName"]] += sum(int(each.get(resource, 0)) for each in asked)
    return units


def booked(claims: list[Json]) -> Counter[str]:
    """Units of the claims Bound to each node."""
    units: Counter[str] = Counter()
    for claim in claims:
        status = claim.get("status") or {}
        if status.get("phase") == "Bound":
            units[status["nodeName"]] += claim["spec"]["units"]
    return units


def pins_of(pod: Json) -> set[str]:
    """The nodes that the launcher's required terms name."""
    required = (pod["spec"].get("affinity") or {}).get("nodeAffinity", {}).get(_REQUIRED, {})
    terms = required.get("nodeSelectorTerms", [])
    return {name for term in terms for one in term.get("matchFields", []) for name in one["values"]}


def is_off_its_pin(pod: Json) -> bool:
    """A launcher is on the node that it was pinned to, and on no node before."""
    is_launcher = (pod["metadata"].get("labels") or {}).get("kubevirt.io") == "virt-launcher"
    node = pod["spec"].get("nodeName")
    return is_launcher and bool(node) and pins_of(pod) != {node}


@asynccontextmanager
async def judging(stage: Stage) -> AsyncIterator[Judge]:
    """Look while the context is open; afterwards nothing may have been wrong."""
    judge = Judge(stage)

    async def look_on() -> None:
        while True:
            await judge.look()
            await asyncio.sleep(EVERY_S)

    looking = asyncio.create_task(look_on())
    yield judge
    looking.cancel()
    (end,) = await asyncio.gather(looking, return_exceptions=True)
    assert isinstance(end, asyncio.CancelledError), end
    await judge.look()
    assert not judge.wrong, judge.wrong[:5]
    assert judge.looks > 1
