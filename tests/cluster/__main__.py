"""By hand: `python -m tests.cluster assets` builds the binaries, `... up` runs a control plane."""

from __future__ import annotations

import signal
import sys
import threading

from tests.cluster import assets

USAGE = "usage: python -m tests.cluster assets | up"


def main(args: list[str]) -> int:
    """The exit code: 2 for wrong use, 1 for failure."""
    try:
        match args:
            case ["assets"]:
                assets.build()
            case ["up"]:
                _up()
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except (assets.AssetsMissing, assets.BuildFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _up() -> None:
    from tests.cluster.control_plane import start  # noqa: PLC0415

    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    plane = start(assets.find())
    try:
        print(plane.kubeconfig(), flush=True)
        print("a control plane is running with that kubeconfig; Ctrl-C stops it", file=sys.stderr)
        stopped.wait()
    finally:
        plane.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
