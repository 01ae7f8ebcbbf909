"""One pass over growing clusters: how long it takes, how it grows, what one changed object costs."""

from __future__ import annotations

import gc
import math
import multiprocessing
import resource
import statistics
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter

from bench.big_cluster import CLAIMS_A_NODE, NOW_MS, Cluster, big_cluster
from bench.figures import Figure
from binder.core.policy import Policy
from binder.core.run_pass import PassResult, run_pass
from binder.core.world import World
from model.decisions import MarkWaiting, PinLauncher
from projections.folds.memory import Memory

SIZES = (500, 5000)
"""Nodes; the second is what the design names, with 20,000 claims and 1,000 gated launchers."""
UNITS_A_NODE = 8
ROUNDS = 20


def figures() -> list[Figure]:
    """Everything in milliseconds, worst of `ROUNDS`; the growth between the two sizes."""
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
    began = perf_counter()
    world = _look(cluster)
    built_s = perf_counter() - began
    memory.learn(_pass(world, cluster, memory).lessons)
    took_s = []
    gc.freeze()  # as a long-lived process has it: what stands is not looked through again and again
    for _ in range(ROUNDS):
        began = perf_counter()
        result = _pass(world, cluster, memory)
        took_s.append(perf_counter() - began)
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
        began = perf_counter()
        memory.learn(_pass(world, cluster, memory).lessons)
        took_s.append(perf_counter() - began)
    gc.unfreeze()
    return took_s


def _memory_mb(size: int) -> float:
    """What a process has in memory that holds the fold, the claims and the index, and has run a pass."""
    cluster, memory = big_cluster(size, UNITS_A_NODE), Memory()
    world = _look(cluster)
    memory.learn(_pass(world, cluster, memory).lessons)
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _in_fresh_process(size: int) -> float:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(_memory_mb, size).result()


def _look(cluster: Cluster) -> World:
    world = World(cluster.state)
    world.update(cluster.claims)
    return world


def _pass(world: World, cluster: Cluster, memory: Memory) -> PassResult:
    world.update(cluster.claims)
    return run_pass(world, memory, Policy(), NOW_MS)
