"""`gpubinder`, to which the API server offers no streamed lists, as before Kubernetes 1.32."""

from __future__ import annotations

from gpubinder import system
from gpubinder.cli import main
from ingest.watcher import KindWatcher


def listing_by_pages(*args: object) -> KindWatcher:
    """A watcher that has learned it."""
    return KindWatcher(*args, _can_stream_lists=False)  # type: ignore[arg-type]


if __name__ == "__main__":
    system.KindWatcher = listing_by_pages  # type: ignore[assignment,misc]
    main(prog_name="gpubinder")
