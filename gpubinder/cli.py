"""The command line. Every option can be given as `GPUBINDER_<OPTION>` too.

Errors are one line on stderr: exit 2 for wrong use, 1 for failure.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import re
import shlex
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import yaml

from gpubinder.admission_options import address_of, printing_webhooks
from gpubinder.admitting import admitting as serve_admission
from gpubinder.demo import show
from gpubinder.errors import CommandError
from gpubinder.feed import feed_file
from gpubinder.granting import rbac, writers_of, writing
from gpubinder.logs import configure, say
from gpubinder.options import (
    ENVIRONMENT,
    admitting,
    asking,
    binding,
    cluster_of,
    everything,
    leaving,
    reaching,
    settings_of,
    watching,
)
from gpubinder.printing import Checks, Gate, documents, served_gate
from gpubinder.settings import CLUSTER, LEASE_NAMESPACE, LogChoice, Settings
from gpubinder.status import show_status
from gpubinder.system import EVERYTHING, Role, System, running
from gpubinder.uninstall import Plan, remove
from simulator.http_face import write_kubeconfig

_INFO = 20
_OFF = "gates come off without a pin, nothing is placed or moved; start it without --off to place again"
_FAREWELL_S = 1.5
"""How long what is said on the way out, to servers that may hang, may take: the lease, connections."""


class OneLine(click.ClickException):
    """What ends a command, as one line without control characters; exit code 1."""

    def __init__(self, message: str) -> None:
        text = " ".join(message.split())
        super().__init__(text if text.isprintable() else repr(text)[1:-1])

    def show(self, file: Any = None) -> None:
        """Write the line to stderr."""
        click.echo(f"gpubinder: {self.message}", file=file, err=True)


class WrongUse(OneLine):
    """Options that cannot be used; exit code 2. A URL that stands in the wrong place keeps its password."""

    exit_code = 2

    def __init__(self, error: click.UsageError) -> None:
        text = re.sub(r"://\S*@", "://", error.format_message())
        path = error.ctx.command_path if error.ctx else "gpubinder"
        super().__init__(f"{text.rstrip('.')}; see {path} --help")


class OneLineErrors(click.Group):
    """A group whose commands end with one line: no stack trace, no usage text around it."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the group's own options."""
        with _one_line():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse the command's options and run it."""
        with _one_line():
            return super().invoke(ctx)


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except CommandError as error:
        raise OneLine(str(error)) from None
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as error:
        raise WrongUse(error) from None


def _in_writable_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Told before the demo, not after it."""
    if path is not None and not os.access(path.absolute().parent, os.W_OK):
        raise click.BadParameter(f"{path.absolute().parent} is no folder that can be written to")
    return path


@click.group(cls=OneLineErrors)
@click.version_option(package_name="gpubinder")
def main() -> None:
    """Give GPUs to KubeVirt virtual machines, and keep the promise."""
    # Nothing is left to collect at the end, and looking for it took up to three seconds of a busy machine.
    atexit.register(gc.freeze)


@main.command(context_settings=ENVIRONMENT)
@everything
def up(**options: Any) -> None:
    """Run everything in one process; a simulated cluster and an embedded log where none is given."""
    _run(options, EVERYTHING, may_embed=True)


@main.command(context_settings=ENVIRONMENT)
@watching
@click.option(
    "--from",
    "source",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Feed watch events from a file, or from - (stdin), instead of watching.",
)
def watch(source: Path | None, **options: Any) -> None:
    """Write down what happens in the cluster; run as many as you like, they share the kinds."""
    if source is None:
        _run(options, frozenset({Role.WATCH}), may_embed=False)
        return
    configure(options["log_format"])
    if not options["redis"]:
        raise click.UsageError("--redis is needed: where the events go to")
    asyncio.run(_until_stopped(feed_file(source, LogChoice(options["redis"]), options["cluster"])))


@main.command(context_settings=ENVIRONMENT)
@binding
def bind(**options: Any) -> None:
    """Decide and carry out; of several, one is active."""
    _run(options, frozenset({Role.BIND}), may_embed=False)


@main.command(context_settings=ENVIRONMENT)
@admitting
def admit(**options: Any) -> None:
    """Serve the webhooks: the gate, and the checks of orders and raw pods; run as many as you like."""
    configure(options["log_format"])
    settings = settings_of(options, may_embed=False)
    asyncio.run(_serve(serve_admission(settings), settings))


@main.command(context_settings=ENVIRONMENT)
@asking
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(*, as_json: bool, **options: Any) -> None:
    """Show classes, nodes, claims, who waits and why, the log and the leader."""
    configure(options["log_format"])
    asyncio.run(show_status(settings_of(options, may_embed=False), as_json=as_json))


@main.command(context_settings=ENVIRONMENT)
@leaving
@click.option("--dry-run", is_flag=True, help="Only show what would be taken off.")
@click.option("--force", is_flag=True, help="Even while a binder is active: it puts finalizers back.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def uninstall(*, dry_run: bool, force: bool, as_json: bool, **options: Any) -> None:
    """Take off policies, gates and finalizers, so that nothing hangs; orders and CRDs stay.

    Launchers that wait are then placed by the scheduler alone. Stop the binders first.
    """
    configure(options["log_format"])
    plan = Plan(cluster_of(options), options["lease_namespace"], is_dry_run=dry_run, is_forced=force)
    asyncio.run(remove(plan, as_json=as_json))


@main.command(context_settings=ENVIRONMENT)
@click.option("--fast", is_flag=True, help="Do not pause for the reader.")
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=_in_writable_folder,
    help="Also write it as an SVG.",
)
def demo(*, fast: bool, picture: Path | None) -> None:
    """Tell the story of some VMs that want GPUs, from a running embedded system."""
    configure("text", "ERROR")
    if not show(0.0 if fast else 1.0, picture):
        raise CommandError("the demo did not observe what it was to show: see above")


@main.command(context_settings=ENVIRONMENT)
@click.option(
    "--gate",
    type=click.Choice([str(one) for one in Gate]),
    default=str(Gate.POLICY),
    show_default=True,
    help="What gates launchers: a policy (Kubernetes 1.36 and newer), the webhook of gpubinder admit, "
    "or what the cluster of --kubeconfig has.",
)
@click.option(
    "--checks",
    type=click.Choice([str(one) for one in Checks]),
    help="Also print the webhooks that check orders and raw pods; default: with the webhook gate.",
)
@printing_webhooks
@writing
@reaching
def crds(gate: str, checks: str | None, **options: Any) -> None:
    """Print CRDs, gate, and who may write what, to be piped into kubectl apply --server-side -f -."""
    configure(options["log_format"])
    form = Gate(gate)
    if form is Gate.AUTO:
        form = asyncio.run(served_gate(cluster_of(options)))
    printed = documents(form, Checks(checks) if checks else None, address_of(options))
    click.echo(yaml.safe_dump_all(printed + writers_of(options), sort_keys=False), nl=False)


main.add_command(rbac)


def _run(options: dict[str, Any], roles: frozenset[Role], *, may_embed: bool) -> None:
    configure(options["log_format"])
    settings = settings_of(options, may_embed=may_embed)
    asyncio.run(_serve(running(settings, roles), settings))


async def _serve(running: AbstractAsyncContextManager[System], settings: Settings) -> None:
    await _until_stopped(_work(running, settings))
    say(_INFO, "down")


async def _until_stopped(what: Coroutine[Any, Any, None]) -> None:
    """Run until a signal, which also ends a start that waits for a server. Raises CommandError."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    work, stopped = asyncio.create_task(what), asyncio.create_task(stop.wait())
    await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    work.cancel()
    await asyncio.wait({work}, timeout=_FAREWELL_S)
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


async def _work(running: AbstractAsyncContextManager[System], settings: Settings) -> None:
    async with running as system:
        with _looking(system, settings) as look:
            say(_INFO, "up", api_server=system.client.url, cluster=settings.cluster, **look)
            if not settings.policy.is_enabled:
                say(_INFO, "switched_off", cause="--off", next=_OFF)
            await system.wait()


@contextmanager
def _looking(system: System, settings: Settings) -> Iterator[dict[str, str]]:
    """What to type to look at what nobody else could find: our own simulated cluster, our own log.

    The URL of somebody's Redis is not said: there may be a password in it.
    """
    choice = settings.cluster_choice
    if not (choice.is_embedded or system.embedded_log):
        yield {}
        return
    with TemporaryDirectory(prefix="gpubinder-") as folder:
        kubeconfig = choice.kubeconfig
        if choice.is_embedded:
            kubeconfig = str(Path(folder) / "kubeconfig")
            write_kubeconfig(Path(kubeconfig), system.client.url)
        options = {
            "kubeconfig": kubeconfig or "",
            "context": choice.context or "",
            "cluster": settings.cluster if settings.cluster != CLUSTER else "",
            "lease-namespace": settings.lease_namespace
            if settings.lease_namespace != LEASE_NAMESPACE
            else "",
            "redis": system.embedded_log or "URL",
        }
        words = [f"--{name} {shlex.quote(value)}" for name, value in options.items() if value]
        yield {"look": " ".join(["gpubinder status", *words])}


if __name__ == "__main__":
    main(prog_name="gpubinder", args=sys.argv[1:])
