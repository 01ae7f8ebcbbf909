"""The files of deploy/ that are made from code: CRDs, policies, webhooks, RBAC. `make crds` writes them."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from admission.policies import gate_policy
from admission.webhooks import Address, check_webhooks, gate_webhook, service
from admission.writers import writer_policies
from gpubinder.rbac import Places, rbac_of
from gpubinder.rights import Process
from model.crds import all_crds

_HEAD = "# Made by `make crds`: change the models, not this file.\n"


def rendered_files() -> dict[str, str]:
    """File name below deploy/ to content."""
    files = {
        f"crds/{crd['spec']['names']['plural']}.yaml": yaml.safe_dump(crd, sort_keys=False)
        for crd in all_crds()
    }
    files["admission/gate-policy.yaml"] = yaml.safe_dump_all(gate_policy(), sort_keys=False)
    files["admission/writer-policies.yaml"] = yaml.safe_dump_all(writer_policies(), sort_keys=False)
    address = Address()
    for name, webhooks in (
        ("gate-webhook", gate_webhook(address)),
        ("check-webhooks", check_webhooks(address)),
    ):
        text = yaml.safe_dump_all([*service(address), webhooks], sort_keys=False)
        files[f"admission/{name}.yaml"] = text
    for process in Process:
        text = yaml.safe_dump_all(rbac_of(process, Places()), sort_keys=False)
        files[f"rbac/{process}.yaml"] = text
    return {name: _HEAD + text for name, text in files.items()}


def write_files(folder: Path) -> list[Path]:
    """Write them all; returns the paths."""
    written = []
    for name, text in rendered_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write_files(Path(sys.argv[1])):
        print(path)  # noqa: T201 - a command's output
