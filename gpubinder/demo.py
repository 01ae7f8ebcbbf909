"""The demo: a story told from a running embedded system, each line only when it was observed.

Plays the operator and the tenants through the API, and reads what became of it from there: claims, launchers
and VMs as the binder and the simulated KubeVirt left them.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gpubinder.errors import CommandError
from gpubinder.settings import ClusterChoice, LogChoice, Settings
from gpubinder.stores import DEMO_GPU, UNITS_PER_NODE
from gpubinder.system import running
from kube.port import Client, Json, ObjectKey, list_all
from model.resources import GPU_CLAIMS, GPU_CLASSES, NODES, PODS, VIRTUAL_MACHINES
from simulator.objects import gpu_vm

LIMIT_S = 20.0
"""How long the demo waits for what it is to show."""
LOOK_S = 0.05
PICTURE_WIDTH = 150
_STYLES = {"operator": "magenta", "tenant": "cyan", "binder": "green", "waits": "yellow", "KubeVirt": "blue"}
FIRST = {"train-a": 4, "train-b": 3, "infer-1": 2, "infer-2": 1}
LATE = "train-big"


class NotObserved(Exception):
    """Something that the demo was to show did not happen in time."""


def show(pause_s: float, picture: Path | None = None) -> bool:
    """Run the system and tell the story, also as an SVG; whether all of it was observed."""
    width = PICTURE_WIDTH if picture else None
    story = Story(Console(highlight=False, record=picture is not None, width=width), pause_s)
    is_observed = asyncio.run(_tell_of_running(story))
    if picture is not None:
        drawn = story.console.export_svg(title="gpubinder demo")
        # Without the fonts that the exporter would have the reader fetch from elsewhere.
        picture.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), "utf-8")
    return is_observed


async def _tell_of_running(story: Story) -> bool:
    settings = Settings(ClusterChoice(is_embedded=True), LogChoice())
    async with running(settings) as system:
        story.client = system.client
        try:
            await _tell(story)
        except NotObserved as error:
            story.console.print(f"[red]not observed: {error}[/red]")
            return False
    return True


@dataclass(slots=True)
class Story:
    """Where the story is told, and how fast."""

    console: Console
    pause_s: float
    began_s: float = field(default_factory=time.monotonic)
    _client: Client | None = None

    @property
    def client(self) -> Client:
        """The cluster."""
        if self._client is None:
            raise CommandError("the demo has no cluster")
        return self._client

    @client.setter
    def client(self, client: Client) -> None:
        self._client = client

    def say(self, who: str, text: str) -> None:
        """One line, now."""
        at_s = time.monotonic() - self.began_s
        style = _STYLES.get(who, "white")
        self.console.print(f"[dim]{at_s:6.2f} s[/dim]  [{style}]{who:<9}[/{style}] {text}", soft_wrap=True)

    async def until(self, what: str, holds: Callable[[], Awaitable[Json | None]]) -> Json:
        """Wait for an observation; raises NotObserved."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            found = await holds()
            if found is not None:
                return found
            await asyncio.sleep(LOOK_S)
        raise NotObserved(what)

    async def pause(self) -> None:
        """Give the reader time."""
        await asyncio.sleep(self.pause_s)


async def _tell(story: Story) -> None:
    nodes = (await list_all(story.client, NODES)).items
    units = sum(int(node["status"]["allocatable"][DEMO_GPU]) for node in nodes)
    story.say("cluster", f"{len(nodes)} nodes with {units} GPUs ({DEMO_GPU})")
    await story.client.create(
        GPU_CLASSES, {"metadata": {"name": "h100"}, "spec": {"resourceName": DEMO_GPU, "default": True}}
    )
    story.say("operator", "sells class [bold]h100[/bold]: from now on launchers that ask for one are gated")
    for name, count in FIRST.items():
        await story.pause()
        await _start(story, name, count)
        await _see_running(story, name)
    await story.pause()
    await _start(story, LATE, UNITS_PER_NODE)
    waiting = await story.until(f"{LATE} waits", lambda: _waiting_claim(story.client, LATE))
    story.say("waits", f"[bold]{LATE}[/bold]: {waiting['reason']}: {waiting['message']}")
    await story.pause()
    freed = await _stop(story, "train-a")
    bound = await _see_running(story, LATE)
    if bound["status"]["nodeName"] != freed:
        raise NotObserved(f"{LATE} takes the node that train-a left")
    await _show_holdings(story, nodes)


async def _start(story: Story, name: str, count: int) -> None:
    await story.client.create(VIRTUAL_MACHINES, gpu_vm(name, {DEMO_GPU: count}))
    story.say("tenant", f"starts VM [bold]{name}[/bold] with {count} GPU{'s' if count > 1 else ''}")


async def _see_running(story: Story, name: str) -> Json:
    claim = await story.until(f"a Bound claim of {name}", lambda: _bound_claim(story.client, name))
    node = claim["status"]["nodeName"]
    pod = await story.until(f"the launcher of {name} pinned", lambda: _launcher_on(story.client, name, node))
    await story.until(f"{name} Running", lambda: _running_vm(story.client, name))
    units = claim["spec"]["units"]
    story.say(
        "binder", f"[bold]{name}[/bold] holds {units} on [bold]{node}[/bold]; launcher pinned and ungated"
    )
    story.say("KubeVirt", f"{name} Running on {pod['spec']['nodeName']}")
    return claim


async def _stop(story: Story, name: str) -> str:
    claim = await story.until(f"a claim of {name}", lambda: _bound_claim(story.client, name))
    node = str(claim["status"]["nodeName"])
    key = ObjectKey(VIRTUAL_MACHINES, name, "default")
    await story.client.patch(key, {"spec": {"runStrategy": "Halted"}})
    story.say("tenant", f"stops VM [bold]{name}[/bold]")
    await story.until(f"the units of {name} given back", lambda: _given_back(story.client, name))
    story.say("binder", f"{claim['spec']['units']} units on [bold]{node}[/bold] are free again")
    return node


async def _show_holdings(story: Story, nodes: list[Json]) -> None:
    claims = (await list_all(story.client, GPU_CLAIMS)).items
    table = Table(title="Who holds what", title_justify="left", header_style="bold")
    for column, justify in (
        ("Node", "left"),
        ("GPUs", "right"),
        ("Held", "right"),
        ("Free", "right"),
        ("By", "left"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for node in nodes:
        name = node["metadata"]["name"]
        here = [c for c in claims if c["status"].get("nodeName") == name]
        total, held = int(node["status"]["allocatable"][DEMO_GPU]), sum(c["spec"]["units"] for c in here)
        who = ", ".join(f"{c['status']['vm']['name']} ({c['spec']['units']})" for c in here)
        table.add_row(name, str(total), str(held), str(total - held), who or "-")
        if held > total:
            raise NotObserved(f"no more units booked on {name} than it has")
    story.console.print(table)


async def _claim_of(client: Client, name: str) -> Json | None:
    for claim in (await list_all(client, GPU_CLAIMS)).items:
        if any(owner["name"] == name for owner in claim["metadata"].get("ownerReferences") or []):
            return claim
    return None


async def _bound_claim(client: Client, name: str) -> Json | None:
    claim = await _claim_of(client, name)
    return claim if claim and claim.get("status", {}).get("phase") == "Bound" else None


async def _waiting_claim(client: Client, name: str) -> Json | None:
    claim = await _claim_of(client, name)
    conditions = (claim or {}).get("status", {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == "Placed" and c["status"] == "False"), None)


async def _given_back(client: Client, name: str) -> Json | None:
    return {} if await _claim_of(client, name) is None else None


async def _launcher_on(client: Client, name: str, node: str) -> Json | None:
    for pod in (await list_all(client, PODS)).items:
        is_launcher = pod["metadata"].get("labels", {}).get("vm.kubevirt.io/name") == name
        if is_launcher and not pod["spec"].get("schedulingGates") and pod["spec"].get("nodeName") == node:
            return pod
    return None


async def _running_vm(client: Client, name: str) -> Json | None:
    vm = await client.get(ObjectKey(VIRTUAL_MACHINES, name, "default"))
    return vm if vm.get("status", {}).get("printableStatus") == "Running" else None
