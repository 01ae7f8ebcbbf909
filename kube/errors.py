"""What can go wrong with a request to the API server, one class per kind of answer.

Misconfigured              no request was made: the kubeconfig or the pod's own credentials are unusable

ApiError
├── Unreachable            no answer: refused, reset, TLS, DNS
├── OutcomeUnknown         the request was sent and no answer came in time: a write may have happened
└── Refused                an answer with a status
    ├── BadRequest 400 · Unauthorized 401 · Forbidden 403 · NotFound 404
    ├── Conflict 409 (AlreadyExists is one) · Gone 410 · Invalid 422
    ├── TooManyRequests 429 (retry_after_s)
    └── ServerFault 5xx
"""

from __future__ import annotations


class Misconfigured(Exception):
    """The connection settings cannot be used: `what` is wrong, `why`, and the `next_step`; one line."""

    def __init__(self, what: str, why: str, next_step: str) -> None:
        super().__init__(" ".join(f"{what}: {why}; {next_step}".split()))
        self.what = what
        self.why = why
        self.next_step = next_step


class ApiError(Exception):
    """A request that did not succeed; `target` names the object or collection."""

    def __init__(self, target: str, message: str) -> None:
        super().__init__(f"{target}: {message}")
        self.target = target
        self.message = message


class Unreachable(ApiError):
    """No answer came, and the request was not processed."""


class OutcomeUnknown(ApiError):
    """No answer came in time; the API server may have carried the request out."""


class Refused(ApiError):
    """The API server answered with an error status."""

    def __init__(self, target: str, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(target, message)
        self.status = status
        self.reason = reason


class BadRequest(Refused):
    """400: the request makes no sense to the server."""


class Unauthorized(Refused):
    """401: no or expired credentials."""


class Forbidden(Refused):
    """403: RBAC, quota or an admission policy says no."""


class NotFound(Refused):
    """404: no such object, or the kind is not served."""


class Conflict(Refused):
    """409: the object has another resourceVersion or uid than the request asks for."""


class AlreadyExists(Conflict):
    """409 on create: an object of that name exists."""


class Gone(Refused):
    """410: the resourceVersion or continue token is too old; list again."""


class Invalid(Refused):
    """422: the object breaks a rule of its schema."""


class TooManyRequests(Refused):
    """429: come back after `retry_after_s` seconds."""

    retry_after_s: float = 1.0


class ServerFault(Refused):
    """5xx: the server's own fault."""


_BY_STATUS: dict[int, type[Refused]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def refusal(status: int, reason: str, message: str, target: str) -> Refused:
    """The error for an answer with HTTP `status` and the Status object's `reason`."""
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists(target, message, status, reason)
    known = _BY_STATUS.get(status) or (ServerFault if status >= 500 else Refused)
    return known(target, message, status, reason)
