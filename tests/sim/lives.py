"""Plays one script: the cluster and our processes in virtual time, checked on the way and at the end."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial

from eventlog.adapters.memory import MemoryLog
from eventlog.adapters.memory_presence import MemoryPresence
from model import resources as r
from model.crds import all_crds
from simulator.apiserver.served import COZYSTACK
from simulator.apiserver.server import ApiServer
from simulator.cluster import gate_policy, living
from simulator.virtual_time import Clock, run_virtual
from tests.sim import checks
from tests.sim.drawing import ACTIVE
from tests.sim.faults import Body, Doom, Weather
from tests.sim.past import Past
from tests.sim.processes import LEASE, Ground, Process, Told
from tests.sim.script import Act, Script
from tests.sim.staging import Stage
from tests.sim.witness import Judge

LOOK_S = 1.0
SETTLE_S = 900.0
"""Within which all has to settle: a VM's start back-off is 300 s, a refusal is remembered for 120 s."""
STILL_S = 60.0
"""For which nothing is written then."""


@dataclass(slots=True)
class Report:
    """What became of a life."""

    seed: int
    failures: list[str]
    counts: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    """Of the first process: what a crash can be set to."""

    @property
    def broken(self) -> str:
        """The number of the check that failed first, or nothing."""
        return self.failures[0].partition(":")[0] if self.failures else ""


@dataclass(slots=True)
class Life:
    """A script being played."""

    script: Script
    ground: Ground
    stage: Stage
    judge: Judge
    processes: dict[str, Process] = field(default_factory=dict)
    ended: list[Process] = field(default_factory=list)
    switched_off: set[str] = field(default_factory=set)
    started: int = 0
    revives: bool = False
    """Whether a dead process is started again at once."""

    async def play(self) -> None:
        """All acts at their times, then the calm."""
        for act in self.script.acts:
            await self._let_pass(act.at_s - self.judge.past.now_s())
            if self.judge.failures:
                return
            await self._do(act)
        await self._let_pass(self.script.calm_s - self.judge.past.now_s())
        if not self.judge.failures:
            await self._calm_down()
            await self._settle()

    async def _let_pass(self, seconds: float) -> None:
        """With a look at the nodes now and then, and at our own loops."""
        until_s = self.judge.past.now_s() + seconds
        while not self.judge.failures and self.judge.past.now_s() < until_s:
            self.judge.look()
            self._check_loops()
            for name, process in list(self.processes.items()):
                if self.revives and process.is_dead:
                    self._start(name)
            await asyncio.sleep(min(LOOK_S, max(0.001, until_s - self.judge.past.now_s())))

    async def _do(self, act: Act) -> None:
        if self.stage.knows(act):
            await self.stage.do(act)
        else:
            await self._do_to_processes(act)
            self.stage.counts[act.do] += 1

    async def _do_to_processes(self, act: Act) -> None:
        of = self._process(str(act.to.get("name", "")))
        match act.do:
            case "start process":
                self._start(str(act.to["name"]))
            case "switch process":
                name = str(act.to["name"])
                (self.switched_off.discard if act.to["on"] else self.switched_off.add)(name)
                if of is not None:
                    await self._stop(of)
                    self._start(name)
            case "stop process" if of is not None:
                await self._stop(of)
            case "kill process" if of is not None:
                of.kill()
            case "doom process" if of is not None:
                doom = Doom(str(act.to["calls"]), int(act.to["nth"]), bool(act.to["after"]))
                of.body.doom = replace(doom, for_s=float(act.to.get("for_s", 0.0)))
            case "pause process" if of is not None:
                of.sleep()
                asyncio.get_running_loop().call_later(float(act.to["for_s"]), of.wake)
            case "jump clock" if of is not None:
                of.skew_ms += 1000 * int(act.to["by_s"])
                self.judge.past.clock_jumped_s = self.judge.past.now_s()
            case "empty log":
                self.ground.log.flush()
                self.judge.past.log_emptied_s = self.judge.past.now_s()

    def _process(self, name: str) -> Process | None:
        """By its name; or the active one, by the lease."""
        lease = self.ground.server.store.read(r.LEASES, LEASE) or {}
        holder = str(lease.get("spec", {}).get("holderIdentity") or "")
        return self.processes.get(holder.partition("-")[0] if name == ACTIVE else name)

    def _start(self, name: str) -> None:
        """A process of that name, if none lives; each has an identity of its own."""
        old = self.processes.get(name)
        if old is not None and not old.is_dead:
            return
        if old is not None:
            self.ended.append(old)
        self.started += 1
        body = Body(f"{name}-{self.started}", self.ground.weather)
        told = Told(partial(self.judge.pass_done, body.name))
        policy = self.script.policy_value(is_enabled=name not in self.switched_off)
        self.processes[name] = Process(body, told, policy)
        self.processes[name].start(self.ground, self.judge)

    async def _stop(self, process: Process) -> None:
        """SIGTERM, and SIGKILL for what does not end in time."""
        process.wake()
        stopping = asyncio.ensure_future(process.stop())
        await asyncio.wait([stopping], timeout=30.0)
        process.kill()
        await stopping

    def _check_loops(self) -> None:
        for process in self.processes.values():
            fault = process.fault_of_ours()
            if fault:
                self.judge.fail(f"0: a loop of {process.body.name} ended with {fault}")

    async def _calm_down(self) -> None:
        """No fault any more, clocks right, hardware well, and one process at least that is switched on."""
        self.ground.weather.is_calm = True
        self.switched_off.clear()
        await self.stage.calm_down()
        for name, process in list(self.processes.items()):
            process.body.doom = None
            process.skew_ms = 0
            process.wake()
            if not process.policy.is_enabled:
                await self._stop(process)
                self._start(name)
        self._start("p1")

    async def _settle(self) -> None:
        """Wait until nothing is left to do; then nothing may be written any more."""
        until_s = self.judge.past.now_s() + SETTLE_S
        wrongs = ["nobody looked"]
        while not self.judge.failures and self.judge.past.now_s() < until_s:
            await self._let_pass(10.0)
            view = self.judge.view()
            wrongs = [why for check in checks.AT_THE_END for _, why in check(view)]
            is_still = self.judge.past.now_s() - self.judge.last_write_s > STILL_S
            if not wrongs and is_still:
                return
        if wrongs:
            self.judge.fail(f"{wrongs[0]} (it does not settle within {SETTLE_S:.0f} s)")
        else:
            self.judge.fail(f"6: the binder goes on writing when nothing happens: {self.judge.last_write}")


async def _cluster(clock: Clock, seed: int) -> ApiServer:
    """An API server as `simulator.cluster.api_server` makes it, to which KubeVirt has still to come."""
    server = ApiServer(clock, seed)
    server.kinds.add(*COZYSTACK)
    for crd in all_crds():
        await server.create(r.CUSTOM_RESOURCE_DEFINITIONS, crd)
    server.mutators.append(gate_policy(server))
    return server


def run_life(script: Script, *, revives: bool = False) -> Report:
    """Play the script from its beginning to its end, or to the first check that fails."""
    random.seed(script.seed)  # the leader's own pauses
    report = Report(script.seed, [])

    async def main(clock: Clock) -> None:
        server = await _cluster(clock, script.seed)
        log, weather = MemoryLog(clock), Weather(script.faults)
        ground = Ground(server, log, MemoryPresence(clock), clock, weather)
        judge, stage = Judge(ground, Past()), Stage(server)
        life = Life(script, ground, stage, judge, revives=revives)
        server.validators.append(judge.past.note_update)
        async with living(server, clock):
            try:
                await life.play()
            finally:
                _fill(report, life)
                await _end(life)

    try:
        run_virtual(main)
    except Exception as error:  # noqa: BLE001 - whatever a life ends with is its seed's finding
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{where.filename.rpartition('/')[2]}:{where.lineno}"
        report.failures.append(f"0: {type(error).__name__} at {at}: {error}")
    return report


async def _end(life: Life) -> None:
    for process in (*life.processes.values(), *life.ended):
        process.kill()
    for task in life.stage.tasks:
        task.cancel()
    tasks = [task for process in (*life.processes.values(), *life.ended) for task in process.tasks]
    await asyncio.gather(*tasks, *life.stage.tasks, return_exceptions=True)


def _fill(report: Report, life: Life) -> None:
    report.failures += life.judge.failures
    report.acts.update(life.stage.counts)
    report.faults.update(life.ground.weather.counts)
    report.decided.update(life.judge.decided)
    report.reasons.update(life.judge.reasons)
    report.counts.update(life.judge.counts)
    for process in (*life.processes.values(), *life.ended):
        report.counts.update(process.told.counts)
    first = [
        process for process in (*life.ended, *life.processes.values()) if process.body.name.endswith("-1")
    ]
    report.calls.update(first[0].body.calls if first else {})
    report.counts["lives"] += 1
    report.counts["seconds lived"] += round(life.judge.past.now_s())
