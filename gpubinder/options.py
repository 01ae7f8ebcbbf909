"""The options of the process commands, and the settings that they make."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import click

from binder.core.policy import Policy
from gpubinder.admission_options import USUAL_PORT, admission_of, serving_admission
from gpubinder.settings import AdmissionChoice, ClusterChoice, LogChoice, Settings

ENVIRONMENT = {"auto_envvar_prefix": "GPUBINDER"}
"""Every option can be given as GPUBINDER_<OPTION>."""

Command = Callable[..., Any]
_PORT = click.IntRange(0, 65535)


def _plain_name(_: click.Context, __: click.Parameter, value: str) -> str:
    """A name that people can read, type and tell apart in Redis."""
    if not re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", value):
        raise click.BadParameter("letters, digits, dashes, dots and underscores, 63 at most")
    return value


def _not_empty(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """An empty value is a variable that was not set, no wish for a simulated cluster or an embedded log."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty; leave the option out, or give it a value")
    return value


def _folder(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    folder = _not_empty(ctx, parameter, value)
    return None if folder is None else Path(folder)


def namespace_name(_: click.Context, __: click.Parameter, value: str) -> str:
    """The value, if a namespace can have that name; raises BadParameter."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
        raise click.BadParameter("no namespace can have that name")
    return value


_REACHING = (
    click.option(
        "--kubeconfig",
        metavar="PATH",
        callback=_not_empty,
        help="The cluster; in a pod, without it, the pod's own.",
    ),
    click.option(
        "--context",
        metavar="NAME",
        callback=_not_empty,
        help="A context of the kubeconfig; default: its current one.",
    ),
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
)
_COMMON = (
    *_REACHING,
    click.option(
        "--redis", metavar="URL", callback=_not_empty, help="The log, e.g. redis://:PASSWORD@HOST:6379."
    ),
    click.option(
        "--cluster",
        default="default",
        show_default=True,
        callback=_plain_name,
        help="Names this cluster's keys in Redis.",
    ),
    click.option("--metrics-port", type=_PORT, default=0, show_default=True, help="0 serves none."),
)
_BINDING = (
    click.option(
        "--lease-namespace",
        default="kube-system",
        show_default=True,
        callback=namespace_name,
        help="Where the leader's Lease is.",
    ),
)
_SECONDS = click.IntRange(0, 7 * 24 * 3600)


def _seconds(name: str, default: int, text: str) -> Callable[[Command], Command]:
    return click.option(name, type=_SECONDS, default=default, show_default=True, metavar="SECONDS", help=text)


_USUAL = Policy()
_POLICY = (
    _seconds("--keep-grace", _USUAL.keep_grace_s, "What a node may lack before its VMs move."),
    _seconds(
        "--unschedulable-after",
        _USUAL.unschedulable_after_s,
        "How long the scheduler may fail to place a launcher on its node.",
    ),
    _seconds("--rejection", _USUAL.rejection_s, "How long a node that refused a VM is left alone for it."),
    _seconds("--restart-hold", _USUAL.restart_hold_s, "How long a restarting VM's GPUs wait; 0: not at all."),
    click.option(
        "--max-vmi-deletions",
        type=click.IntRange(0, 1000),
        default=_USUAL.max_vmi_deletions,
        show_default=True,
        help="Per minute, to move VMs off nodes that cannot keep them.",
    ),
    click.option(
        "--off", is_flag=True, help="Switched off: gates come off without a pin, nothing is placed or moved."
    ),
)
_EMBEDDED = (
    click.option("--embedded", is_flag=True, help="Use the simulated cluster even inside a pod."),
    click.option(
        "--data",
        metavar="FOLDER",
        callback=_folder,
        help="Folder of the embedded log's data; default: none kept.",
    ),
    click.option(
        "--simulator-port",
        type=_PORT,
        default=0,
        show_default=True,
        help="0: a free one, printed at the start.",
    ),
)


def watching(command: Command) -> Command:
    """The options of a process that watches."""
    return _with(command, _COMMON)


def binding(command: Command) -> Command:
    """The options of a process that binds."""
    return _with(command, _COMMON + _BINDING + _POLICY)


def asking(command: Command) -> Command:
    """The options of a command that looks at cluster, log and leader."""
    return _with(command, _COMMON + _BINDING)


def leaving(command: Command) -> Command:
    """The options of a command that needs the cluster alone."""
    return _with(command, _REACHING + _BINDING)


def everything(command: Command) -> Command:
    """The options of a process that does all of it, and brings what is not given."""
    return _with(command, _COMMON + _BINDING + _POLICY + _EMBEDDED + (serving_admission(0),))


def admitting(command: Command) -> Command:
    """The options of a process that serves the webhooks."""
    return _with(command, (*_COMMON, serving_admission(USUAL_PORT)))


def reaching(command: Command) -> Command:
    """The options of a command that may ask the cluster."""
    return _with(command, _REACHING)


def cluster_of(options: dict[str, Any]) -> ClusterChoice:
    """A cluster that is there; raises UsageError where none is named."""
    if not (options["kubeconfig"] or options["context"] or "KUBERNETES_SERVICE_HOST" in os.environ):
        raise click.UsageError("--kubeconfig is needed outside a pod")
    return ClusterChoice(options["kubeconfig"], options["context"])


def settings_of(options: dict[str, Any], *, may_embed: bool) -> Settings:
    """The settings; raises UsageError for options that exclude or need each other."""
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    has_cluster = bool(options["kubeconfig"] or options["context"] or in_pod)
    is_embedded = bool(options.get("embedded"))
    if is_embedded and options["kubeconfig"]:
        raise click.UsageError("--embedded and --kubeconfig exclude each other")
    if options["redis"] and options.get("data"):
        raise click.UsageError("--redis and --data exclude each other: --data is for the embedded log")
    if not may_embed and not options["redis"]:
        raise click.UsageError("--redis is needed: several processes share one log")
    if not may_embed and not has_cluster:
        raise click.UsageError("--kubeconfig is needed outside a pod")
    return Settings(
        ClusterChoice(
            options["kubeconfig"],
            options["context"],
            is_embedded or not has_cluster,
            options.get("simulator_port", 0),
        ),
        LogChoice(options["redis"], options.get("data")),
        options["cluster"],
        options.get("lease_namespace", ""),
        options["metrics_port"],
        _policy_of(options) if "keep_grace" in options else _USUAL,
        admission_of(options) if "admission_port" in options else AdmissionChoice(),
    )


def _policy_of(options: dict[str, Any]) -> Policy:
    return Policy(
        is_enabled=not options["off"],
        keep_grace_s=options["keep_grace"],
        unschedulable_after_s=options["unschedulable_after"],
        rejection_s=options["rejection"],
        restart_hold_s=options["restart_hold"],
        max_vmi_deletions=options["max_vmi_deletions"],
    )


def _with(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    return reduce(lambda so_far, option: option(so_far), reversed(options), command)
