"""What the API server fills in at a pod's creation. Checked against a real server by the contract suite."""

from __future__ import annotations

from kube.port import Json
from model.quantity import parse_quantity

_BRIEF_TROUBLE_S = 300
_BRIEF_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LEFT_OUT_EMPTY = ("schedulingGates", "tolerations", "nodeSelector", "volumes", "initContainers")
_DEFAULTS: Json = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
}
GATED = "Scheduling is blocked due to non-empty scheduling gates"
_COUNTED_FOR_QOS = ("cpu", "memory")


def fill_in(pod: Json) -> None:
    """Defaults and default tolerations; filling in a second time changes nothing."""
    spec = pod.setdefault("spec", {})
    for name, value in _DEFAULTS.items():
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _default_requests(spec.get("resources") or {})
    for container in _containers(spec):
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
        _default_requests(container.setdefault("resources", {}))
    _tolerate_brief_trouble(spec)
    drop_empty(pod)


def begin(pod: Json, now: str) -> None:
    """Give a new pod its status, which is the server's own whatever was sent."""
    pod["status"] = {"phase": "Pending", "qosClass": _qos_class(pod["spec"])}
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": now,
                "reason": "SchedulingGated",
                "message": GATED,
            }
        ]


def drop_empty(pod: Json) -> None:
    """Take out empty lists and maps of the spec: the server's types leave them out."""
    for name in _LEFT_OUT_EMPTY:
        if not pod["spec"].get(name, True):
            del pod["spec"][name]


def _containers(spec: Json) -> list[Json]:
    return [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]


def _default_requests(resources: Json) -> None:
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **resources.get("requests", {})}


def _pull_policy(image: str) -> str:
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if "@" in image or tag not in ("", "latest") else "Always"


def _qos_class(spec: Json) -> str:
    """Guaranteed where every container has limits of cpu and memory that are its requests."""
    asks, is_guaranteed = False, True
    whole = [spec] if spec.get("resources") else _containers(spec)
    for one in whole:
        resources = one.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in _COUNTED_FOR_QOS:
            asks = asks or any(parse_quantity(side.get(name, 0)) for side in (limits, requests))
            is_guaranteed = is_guaranteed and name in limits
            is_guaranteed = is_guaranteed and requests.get(name) == limits.get(name)
    if not asks:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _tolerate_brief_trouble(spec: Json) -> None:
    """DefaultTolerationSeconds: five minutes of a node that is not ready or unreachable."""
    tolerations = spec.setdefault("tolerations", [])
    for key in _BRIEF_TROUBLES:
        if any(
            one.get("key") in (key, None, "") and one.get("effect") in (None, "", "NoExecute")
            for one in tolerations
        ):
            continue
        tolerations.append(
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _BRIEF_TROUBLE_S}
        )
