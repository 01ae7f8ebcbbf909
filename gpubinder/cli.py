"""The command line. Every option can be given as `GPUBINDER_<OPTION>` too.

Errors are one line on stderr: exit 2 for wrong use, 1 for failure.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from admission.policies import gate_policy
from gpubinder.demo import show
from gpubinder.errors import CommandError
from gpubinder.logs import configure, say
from gpubinder.settings import ClusterChoice, LogChoice, Settings
from gpubinder.system import running
from model.crds import all_crds

_INFO = 20


class OneLineErrors(click.Group):
    """A group whose commands end with one line instead of a stack trace."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a CommandError becomes its line and exit code 1."""
        try:
            return super().invoke(ctx)
        except CommandError as error:
            click.echo(f"gpubinder: {error}", err=True)
            ctx.exit(1)


_ENVIRONMENT = {"auto_envvar_prefix": "GPUBINDER"}


@click.group(cls=OneLineErrors)
@click.version_option(package_name="gpubinder")
def main() -> None:
    """Give GPUs to KubeVirt virtual machines, and keep the promise."""


@main.command(context_settings=_ENVIRONMENT)
@click.option(
    "--kubeconfig", metavar="PATH", help="The cluster; without it the simulated one, or in a pod its own."
)
@click.option("--context", metavar="NAME", help="A context of the kubeconfig; default: its current one.")
@click.option("--embedded", is_flag=True, help="Use the simulated cluster even inside a pod.")
@click.option(
    "--redis", metavar="URL", help="The log, e.g. redis://:PASSWORD@HOST:6379; without it an embedded one."
)
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder of the embedded log's data, kept; default: none."
)
@click.option("--cluster", default="default", show_default=True, help="Names this cluster's keys in Redis.")
@click.option(
    "--lease-namespace", default="kube-system", show_default=True, help="Where the leader's Lease is."
)
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0 serves none."
)
@click.option(
    "--simulator-port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: a free one."
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def up(**options: Any) -> None:
    """Run everything in one process: watchers, binder and, without a cluster, a simulated one."""
    configure(options["log_format"])
    asyncio.run(_up(_settings(options)))


@main.command(context_settings=_ENVIRONMENT)
@click.option("--fast", is_flag=True, help="Do not pause for the reader.")
@click.option("--picture", type=click.Path(path_type=Path), help="Also write it as an SVG.")
def demo(*, fast: bool, picture: Path | None) -> None:
    """Tell the story of some VMs that want GPUs, from a running embedded system."""
    configure("text", "ERROR")
    if not show(0.0 if fast else 1.0, picture):
        raise CommandError("the demo did not observe what it was to show: see above")


@main.command(context_settings=_ENVIRONMENT)
@click.option(
    "--gate",
    type=click.Choice(["policy", "none"]),
    default="policy",
    show_default=True,
    help="Also print what gates launchers: a MutatingAdmissionPolicy (Kubernetes 1.36 and newer).",
)
def crds(gate: str) -> None:
    """Print the CRDs and the gate, to be piped into kubectl apply --server-side -f -."""
    documents = all_crds() + (gate_policy() if gate == "policy" else [])
    click.echo(yaml.safe_dump_all(documents, sort_keys=False), nl=False)


def _settings(options: dict[str, Any]) -> Settings:
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    is_embedded = options["embedded"] or not (options["kubeconfig"] or options["context"] or in_pod)
    if options["embedded"] and options["kubeconfig"]:
        raise click.UsageError("--embedded and --kubeconfig exclude each other")
    if options["redis"] and options["data"]:
        raise click.UsageError("--redis and --data exclude each other: --data is for the embedded log")
    return Settings(
        ClusterChoice(options["kubeconfig"], options["context"], is_embedded, options["simulator_port"]),
        LogChoice(options["redis"], options["data"]),
        options["cluster"],
        options["lease_namespace"],
        options["metrics_port"],
    )


async def _up(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with running(settings) as system:
        say(_INFO, "up", api_server=system.client.url, cluster=settings.cluster)
        waiting = {asyncio.create_task(system.wait()), asyncio.create_task(stop.wait())}
        done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        for task in done:
            task.result()
    say(_INFO, "down")


if __name__ == "__main__":
    main(prog_name="gpubinder", args=sys.argv[1:])
