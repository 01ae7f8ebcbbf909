"""Sets: the claims that are placed, moved, lost and rebound together, on one node (R16).

A VM's set are the orders that it names and that serve it, and the template claims of its VMI. An order that
serves no VM is a set of one. Must not know: which node a set goes to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from binder.core.claims import is_template_claim, user_uid
from binder.core.launchers import Launcher
from binder.core.state import Key
from model.claims import GPUClaim, GPUClass, Phase
from model.decisions import ObjectRef, VmRef
from model.kubevirt import VirtualMachineInstance
from model.reasons import Reason
from model.selectors import NodeSelector

MAX_MESSAGE = 1000
"""Characters; an event's note holds 1 kB."""


class Stage(StrEnum):
    """How far the VM of a set is."""

    IDLE = "idle"
    """No VMI lives: the claims can go anywhere."""
    COMING = "coming"
    """A VMI lives and has no launcher yet."""
    GATED = "gated"
    """The launcher waits for a node."""
    STARTING = "starting"
    """The launcher is pinned, the VMI was never Running."""
    RUNNING = "running"
    """The VMI is or was Running, and its launcher is on a node."""
    ENDING = "ending"
    """The VMI or its launcher ends or is being deleted: what follows is seen then."""


@dataclass(frozen=True, slots=True)
class Member:
    """One claim of a set; `claim` is None while the template claim has still to be created."""

    ref: ObjectRef
    gpu_class: GPUClass
    units: int
    claim: GPUClaim | None = None

    @property
    def resource(self) -> str:
        """The extended resource that its class sells."""
        return self.gpu_class.spec.resource_name

    @property
    def node(self) -> str:
        """Where it is held, or the empty string."""
        return self.claim.bound_node if self.claim else ""

    @property
    def is_lost(self) -> bool:
        """Whether it had a node and has none now."""
        return self.claim is not None and self.claim.status.phase is Phase.LOST


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a set cannot be placed: one reason, and a message for people, cut at MAX_MESSAGE."""

    reason: Reason
    message: str

    def __post_init__(self) -> None:
        """Names in it may be a tenant's, and as long as an annotation."""
        if len(self.message) > MAX_MESSAGE:
            object.__setattr__(self, "message", self.message[: MAX_MESSAGE - 1] + "…")


@dataclass(frozen=True, slots=True)
class Constraints:
    """What decides R8a and R8b: sets with equal ones are accepted by the same nodes."""

    classes: tuple[GPUClass, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    """The launcher's nodeSelector."""
    affinity: NodeSelector | None = None
    """Its required node affinity, without our pin."""
    _hash: int = field(init=False, compare=False, repr=False, default=0)

    def __post_init__(self) -> None:
        """Affinities can be long: hashed once."""
        names = tuple(one.metadata.name for one in self.classes)
        object.__setattr__(self, "_hash", hash((names, self.selector, self.affinity)))

    def __hash__(self) -> int:
        """Classes by their names."""
        return self._hash


@dataclass(frozen=True, slots=True)
class Shape:
    """What a set wants of a node: sets of one shape differ only in what they hold, and in their volumes."""

    constraints: Constraints = Constraints()
    needs: Mapping[str, int] = field(default_factory=dict)
    """Units per GPU resource."""
    other: Mapping[str, int] = field(default_factory=dict)
    """What its launcher asks for besides, its place as a pod included."""
    _hash: int = field(init=False, compare=False, repr=False, default=0)

    def __post_init__(self) -> None:
        """Looked up often: hashed once."""
        wanted = (self.constraints, tuple(self.needs.items()), tuple(self.other.items()))
        object.__setattr__(self, "_hash", hash(wanted))

    def __hash__(self) -> int:
        """Of what is wanted."""
        return self._hash


@dataclass(frozen=True, slots=True)
class ClaimSet:
    """Claims that are placed together, on one node."""

    key: str
    members: tuple[Member, ...]
    stage: Stage = Stage.IDLE
    vm: VmRef | None = None
    vmi: VirtualMachineInstance | None = None
    launcher: Launcher | None = None
    run_strategy: str = ""
    """Of the VM; empty where there is none."""
    obstacle: Obstacle | None = None
    caution: str = ""
    """What else the scheduler will weigh that no node was looked at for."""
    unsold: tuple[GPUClaim, ...] = ()
    """Claims whose class does not exist."""
    taken: Key | None = None
    """The name that its template claim would have and somebody else's claim has (R7)."""
    shape: Shape = Shape()
    nodes: tuple[str, ...] = ()
    """Where members are held, by name."""
    user: tuple[str, str] = field(init=False, compare=False, repr=False, default=("", ""))
    """The namespace and the uid of the VM that uses it; an empty uid: none."""

    def __post_init__(self) -> None:
        """Asked for often."""
        object.__setattr__(self, "user", (self.key.partition("/")[0], self.vm.uid if self.vm else ""))

    @property
    def needs(self) -> Mapping[str, int]:
        """Units per GPU resource."""
        return self.shape.needs

    @property
    def is_unrecorded(self) -> bool:
        """Whether a held order does not say that it serves this VM: it would not cover its launcher (R26)."""
        user = self.vm.uid if self.vm else ""
        held = [m.claim for m in self.members if m.claim is not None and m.node]
        return any(user_uid(claim) != user and not is_template_claim(claim) for claim in held)

    @property
    def lost(self) -> tuple[Member, ...]:
        """The members that are Lost."""
        return tuple(member for member in self.members if member.is_lost)

    @property
    def anchor(self) -> str:
        """The node that its launcher is on or can only go to, or the empty string."""
        return self.launcher.anchor if self.launcher else ""

    def without_new(self) -> ClaimSet:
        """What of it was placed before, as a set that nothing starts with."""
        old = (Phase.BOUND, Phase.LOST)
        members = tuple(m for m in self.members if m.claim is not None and m.claim.status.phase in old)
        classes = {member.gpu_class.metadata.name: member.gpu_class for member in members}
        constraints = Constraints(tuple(one for _, one in sorted(classes.items())))
        stage = Stage.IDLE if self.stage is Stage.GATED else self.stage
        shape = Shape(constraints, units_of(members))
        return replace(self, members=members, stage=stage, launcher=None, obstacle=None, shape=shape)

    def held_on(self, node: str) -> Mapping[str, int]:
        """Units per GPU resource that the set already holds on the node."""
        return units_of(member for member in self.members if member.node == node)

    @property
    def hopes(self) -> tuple[Key, ...]:
        """Claims that do not exist, or should not: the set is another one when they come or go."""
        new = (m.ref for m in self.members if m.claim is None)
        return (*((ref.namespace, ref.name) for ref in new), *filter(None, (self.taken,)))

    def bound_at(self) -> str:
        """When the last of it was bound."""
        moments = (m.claim.status.bound_at or "" for m in self.members if m.claim is not None)
        return max(moments, default="")


def units_of(members: Iterable[Member]) -> Mapping[str, int]:
    """Units per GPU resource, by the resource's name."""
    total: dict[str, int] = {}
    for member in members:
        total[member.resource] = total.get(member.resource, 0) + member.units
    return total if len(total) < 2 else dict(sorted(total.items()))
