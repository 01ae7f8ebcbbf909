"""The CRDs are made from the models, and the files in deploy/ are what is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpubinder.crd_files import rendered_files
from model.crds import all_crds

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.parametrize("name", sorted(rendered_files()))
def test_file_in_deploy_is_what_the_models_say(name: str) -> None:
    """`make crds` writes it."""
    assert (DEPLOY / name).read_text(encoding="utf-8") == rendered_files()[name]


def test_nothing_else_lies_beside_them() -> None:
    """A kind that is gone from the models is gone from deploy/."""
    beside = {
        f"{folder}/{path.name}"
        for folder in ("crds", "admission", "rbac")
        for path in (DEPLOY / folder).iterdir()
    }
    assert beside == set(rendered_files())


def test_schemas_bound_whatever_a_rule_reads() -> None:
    """The API server estimates the cost of a CEL rule from the bounds of its field."""
    for crd in all_crds():
        for path, schema in fields_of(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
            if "x-kubernetes-validations" in schema:
                assert schema["type"] == "integer" or "maxLength" in schema, path


def test_every_field_of_ours_says_what_it_is_for() -> None:
    for crd in all_crds():
        for path, schema in fields_of(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
            is_ours = path.startswith((".spec", ".status")) and not path.endswith(".*")
            assert "description" in schema or not is_ours, (crd["metadata"]["name"], path)


def fields_of(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    children = dict(schema.get("properties", {}))
    for key in ("items", "additionalProperties"):
        children |= {"*": schema[key]} if key in schema else {}
    for name, child in children.items():
        yield f"{path}.{name}", child
        yield from fields_of(child, f"{path}.{name}")


def test_kinds_have_the_names_columns_and_bounds_of_the_design() -> None:
    crds = {crd["spec"]["names"]["kind"]: crd["spec"] for crd in all_crds()}
    claim = crds["GPUClaim"]
    assert claim["names"]["shortNames"] == ["gcl"]
    assert claim["names"]["singular"] == "gpuclaim"
    assert all(spec["names"]["categories"] == ["gpu"] for spec in crds.values())
    assert {kind: spec["scope"] for kind, spec in crds.items()} == {
        "GPUClass": "Cluster",
        "GPUClaim": "Namespaced",
        "GPUBudget": "Cluster",
    }
    (version,) = claim["versions"]
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns == ["Class", "Units", "Phase", "Node", "VM", "Reason", "Age"]
    units = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["units"]
    assert (units["minimum"], units["maximum"]) == (1, 1024)
    assert units["x-kubernetes-validations"][0]["rule"] == "self == oldSelf"
