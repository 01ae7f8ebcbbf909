"""Why a set is not placed: the machine-readable words, the same in conditions, events and metrics."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """One set has one reason: the last stage of R8 that some node reached, or what kept it from them.

    In the order in which they are met: what is wrong with the set's words, then with any placement at all,
    then the stages of R8 from a to e, then what may still happen to a set that has a node; last what is
    said of a pod.
    """

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """The word as Kubernetes objects carry it, and one line for people."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    FEATURE_DISABLED = "FeatureDisabled", "GPU placement is switched off"
    STALE_LOG = "StaleLog", "the watchers are silent: nothing is decided on old news"
    MASS_OUTAGE = "MassOutage", "too many GPU nodes fail at once: nothing is moved until some return"
    CLAIM_NOT_FOUND = "ClaimNotFound", "a claim that the VM names does not exist"
    CLAIM_IN_USE = "ClaimInUse", "another VM uses a claim that this one names"
    CLASS_NOT_FOUND = "ClassNotFound", "no GPUClass has that name or sells that resource"
    CLASS_AMBIGUOUS = "ClassAmbiguous", "several classes sell the resource and none is the default"
    NAME_TAKEN = "NameTaken", "a claim of the name that the VM's own would have belongs to someone else"
    BUDGET_EXCEEDED = "BudgetExceeded", "a budget of the namespace has no room left"
    VOLUME_PENDING = "VolumePending", "a volume does not exist or is not bound yet"
    TOO_LARGE = "TooLarge", "no node could hold it even when empty"
    CLASS_CONSTRAINTS = "ClassConstraints", "R8a: taints, the class's selector, not Ready or cordoned"
    POD_CONSTRAINTS = "PodConstraints", "R8b: the VM's own selector or affinity"
    VOLUME_UNREACHABLE = "VolumeUnreachable", "R8c: a volume cannot be reached from there"
    NODES_REFUSED = "NodesRefused", "R8d: the node has refused this VM"
    NO_ROOM = "NoRoom", "R8e: too few free units"
    OTHER_RESOURCES = "OtherResources", "R8e: units enough, but not the cpu, memory or other resources"
    WAITING_FOR_LAUNCHER = "WaitingForLauncher", "placed; the VM's launcher is still to come"
    NODE_LOST = "NodeLost", "its node could not keep it, and no other can take it yet"
    WRITE_REFUSED = "WriteRefused", "the API server refuses what would place it"
    NOT_A_LAUNCHER = "NotALauncher", "a pod with our gate that no VMI lists as its launcher"
