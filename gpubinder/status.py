"""`gpubinder status`: what is held, who waits and why, and how the log and the leader are."""

from __future__ import annotations

import base64
import secrets
from dataclasses import asdict, astuple, dataclass
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from eventlog.entries import id_order
from eventlog.errors import LogError
from eventlog.port import LogInfo, Quarantined
from gpubinder.errors import CommandError
from gpubinder.holdings import (
    BudgetLine,
    ClaimLine,
    ClassLine,
    NodeHolding,
    budget_lines,
    claim_lines,
    class_lines,
    node_holdings,
    read,
)
from gpubinder.logs import plain
from gpubinder.settings import Settings
from gpubinder.stores import advice, now_ms, open_cluster, open_log
from gpubinder.system import LEASE
from kube.errors import ApiError, NotFound
from kube.port import Client, ObjectKey
from model.resources import LEASES

_OF_A_CLASS = ("Nodes", "GPUs", "Bound", "Raw", "Lost", "Pending", "Free")
QUARANTINE_SHOWN = 20
WATCHER_MS = 6_000
"""A replica that was not heard of for longer is not counted as watching."""


@dataclass(frozen=True, slots=True)
class Status:
    """All that is shown."""

    classes: list[ClassLine]
    budgets: list[BudgetLine]
    nodes: list[NodeHolding]
    claims: list[ClaimLine]
    log: LogInfo | None
    """None when the log cannot be asked."""
    watchers: list[str]
    quarantined: list[Quarantined]
    log_error: str
    leader: str
    epoch: int


@dataclass(frozen=True, slots=True)
class _LogPart:
    """What the log says, or why it says nothing: claims are shown without it, too."""

    info: LogInfo | None = None
    watchers: tuple[str, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    error: str = ""


async def show_status(settings: Settings, *, as_json: bool) -> None:
    """Print it. Raises CommandError, for a log that cannot be asked after the rest is printed."""
    async with open_cluster(settings.cluster_choice) as client:
        log = await _ask_log(settings)
        try:
            world = await read(client, now_ms())
            leader, epoch = await _leader(client, settings.lease_namespace)
            status = Status(
                class_lines(world),
                budget_lines(world),
                node_holdings(world),
                claim_lines(world),
                log.info,
                list(log.watchers),
                list(log.quarantined),
                log.error,
                leader,
                epoch,
            )
        except ApiError as error:
            raise CommandError(advice(error)) from None
    if as_json:
        body = asdict(status)
        for item in body["quarantined"]:
            item["body"] = base64.b64encode(item["body"]).decode()
        print(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())  # noqa: T201
    else:
        _print(status, Console(highlight=False))
    if status.log_error:
        raise CommandError(status.log_error)


async def _ask_log(settings: Settings) -> _LogPart:
    try:
        name = f"status-{secrets.token_hex(3)}"
        async with open_log(settings.log_choice, settings.cluster, name) as store:
            return _LogPart(
                await store.log.info(),
                tuple(await store.presence.present(WATCHER_MS)),
                tuple(await store.log.quarantined(QUARANTINE_SHOWN)),
            )
    except (LogError, CommandError) as error:
        return _LogPart(error=" ".join(str(error).split()))


async def _leader(client: Client, namespace: str) -> tuple[str, int]:
    try:
        lease = await client.get(ObjectKey(LEASES, LEASE, namespace))
    except NotFound:
        return "", -1
    spec = lease.get("spec") or {}
    return str(spec.get("holderIdentity") or ""), int(spec.get("leaseTransitions") or 0)


def _print(status: Status, console: Console) -> None:
    console.print(
        _table("Classes", ("Class", "Resource"), _OF_A_CLASS, [
            (c.name, c.resource, *astuple(c.use)) for c in status.classes
        ])
    )  # fmt: skip
    if status.budgets:
        console.print(
            _table("Budgets", ("Budget", "Of"), ("Used", "Limit"), [
                (b.budget, b.of, b.used, b.limit) for b in status.budgets
            ])
        )  # fmt: skip
    console.print(
        _table("Nodes", ("Node", "Class"), ("GPUs", "Bound", "Raw", "Free"), [
            (n.node, n.gpu_class, n.allocatable, n.bound, n.raw, n.free) for n in status.nodes
        ])
    )  # fmt: skip
    console.print(
        _table("Claims", ("Namespace", "Name", "Class", "Phase", "Node", "VM"), ("Units",), [
            (c.namespace, c.name, c.gpu_class, c.phase, c.node or "-", c.vm or "-", c.units)
            for c in status.claims
        ])
    )  # fmt: skip
    for claim in status.claims:
        if claim.reason:
            told = f"{claim.namespace}/{claim.name}: {claim.reason}: {claim.message}"
            console.print(f"[yellow]waits[/yellow] {escape(plain(told))}", soft_wrap=True)
    for item in status.quarantined:
        told = f"{escape(plain(item.what))}: {escape(plain(item.why))}"
        console.print(f"[red]quarantined[/red] {told}", soft_wrap=True)
    if len(status.quarantined) == QUARANTINE_SHOWN:
        console.print(f"[red]quarantined[/red] these are the newest {QUARANTINE_SHOWN}")
    for line in _log_lines(status, now_ms()):
        console.print(escape(line), soft_wrap=True)
    console.print(f"leader   {status.leader or 'none'}, epoch {status.epoch}")


def _log_lines(status: Status, at_ms: int) -> list[str]:
    log = status.log
    if log is None:
        return ["log      cannot be asked: see below"]
    lag = f", the binder {log.lag_ms / 1000:.1f} s behind" if log.lag_ms else ""
    last = "none" if log.entries == 0 else f"{max(0, at_ms - id_order(log.last_id)[0]) / 1000:.0f} s ago"
    nobody = "none: nobody writes to the log, see the log lines of gpubinder watch (or up)"
    return [
        f"log      {log.entries} entries, last {last}, {log.pending} not yet acknowledged{lag}",
        f"watchers {', '.join(status.watchers) or nobody}",
    ]


def _table(title: str, left: tuple[str, ...], right: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Table:
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(escape(plain(str(cell))) for cell in row))
    return table
