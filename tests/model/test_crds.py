"""The CRDs are made from the models, and the files in deploy/ are what is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubinder.crd_files import rendered_files
from model.crds import all_crds

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.parametrize("name", sorted(rendered_files()))
def test_file_in_deploy_is_what_the_models_say(name: str) -> None:
    """`make crds` writes it."""
    assert (DEPLOY / name).read_text(encoding="utf-8") == rendered_files()[name]


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
