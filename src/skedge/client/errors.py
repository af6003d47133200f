"""What can go wrong when talking to an API server; every error is one line fit for a user.

    ClientError
    ├── KubeconfigError       the kubeconfig or the credentials it names; says the field
    ├── ApiError              the server answered with a Status: code, reason, message, details
    │   ├── BadRequest (400)
    │   ├── Unauthorized (401)
    │   ├── Forbidden (403)
    │   ├── NotFound (404)
    │   ├── MethodNotAllowed (405)
    │   ├── Conflict (409)
    │   │   └── AlreadyExists
    │   ├── Expired (410)     a resourceVersion or continue token that is too old
    │   ├── Invalid (422)
    │   ├── TooManyRequests (429)
    │   └── ServerError (5xx)
    │       └── InternalError (500)
    ├── ConnectionFailed      no answer: unknown host, unreachable, refused by a proxy
    │   ├── ConnectionRefused
    │   ├── ConnectionLost    it broke after the request was sent, which may or may not have been carried out
    │   └── CertificateError  TLS: the server's certificate or ours was not accepted
    ├── RequestTimeout        no answer in the time given
    └── DecodeError           the answer is not the JSON that was expected

Upstream: `apimachinery/pkg/api/errors`.
"""

from __future__ import annotations

from typing import Any

import msgspec


class ClientError(Exception):
    """Base of everything this package raises on purpose."""


class KubeconfigError(ClientError):
    """A kubeconfig, or a credential it names, that cannot be used; the message names the file or the field."""


class ConnectionFailed(ClientError):
    """The server could not be reached, or the connection broke before the answer was complete."""


class ConnectionLost(ConnectionFailed):
    """The connection broke before the answer was complete; the request may or may not have been carried out."""


class ConnectionRefused(ConnectionFailed):
    """Nothing listens at the server's address."""


class CertificateError(ConnectionFailed):
    """The TLS handshake failed: an untrusted, expired or wrongly named certificate, or ours was refused."""


class RequestTimeout(ClientError):
    """The answer did not come within the time given."""


class DecodeError(ClientError):
    """The server's answer is not the JSON that was expected."""


class StatusCause(msgspec.Struct, omit_defaults=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, omit_defaults=True):
    """`meta/v1 Status`, the body of every failed request."""

    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


class ApiError(ClientError):
    """The server refused: `code` is the HTTP status, `reason` a machine-readable word, `message` a sentence.

    `retry_after` is in seconds, None when the server named no delay.
    """

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        super().__init__(status.message or f"the server answered {status.code} {status.reason}".rstrip())
        self.status = status
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        return self.status.code

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def message(self) -> str:
        return str(self)

    @property
    def is_too_large_resource_version(self) -> bool:
        """The server has not seen the asked-for resourceVersion yet (`storage.IsTooLargeResourceVersion`)."""
        details = self.status.details
        return self.code == 504 and any(
            cause.reason == "ResourceVersionTooLarge" or cause.message == "Too large resource version"
            for cause in (details.causes if details else None) or ()
        )


class BadRequest(ApiError):
    """400: the server could not understand the request."""


class Unauthorized(ApiError):
    """401: the credentials are missing, expired or unknown."""


class Forbidden(ApiError):
    """403: the user may not do this."""


class NotFound(ApiError):
    """404: no such object or resource."""


class MethodNotAllowed(ApiError):
    """405: the resource does not support the verb."""


class Conflict(ApiError):
    """409: the object changed meanwhile, or its state forbids the change."""


class AlreadyExists(Conflict):
    """409 with reason AlreadyExists."""


class Expired(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""


class Invalid(ApiError):
    """422: the object failed validation; `status.details.causes` has the fields."""


class TooManyRequests(ApiError):
    """429: the server is shedding load."""


class ServerError(ApiError):
    """5xx: the server, or something between, failed."""


class InternalError(ServerError):
    """500."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
}
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_status_decoder = msgspec.json.Decoder(Status)


def api_error(code: int, body: bytes, *, retry_after: float | None = None, what: str = "") -> ApiError:
    """The error for an answer with HTTP status `code`; a body that is no Status is quoted, shortened to one line.

    `what` names the request (`GET /api/v1/pods`) for answers that carry no message of their own.
    """
    try:
        status = _status_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        status = Status()
    if not status.message:
        text = " ".join(body[:400].decode("utf-8", "replace").split())
        if body.lstrip()[:1] in (b"{", b"<") or not text:
            text = "no further message"
        answer = f"the server answered {code} {_REASONS.get(code, '')}".rstrip()
        status.message = f"{answer}{f' to {what}' if what else ''}: {text[:200]}"
    status.code = code
    status.reason = status.reason or _REASONS.get(code, "")
    details = status.details
    if retry_after is None and details is not None and details.retry_after_seconds > 0:
        retry_after = float(details.retry_after_seconds)
    return status_error(status, retry_after=retry_after)


def status_error(status: Status, *, retry_after: float | None = None) -> ApiError:
    """The error for a decoded Status, as in the ERROR event of a watch."""
    kind = _BY_CODE.get(status.code) or (ServerError if status.code >= 500 else ApiError)
    if status.reason == "AlreadyExists":
        kind = AlreadyExists
    elif status.reason in ("Expired", "Gone"):
        kind = Expired
    return kind(status, retry_after=retry_after)


def one_line(error: BaseException) -> str:
    """An error of any kind as one line: its text, or its type when it has none."""
    text: Any = " ".join(str(error).split())
    return text or type(error).__name__
