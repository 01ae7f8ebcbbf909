"""Why a set is not placed: the machine-readable words, the same in conditions, events and metrics."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """One set has one reason: the last stage of R8 that some node reached, or what kept it from them."""

    CLAIM_NOT_FOUND = "ClaimNotFound"
    CLAIM_IN_USE = "ClaimInUse"
    CLASS_NOT_FOUND = "ClassNotFound"
    CLASS_AMBIGUOUS = "ClassAmbiguous"
    NAME_TAKEN = "NameTaken"
    BUDGET_EXCEEDED = "BudgetExceeded"
    VOLUME_PENDING = "VolumePending"
    TOO_LARGE = "TooLarge"
    CLASS_CONSTRAINTS = "ClassConstraints"
    POD_CONSTRAINTS = "PodConstraints"
    VOLUME_UNREACHABLE = "VolumeUnreachable"
    NODES_REFUSED = "NodesRefused"
    NO_ROOM = "NoRoom"
    OTHER_RESOURCES = "OtherResources"
    WAITING_FOR_LAUNCHER = "WaitingForLauncher"
    NODE_LOST = "NodeLost"
    MASS_OUTAGE = "MassOutage"
    STALE_LOG = "StaleLog"
    FEATURE_DISABLED = "FeatureDisabled"
