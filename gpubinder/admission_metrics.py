"""What people see of admission: metrics, and a log line when it cannot judge or its certificates fail."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from admission.review import Answer, Review
from gpubinder.logs import say
from model.resources import GPU_BUDGETS, GPU_CLAIMS, GPU_CLASSES, PODS

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.8, 1)
"""Up to what the API server waits for."""
_KINDS = frozenset(resource.kind for resource in (PODS, GPU_CLAIMS, GPU_CLASSES, GPU_BUDGETS))
REPEAT_S = 60.0
"""Of one log line: a log that is away for an hour is told of sixty times, not per request."""


class AdmissionObserver:
    """Hears of reviews and certificates. `is_serving` once the first certificate is shown."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_s: dict[str, float] = {}
        self.is_serving = False
        name = "gpubinder_admission"
        self._requests = Counter(
            f"{name}_requests", "Requests by result", ["kind", "result"], registry=registry
        )
        self._took_s = Histogram(
            f"{name}_duration_seconds", "Of an answer", ["kind"], buckets=_BUCKETS, registry=registry
        )
        self._until = Gauge(
            f"{name}_certificate_expiry_timestamp_seconds",
            "When the one that is shown ends",
            registry=registry,
        )

    def reviewed(self, review: Review, answer: Answer, took_s: float) -> None:
        """A review was answered."""
        kind = _kind_of(review)
        self._requests.labels(kind, answer.result).inc()
        self._took_s.labels(kind).observe(took_s)
        if answer.is_unchecked:
            self._say(logging.WARNING, "admission_unchecked", kind=kind, cause=answer.warnings[0])
        elif answer.result == "failed" and answer.refusal is not None:
            self._say(logging.WARNING, "admission_closed", kind=kind, cause=answer.refusal.message)
        elif answer.refusal is not None:
            say(
                logging.DEBUG,
                "admission_refused",
                object=f"{kind} {review.namespace}/{review.name}",
                reason=answer.refusal.reason,
                cause=answer.refusal.message,
            )

    def unanswered(self, cause: str) -> None:
        """A request was none that can be answered, or one too many."""
        self._requests.labels("other", cause).inc()
        self._say(logging.WARNING, "admission_unanswered", cause=cause)

    def broke(self, review: Review, error: Exception) -> None:
        """A fault of ours."""
        self._requests.labels(_kind_of(review), "broken").inc()
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        place = f"{at.tb_frame.f_code.co_qualname}:{at.tb_lineno}" if at is not None else "?"
        self._say(logging.ERROR, "admission_broke", kind=_kind_of(review), cause=repr(error), at=place)

    def certificate_shown(self, until: datetime) -> None:
        """Another certificate is in force."""
        self._until.set(until.timestamp())
        say(logging.INFO, "certificate_shown", until=until.isoformat(timespec="seconds"))

    def certificates_unkept(self, why: str) -> None:
        """Secret, folder or configurations could not be read or written."""
        self._say(logging.WARNING, "certificates_unkept", cause=why, next="tried again in some seconds")

    def _say(self, level: int, event: str, **keys: str) -> None:
        now_s = self._clock()
        if now_s - self._said_s.get(event, -REPEAT_S) >= REPEAT_S:
            self._said_s[event] = now_s
            say(level, event, **keys)


def _kind_of(review: Review) -> str:
    """What callers write must not make labels."""
    return review.kind if review.kind in _KINDS else "other"
