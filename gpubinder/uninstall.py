"""`gpubinder uninstall`: take off what would let a cluster hang without a binder (R30).

In this order: what gates new launchers, the gates themselves, our finalizers, the Lease. A launcher that was
made meanwhile may still be gated, since an API server goes on with a policy for some seconds: so it is looked
again until two rounds have found nothing that could be taken off. What somebody puts back again and again
ends it. Deletes no order, no class and no CRD.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from binder.core.pin import ungate_patch
from gpubinder.errors import CommandError
from gpubinder.logs import plain
from gpubinder.settings import ClusterChoice
from gpubinder.stores import advice, reach_cluster
from gpubinder.system import LEASE
from kube.errors import ApiError, Conflict, NotFound
from kube.port import Client, DeleteOptions, Json, ObjectKey, Selection
from model.names import FINALIZER, GATE, LABEL_OURS, OURS
from model.resources import ADMISSION, GPU_CLAIMS, GPU_CLASSES, LEASES, PODS, Resource

LEASE_WATCHED_S = 5.0
"""A binder renews every 2 s: one that has not is none."""
PAUSE_S = 2.0
QUIET_ROUNDS = 2
MAX_ROUNDS = 60
"""Two minutes: whoever still makes gated launchers then has a policy that we do not know."""
MAX_AT_ONCE = 16
MAX_TAKEN = 3
"""What is there again after so many times is put back by somebody."""
TRIES = 5
"""On one object, whose version others may change meanwhile."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, and where."""

    cluster: ClusterChoice
    lease_namespace: str
    is_dry_run: bool = False
    is_forced: bool = False


@dataclass(slots=True)
class Taken:
    """What was taken off, by what it was, and what could not be."""

    times: Counter[tuple[str, ObjectKey]] = field(default_factory=Counter)
    """By what it was and the object: how often."""
    failed: dict[str, str] = field(default_factory=dict)
    """By the object: why it could not be done."""

    @property
    def counts(self) -> Counter[str]:
        """Objects, by what was taken off them."""
        return Counter(what for what, _ in self.times)


_STAYS = (
    "The CRDs and the orders in them stay; kubectl delete crd gpuclaims.gpu.cozystack.io "
    "gpuclasses.gpu.cozystack.io gpubudgets.gpu.cozystack.io takes them away."
)
Found = tuple[str, ObjectKey, Json]
"""What is to be taken off, from which object, as it was read."""


async def remove(plan: Plan, *, as_json: bool) -> None:
    """Do it, and print what was done. Raises CommandError, also when something is left."""
    taken = Taken()
    async with reach_cluster(plan.cluster) as client:
        try:
            if not plan.is_forced:
                await _check_no_binder(client, plan.lease_namespace)
            with Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                disable=not Console(stderr=True).is_terminal,
            ) as bar:
                task = bar.add_task("looking for what is ours", total=None)
                await take_off(client, plan, taken, lambda text: bar.update(task, description=text))
        except ApiError as error:
            done = "; what was done before stays done: run it again" if taken.times else ""
            raise CommandError(f"{advice(error)}{done}") from None
    _print(plan, taken, as_json=as_json)
    if taken.failed:
        raise CommandError("not all could be taken off: see above, then run it again")


async def take_off(client: Client, plan: Plan, taken: Taken, tell: Callable[[str], None]) -> None:
    """Round after round. Raises ApiError when nothing can be read."""
    quiet = 0
    for number in range(1, MAX_ROUNDS + 1):
        found = [one async for one in _find(client, plan.lease_namespace)]
        tell(f"round {number}: {len(found)} objects")
        if plan.is_dry_run:
            taken.times.update((what, key) for what, key, _ in found)
            return
        failed_before = set(taken.failed)
        taken.failed.clear()
        await _each(found, lambda one: _take_one(client, one, taken))
        is_quiet = {str(key) for _, key, _ in found} <= failed_before & set(taken.failed)
        quiet = quiet + 1 if is_quiet else 0
        if quiet == QUIET_ROUNDS or _note_put_back(taken):
            return
        await asyncio.sleep(PAUSE_S)
    taken.failed["new objects"] = f"{len(found)} were there again in round {MAX_ROUNDS}: who makes them?"


def _note_put_back(taken: Taken) -> bool:
    """Whether somebody undoes what we do: one failure for all of it, there may be thousands."""
    back = [f"{what}: {key}" for (what, key), times in taken.times.items() if times >= MAX_TAKEN]
    if not back:
        return False
    others = f" and {len(back) - 1} more" if len(back) > 1 else ""
    why = f"put back {MAX_TAKEN - 1} times: stop all gpubinder bind and up first"
    taken.failed[f"{back[0]}{others}"] = why
    return True


async def _find(client: Client, lease_namespace: str) -> AsyncIterator[Found]:
    """In the order in which it must go."""
    ours = Selection(label_selector=f"{LABEL_OURS}={OURS}")
    for resource in ADMISSION:
        async for key, body in _all(client, resource, ours):
            yield resource.kind, key, body
    async for key, body in _all(client, PODS):
        if any(gate.get("name") == GATE for gate in body["spec"].get("schedulingGates") or []):
            yield "gate", key, body
    for resource in (GPU_CLAIMS, GPU_CLASSES):
        async for key, body in _all(client, resource):
            if FINALIZER in (body["metadata"].get("finalizers") or []):
                yield f"finalizer of a {resource.kind}", key, body
    lease = ObjectKey(LEASES, LEASE, lease_namespace)
    try:
        yield "Lease", lease, await client.get(lease)
    except NotFound:
        return


async def _all(
    client: Client, resource: Resource, selection: Selection | None = None
) -> AsyncIterator[tuple[ObjectKey, Json]]:
    """Every object of a kind, none where it is not served."""
    token = ""
    while True:
        try:
            page = await client.list_page(resource, selection or Selection(), continue_token=token)
        except NotFound:
            return
        for body in page.items:
            meta = body["metadata"]
            yield ObjectKey(resource, meta["name"], meta.get("namespace", "")), body
        token = page.continue_token
        if not token:
            return


async def _each(found: list[Found], act: Callable[[Found], Awaitable[None]]) -> None:
    """Policies one after the other, before everything else; then side by side.

    They may stop whoever runs this, and an API server goes on with them for a second.
    """
    in_front = [one for one in found if one[1].resource in ADMISSION]
    for one in in_front:
        await act(one)
    if in_front:
        await asyncio.sleep(PAUSE_S)
    slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def bounded(one: Found) -> None:
        async with slots:
            await act(one)

    await asyncio.gather(*(bounded(one) for one in found if one[1].resource not in ADMISSION))


async def _take_one(client: Client, one: Found, taken: Taken) -> None:
    what, key, body = one
    try:
        for left in reversed(range(TRIES)):
            try:
                await _change(client, key, body)
                break
            except Conflict:
                if not left:
                    raise
                body = await client.get(key)
    except NotFound:
        return
    except ApiError as error:
        taken.failed[str(key)] = error.message
        return
    taken.times[what, key] += 1


async def _change(client: Client, key: ObjectKey, body: Json) -> None:
    meta = body["metadata"]
    if key.resource == PODS:
        await client.patch(key, ungate_patch(body))
    elif key.resource in (GPU_CLAIMS, GPU_CLASSES):
        others = [name for name in meta.get("finalizers") or [] if name != FINALIZER]
        patch = {"resourceVersion": meta["resourceVersion"], "finalizers": others or None}
        await client.patch(key, {"metadata": patch})
    else:
        await client.delete(key, DeleteOptions(uid=meta["uid"]))


async def _check_no_binder(client: Client, namespace: str) -> None:
    """Raises CommandError while one renews its lease."""
    key = ObjectKey(LEASES, LEASE, namespace)
    try:
        before = await client.get(key)
        holder = (before.get("spec") or {}).get("holderIdentity")
        if not holder:
            return
        await asyncio.sleep(LEASE_WATCHED_S)
        after = await client.get(key)
    except NotFound:
        return
    if after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]:
        raise CommandError(
            f"the binder {plain(str(holder))} is active: it would put finalizers back; "
            "stop all gpubinder bind and up first, or give --force"
        )


def _print(plan: Plan, taken: Taken, *, as_json: bool) -> None:
    if as_json:
        body = {
            "dryRun": plan.is_dry_run,
            "takenOff": dict(sorted(taken.counts.items())),
            "failed": taken.failed,
        }
        print(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())  # noqa: T201
        return
    console = Console(highlight=False)
    table = Table(title="Would be taken off" if plan.is_dry_run else "Taken off", title_justify="left")
    table.add_column("What")
    table.add_column("Objects", justify="right")
    counts = taken.counts
    for what, count in sorted(counts.items()):
        table.add_row(what, str(count))
    console.print(table if counts else "Nothing of gpubinder's is on the cluster's objects.")
    for name, why in sorted(taken.failed.items()):
        console.print(f"[red]left[/red] {escape(plain(f'{name}: {why}'))}", soft_wrap=True)
    if not plan.is_dry_run and not taken.failed:
        console.print(_STAYS, soft_wrap=True)
