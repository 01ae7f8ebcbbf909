"""KubeVirt's virt-controller, and what its operator would install, built from a checkout of KubeVirt.

Nothing of KubeVirt is in this repository: `KUBEVIRT_SRC` names the checkout, which is read and never written
(our own program that prints the install objects is laid over it for the build). Always holds: a folder in the
cache is complete, and is named for the sources it was built from.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.assets import AssetsMissing, BuildFailed, go_build, user_cache

HINT = (
    "set KUBEVIRT_SRC to a checkout of KubeVirt, e.g. "
    "git clone --depth 1 --branch v1.8.0 https://github.com/kubevirt/kubevirt /tmp/kubevirt && "
    "make kubevirt KUBEVIRT_SRC=/tmp/kubevirt"
)
PROGRAM = Path(__file__).parent / "install_objects.go"
_PACKAGE = "cmd/gpubinder-install-objects"
_SOURCES = ("go.mod", "go.work", "vendor/modules.txt", "cmd/virt-controller", "pkg", "staging")
_VERSION = "kubevirt.io/client-go/version.gitVersion"


@dataclass(frozen=True, slots=True)
class KubeVirt:
    """What was built: a folder with `virt-controller`, `objects.ndjson` and `version`."""

    folder: Path

    @property
    def controller(self) -> Path:
        """The executable."""
        return self.folder / "virt-controller"

    @property
    def version(self) -> str:
        """As `git describe` told it of the checkout."""
        return (self.folder / "version").read_text().strip()

    def objects(self) -> list[Any]:
        """CRDs, roles and accounts, as KubeVirt's operator would install them."""
        return [json.loads(line) for line in (self.folder / "objects.ndjson").read_text().splitlines()]


def source() -> Path:
    """The checkout; raises AssetsMissing with what to set."""
    given = os.environ.get("KUBEVIRT_SRC")
    if not given:
        raise AssetsMissing(HINT)
    folder = Path(given).absolute()
    missing = [name for name in ("go.mod", "vendor", "cmd/virt-controller") if not (folder / name).exists()]
    if missing:
        raise AssetsMissing(f"KUBEVIRT_SRC={given} lacks {', '.join(missing)}: {HINT}")
    return folder


def find(checkout: Path) -> KubeVirt:
    """What was built from exactly these sources; raises AssetsMissing."""
    folder = _folder_of(checkout)
    if not (folder / "virt-controller").exists():
        raise AssetsMissing("virt-controller of this checkout is not built: run `make kubevirt`")
    return KubeVirt(folder)


def build(checkout: Path) -> KubeVirt:
    """Builds what `find` would miss, once; raises BuildFailed."""
    folder = _folder_of(checkout)
    if (folder / "virt-controller").exists():
        return KubeVirt(folder)
    if not shutil.which("go"):
        raise BuildFailed("no `go` on PATH: install the Go that the checkout's go.mod asks for")
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".build-", dir=folder.parent))
    try:
        _build_into(scratch, checkout)
        scratch.chmod(0o755)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return KubeVirt(folder)


def _build_into(folder: Path, checkout: Path) -> None:
    version = described(checkout)
    (folder / "version").write_text(version + "\n")
    flags = ["-mod=vendor", "-ldflags", f"-X {_VERSION}={version}"]
    go_build(
        f"virt-controller {version}",
        checkout,
        [*flags, "-o", str(folder / "virt-controller"), "./cmd/virt-controller"],
    )
    overlay = folder / "overlay.json"
    overlay.write_text(json.dumps({"Replace": {str(checkout / _PACKAGE / "main.go"): str(PROGRAM)}}))
    printer = folder / "install-objects"
    args = [*flags, "-overlay", str(overlay), "-o", str(printer), f"./{_PACKAGE}"]
    go_build("its install objects", checkout, args)
    (folder / "objects.ndjson").write_bytes(_output([str(printer)]))
    printer.unlink()
    overlay.unlink()


def described(checkout: Path) -> str:
    """The version by its tags, or that nobody knows it."""
    if not (checkout / ".git").exists():
        return "unknown"
    command = ["git", "-C", str(checkout), "describe", "--tags", "--always", "--dirty"]
    return _output(command).decode().strip()


def _output(command: list[str]) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise BuildFailed(f"{command[0]} failed: {done.stderr.decode(errors='replace').strip()[-500:]}")
    return done.stdout


def _folder_of(checkout: Path) -> Path:
    digest = hashlib.sha256(PROGRAM.read_bytes())
    for path in _files(checkout):
        digest.update(f"{path.relative_to(checkout)}\0".encode())
        digest.update(path.read_bytes())
    return user_cache() / "kubevirt" / digest.hexdigest()[:16]


def _files(checkout: Path) -> Iterator[Path]:
    for name in _SOURCES:
        path = checkout / name
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (each for each in found if each.is_file())
