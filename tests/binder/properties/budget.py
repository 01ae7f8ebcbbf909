"""How much the properties try: little by default, so that `make test` stays fast; more on demand.

`GPUBINDER_PROPERTY_FACTOR=50 pytest tests/binder/properties --timeout 0` looks fifty times as long.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("GPUBINDER_PROPERTY_FACTOR", "1"))


def examples(count: int) -> settings:
    """So many examples by default, always the same ones then. Timings of a busy machine fail nothing here."""
    return settings(
        max_examples=count * FACTOR,
        deadline=None,
        derandomize=FACTOR == 1,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
