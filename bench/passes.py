"""One pass over growing clusters: how long it takes, how it grows, what one changed object costs."""

from __future__ import annotations

import gc
import math
import multiprocessing
import resource
import statistics
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import orjson

from bench.big_cluster import CLAIMS_A_NODE, NOW_MS, Cluster, big_cluster
from bench.figures import Figure
from binder.core.claims import key_of
from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.state import ClusterState, Key
from binder.core.world import World
from model.claims import GPUClaim
from model.decisions import MarkWaiting, PinLauncher
from model.kinds import BY_KIND
from projections.folds.memory import Memory

SIZES = (500, 5000)
"""Nodes; the second is what the design names, with 20,000 claims and 1,000 gated launchers."""
UNITS_A_NODE = 8
ROUNDS = 20


def figures() -> list[Figure]:
    """Milliseconds of the processor, worst of `ROUNDS`; the growth between the two sizes."""
    rows, typical_s = [], {}
    for size in SIZES:
        built_s, full_s = _full_passes(size)
        typical_s[size] = statistics.median(full_s)
        rows += [
            Figure(f"{size} nodes: index built from nothing", built_s * 1000, "ms"),
            Figure(f"{size} nodes: full pass that places all", max(full_s) * 1000, "ms (250 wanted at 5000)"),
        ]
    changed_s = _passes_after_one_change(SIZES[-1])
    memory_mb = _in_fresh_process(SIZES[-1])
    small, large = SIZES
    exponent = math.log(typical_s[large] / typical_s[small]) / math.log(large / small)
    return [
        *rows,
        Figure(f"{large} nodes: pass after one changed object", max(changed_s) * 1000, "ms (20 wanted)"),
        Figure("growth exponent of a full pass", exponent, "(1.1 wanted at most)"),
        Figure(f"{large} nodes: memory of a process with all of it", memory_mb, "MB (500 wanted)"),
    ]


def _full_passes(size: int) -> tuple[float, list[float]]:
    """How long the index takes, and each pass that places a fifth as many launchers as there are nodes."""
    cluster, memory = big_cluster(size, UNITS_A_NODE), Memory()
    gc.disable()  # as a term begins
    began = process_time()
    world = _look(cluster)
    built_s = process_time() - began
    gc.enable()
    memory.learn(_pass(world, cluster, memory).lessons)
    took_s = []
    gc.freeze()  # as a long-lived process has it: what stands is not looked through again and again
    for _ in range(ROUNDS):
        began = process_time()
        result = _pass(world, cluster, memory)
        took_s.append(process_time() - began)
        assert sum(isinstance(decision, PinLauncher) for decision in result.decisions) == cluster.gated
    gc.unfreeze()
    return built_s, took_s


def _passes_after_one_change(size: int) -> list[float]:
    """A node reports other units while every unit is taken and all launchers wait."""
    cluster, memory = big_cluster(size, CLAIMS_A_NODE), Memory()
    world = _look(cluster)
    first = _pass(world, cluster, memory)
    memory.learn(first.lessons)
    for mark in first.decisions:
        if isinstance(mark, MarkWaiting):
            condition = {"type": "Placed", "status": "False", "reason": mark.reason, "message": mark.message}
            cluster.put_claim(mark.set.partition("/")[2], {"phase": "Pending", "conditions": [condition]})
    memory.learn(_pass(world, cluster, memory).lessons)
    took_s = []
    gc.freeze()
    for number in range(ROUNDS):
        cluster.put_node(0, CLAIMS_A_NODE - number % 2)
        began = process_time()
        memory.learn(_pass(world, cluster, memory, ()).lessons)
        took_s.append(process_time() - began)
    gc.unfreeze()
    return took_s


def _memory_mb(folder: Path) -> float:
    """What a process has in memory that has read the fold and the claims, and has run a pass."""
    state, claims, memory = ClusterState(heard_ms=NOW_MS, complete=set(BY_KIND)), {}, Memory()
    for line in (folder / "objects").open("rb"):
        kind, namespace, name, uid, version, body = orjson.loads(line)
        state.shelves[kind].put((namespace, name), uid, version, body.encode())
    for line in (folder / "claims").open("rb"):
        claim = GPUClaim.model_validate_json(line)
        claims[key_of(claim)] = claim
    cluster = Cluster(state, claims, 0)
    memory.learn(_pass(_look(cluster), cluster, memory).lessons)
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _in_fresh_process(size: int) -> float:
    """The objects go through files, as they come from the log and the API server: little by little."""
    cluster = big_cluster(size, UNITS_A_NODE)
    with TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "objects").open("wb") as file:
            for kind, shelf in cluster.state.shelves.items():
                for key, body in shelf.bodies():
                    row = [kind, *key, shelf.uids[key], shelf.versions[key], body.decode()]
                    file.write(orjson.dumps(row) + b"\n")
        with (folder / "claims").open("wb") as file:
            for claim in cluster.claims.values():
                file.write(claim.model_dump_json(by_alias=True, exclude_defaults=True).encode() + b"\n")
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            return process.submit(_memory_mb, folder).result()


def _look(cluster: Cluster) -> World:
    world = World(cluster.state)
    world.update(cluster.claims)
    return world


def _pass(
    world: World, cluster: Cluster, memory: Memory, changed: tuple[Key, ...] | None = None
) -> PassResult:
    """`changed`: what the list of claims, which compares each one anyhow, tells of them."""
    world.update(cluster.claims, changed)
    result = run_pass(world, memory, Policy(), NOW_MS)
    world.learned_from()
    return result
