"""Random pods to be placed: every field that a filter reads, alone and together."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.differential.clusters import CLAIMS, RUNTIME, STATIC_CLAIMS
from tests.differential.words import (
    EFFECTS,
    LABELS,
    TAINT_KEYS,
    TAINT_VALUES,
    Json,
    chance,
    requests,
    some,
    terms,
)


def pods(rng: Random, count: int) -> Iterator[Json]:
    """Each is about a few things only: one that is about all would fit nowhere."""
    for number in range(count):
        about = rng.sample(
            ("selector", "affinity", "tolerations", "room", "volumes"), rng.choice((1, 1, 2, 2, 3))
        )
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"case-{number}"},
            "spec": spec(rng, frozenset(about)),
        }


def spec(rng: Random, about: frozenset[str]) -> Json:
    containers: list[Json] = [{"name": "c0", "image": "x"}]
    written: Json = {"containers": containers, "terminationGracePeriodSeconds": 0}
    if "room" in about:
        room(rng, written)
    if "selector" in about:
        keys = some(rng, tuple(LABELS), 1, 2)
        written["nodeSelector"] = {key: rng.choice(LABELS[key]) for key in keys}
    if "affinity" in about:
        required = {"nodeSelectorTerms": terms(rng)}
        written["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if "tolerations" in about:
        written["tolerations"] = [toleration(rng) for _ in range(rng.randint(1, 5))]
    elif chance(rng, 80):
        written["tolerations"] = [{"operator": "Exists"}]
    if "volumes" in about:
        words = STATIC_CLAIMS if chance(rng, 15) else (*CLAIMS, "pvc-none")
        written["volumes"] = [
            {"name": f"v{n}", "persistentVolumeClaim": {"claimName": name}}
            for n, name in enumerate(rng.sample(words, rng.choice((1, 1, 1, 2, 3))))
        ]
    return written


def room(rng: Random, written: Json) -> None:
    for container in written["containers"]:
        container["resources"] = requests(rng)
    if chance(rng, 30):
        written["containers"].append({"name": "c1", "image": "x", "resources": requests(rng)})
    inits: list[Json] = []
    for number in range(rng.choice((0, 0, 1, 2, 3))):
        init: Json = {"name": f"i{number}", "image": "x", "resources": requests(rng)}
        if chance(rng, 50):
            init["restartPolicy"] = "Always"
        inits.append(init)
    written["initContainers"] = inits
    if chance(rng, 20):
        written["runtimeClassName"] = RUNTIME
    if chance(rng, 20):
        whole = {"cpu": rng.choice(("9", "16", "17")), "memory": rng.choice(("9Gi", "16Gi"))}
        written["resources"] = {"requests": whole if chance(rng, 50) else {"cpu": whole["cpu"]}}


def toleration(rng: Random) -> Json:
    operator = rng.choice(("Exists", "Equal", "", "Gt", "Lt"))
    written: Json = {"key": rng.choice(TAINT_KEYS)}
    if operator:
        written["operator"] = operator
    if operator in ("Gt", "Lt"):
        written["value"] = rng.choice(("4", "5", "-4", "10", "0", "9223372036854775807"))
    elif operator != "Exists" and chance(rng, 80):
        written["value"] = rng.choice(TAINT_VALUES)
    if operator == "Exists" and chance(rng, 15):
        del written["key"]
    if chance(rng, 50):
        written["effect"] = rng.choice(EFFECTS)
        if written["effect"] == "NoExecute" and chance(rng, 40):
            written["tolerationSeconds"] = rng.choice((0, 60))
    return written
