"""One run: a random cluster and random pods, and what a real kube-scheduler says of each pod."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.cluster.assets import Assets
from tests.cluster.control_plane import ControlPlane
from tests.cluster.processes import wait_for
from tests.differential import clusters
from tests.differential.client import PATHS, Client, create_all
from tests.differential.pods import pods
from tests.differential.scheduler import Extender, start_api_server, start_scheduler
from tests.differential.verdicts import lean

Json = dict[str, Any]
VERDICT_LIMIT_S = 300


@dataclass(frozen=True, slots=True)
class Case:
    """A pod as the log has it, and the nodes that the scheduler would take for it."""

    pod: Json
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Run:
    """A cluster as the log has it, cases, and what the API server did not take."""

    objects: tuple[Json, ...]
    cases: tuple[Case, ...]
    refused: tuple[str, ...]


def run(assets: Assets, seed: str, count: int) -> Run:
    """Judge `count` random pods; the same seed gives the same cluster and pods."""
    rng = Random(seed)
    plane = start_api_server(assets)
    extender = Extender()
    try:
        objects, refused = _make_cluster(plane, rng)
        made, odd = create_all(plane, pods(rng, count))
        start_scheduler(plane, extender)
        waiting = {pod["metadata"]["name"] for pod in made}
        client = Client(plane)
        wait_for(
            "a verdict on each pod",
            lambda: _are_judged(client, waiting, extender),
            plane.processes,
            VERDICT_LIMIT_S,
        )
        client.close()
    except BaseException:
        plane.stop(keep_logs=True)
        raise
    finally:
        extender.close()
    plane.stop()
    cases = (Case(lean(pod), extender.passed.get(pod["metadata"]["name"], frozenset())) for pod in made)
    return Run(tuple(objects), tuple(cases), (*refused, *odd))


def _make_cluster(plane: ControlPlane, rng: Random) -> tuple[list[Json], list[str]]:
    objects, refused = create_all(plane, clusters.classes())
    for wanted in (clusters.nodes(rng), clusters.volumes(rng), clusters.claims(rng), clusters.occupants(rng)):
        made, odd = create_all(plane, wanted)
        objects += made
        refused += odd
    client = Client(plane)
    objects = [client.delete(one) if _is_to_leave(one) else one for one in objects]
    client.close()
    return [lean(one) for one in objects if one["kind"] != "RuntimeClass"], refused


def _is_to_leave(one: Json) -> bool:
    return one["kind"] == "PersistentVolumeClaim" and str(one["metadata"]["name"]).endswith("7")


def _are_judged(client: Client, waiting: set[str], extender: Extender) -> bool:
    """Whether each pod has reached the extender or was refused before it."""
    waiting -= extender.passed.keys()
    if not waiting:
        return True
    listed: Iterable[Json] = client.request("GET", f"{PATHS['Pod']}?resourceVersion=0")["items"]
    for pod in listed:
        for condition in pod["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                waiting.discard(pod["metadata"]["name"])
    return not waiting
