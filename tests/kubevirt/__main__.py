"""By hand: `python -m tests.kubevirt build` builds virt-controller from the checkout that KUBEVIRT_SRC names,
`... up` runs a control plane with it, `... record NAME FILE` makes a recording.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.cluster import assets as plane_assets
from tests.cluster.assets import AssetsMissing, BuildFailed
from tests.cluster.control_plane import ControlPlane
from tests.kubevirt import assets
from tests.kubevirt.plane import start
from tests.kubevirt.recorder import SCENES, record

USAGE = f"usage: python -m tests.kubevirt build | up | record {'|'.join(SCENES)} FILE"


def main(args: list[str]) -> int:
    """The exit code: 2 for wrong use or without a checkout, 1 for a failed build."""
    try:
        match args:
            case ["build"]:
                built = assets.build(assets.source())
                print(f"virt-controller {built.version}: {built.folder}")
            case ["up"]:
                _with_plane(_wait)
            case ["record", name, file] if name in SCENES:
                _with_plane(lambda plane: record(plane, name, Path(file)))
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except (AssetsMissing, BuildFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, AssetsMissing) else 1
    return 0


def _with_plane(use: Callable[[ControlPlane], None]) -> None:
    plane = start(plane_assets.find(), assets.build(assets.source()))
    try:
        use(plane)
    finally:
        plane.stop()


def _wait(plane: ControlPlane) -> None:
    print(plane.kubeconfig(), flush=True)
    print("a control plane with KubeVirt is running with that kubeconfig; Ctrl-C stops it", file=sys.stderr)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
