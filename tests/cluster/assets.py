"""The binaries of a real control plane: where they are, and how they are built when they are not.

They come from `KUBEBUILDER_ASSETS` when it is set, else from a per-user cache that `build` fills from
the Go modules pinned in `tests/cluster/assets/*/go.mod`. Always holds: a folder in the cache is complete,
because it gets its final name only after every binary was built.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "assets"
KUBERNETES_TOOLS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
HINT = "run `make envtest-assets`"


class AssetsMissing(Exception):
    """Binaries of the control plane are not there; the text names them and the next step."""


class BuildFailed(Exception):
    """The Go toolchain could not build the binaries; the text holds the last lines of its output."""


@dataclass(frozen=True, slots=True)
class Assets:
    """A folder that holds every binary in `NEEDED`."""

    folder: Path

    def path(self, name: str) -> Path:
        """The executable of that name."""
        return self.folder / name


def pinned_version(module: str) -> str:
    """The version of the Go module that `tests/cluster/assets/<module>/go.mod` pins, e.g. `v1.37.2`."""
    wanted = {"kubernetes": r"k8s\.io/kubernetes", "etcd": r"go\.etcd\.io/etcd/server/v3"}[module]
    found = re.search(
        rf"^\s*(?:require )?{wanted} (v\S+)", (MODULES / module / "go.mod").read_text(), re.MULTILINE
    )
    if not found:
        raise BuildFailed(f"tests/cluster/assets/{module}/go.mod pins no version of the module it builds")
    return found[1]


def user_cache() -> Path:
    """The folder of this user for what takes long to build."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpubinder"


def cache_folder() -> Path:
    """Where the binaries of the pinned versions belong for this user."""
    versions = f"kubernetes-{pinned_version('kubernetes')}-etcd-{pinned_version('etcd')}"
    return user_cache() / "envtest" / versions / "bin"


def find() -> Assets:
    """The binaries to use; raises AssetsMissing."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    folder = Path(given) if given else cache_folder()
    missing = [name for name in NEEDED if not os.access(folder / name, os.X_OK)]
    if not missing:
        return Assets(folder)
    if given:
        what = f"KUBEBUILDER_ASSETS={given} lacks {', '.join(missing)}"
        raise AssetsMissing(f"{what}: add them to that folder, or unset KUBEBUILDER_ASSETS and {HINT}")
    raise AssetsMissing(HINT)


def build() -> Path:
    """Builds what `find` would miss, once, and returns the folder; raises BuildFailed."""
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        _say(f"KUBEBUILDER_ASSETS is set, nothing is built: {find().folder}")
        return Path(given)
    folder = cache_folder()
    if all(os.access(folder / name, os.X_OK) for name in (*NEEDED, "kubectl")):
        _say(f"already built: {folder}")
        return folder
    if not shutil.which("go"):
        raise BuildFailed("no `go` on PATH: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS")
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".build-", dir=folder.parent))
    try:
        _build_all(scratch)
        _publish(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _say(f"ready: {folder}")
    return folder


def _build_all(folder: Path) -> None:
    version = pinned_version("kubernetes")
    major, minor = re.findall(r"\d+", version)[:2]
    package = "k8s.io/component-base/version"
    # Without these the servers call themselves v0.0.0-master and refuse some version checks.
    flags = " ".join(
        f"-X {package}.{k}={v}"
        for k, v in (("gitVersion", version), ("gitMajor", major), ("gitMinor", minor))
    )
    _go(f"etcd {pinned_version('etcd')}", "etcd", ["-o", str(folder / "etcd"), "go.etcd.io/etcd/server/v3"])
    for tool in KUBERNETES_TOOLS:
        args = ["-o", str(folder / tool), "-ldflags", flags, f"k8s.io/kubernetes/cmd/{tool}"]
        _go(f"{tool} {version}", "kubernetes", args)


def _go(what: str, module: str, args: list[str]) -> None:
    go_build(what, MODULES / module, ["-mod=readonly", *args])


def go_build(what: str, where: Path, args: list[str]) -> None:
    """One `go build` in a folder; raises BuildFailed."""
    _say(f"building {what} (minutes the first time, seconds with a warm Go cache) ...")
    began = time.monotonic()
    command = ["go", "build", "-C", str(where), "-trimpath", "-buildvcs=false", *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stderr.strip().splitlines()[-10:])
        raise BuildFailed(f"building {what} failed; the end of the Go toolchain's output:\n{tail}")
    _say(f"built {what} in {time.monotonic() - began:.0f} s")


def _publish(scratch: Path, folder: Path) -> None:
    """Gives the finished build its name; another build that was quicker is as good."""
    scratch.chmod(0o755)
    if folder.exists():
        shutil.rmtree(folder)
    try:
        scratch.rename(folder)
    except OSError:
        find()


def _say(line: str) -> None:
    print(f"envtest-assets: {line}", flush=True)
