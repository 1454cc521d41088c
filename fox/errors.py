"""The ways fox says no: one small tree.

Every error takes positional arguments only, and keeps them in `args`: an error raised in an engine's child process
crosses to the parent as `(class name, args)` and is raised there again by `from_wire`.
"""

from __future__ import annotations

from typing import ClassVar

WireArgs = tuple[str | int | float | None, ...]


class FoxError(Exception):
    """Base of every refusal and failure that fox reports to a person. `code` is the stable machine-readable name."""

    code: ClassVar[str] = "internal_error"


class InvalidRequest(FoxError):  # noqa: N818 - the field's word is the refusal, not "Error"
    """The caller asked for something impossible. `args`: message, name of the offending field (or None)."""

    code = "invalid_request"

    @property
    def param(self) -> str | None:
        return str(self.args[1]) if len(self.args) > 1 and self.args[1] is not None else None

    def __str__(self) -> str:
        return str(self.args[0])


class ContextExceeded(InvalidRequest):
    """The prompt leaves no room for an answer. `args`: message, field, prompt tokens, context tokens."""

    code = "context_length_exceeded"


class ModelNotFound(FoxError):  # noqa: N818
    """No model of that name. `args`: the name as it was asked for; the names it may mean, where it means several."""

    code = "model_not_found"

    def __str__(self) -> str:
        if len(self.args) > 1:
            return f"model '{self.args[0]}' is ambiguous: {self.args[1]}"
        return f"model '{self.args[0]}' not found"


class RequestNotFound(FoxError):  # noqa: N818
    """No such request is being answered, and no such answer is kept. `args`: its id."""

    code = "not_found"

    def __str__(self) -> str:
        return f"there is no request or answer '{self.args[0]}'"


class ModelLoadFailed(FoxError):  # noqa: N818
    """The model exists and cannot be loaded. `args`: name, reason."""

    code = "model_load_failed"

    def __str__(self) -> str:
        return f"model '{self.args[0]}' failed to load: {self.args[1]}"


class QueueFull(FoxError):  # noqa: N818
    """Too many requests wait already. `args`: the limit."""

    code = "queue_full"

    def __str__(self) -> str:
        return f"the queue is full: {self.args[0]} requests are waiting"


class Draining(FoxError):  # noqa: N818
    """The server is shutting down and takes no new work."""

    code = "draining"

    def __str__(self) -> str:
        return "the server is shutting down"


class EngineFailed(FoxError):  # noqa: N818
    """The engine could not finish a generation: it died, or one computation went wrong. `args`: reason."""

    code = "engine_failed"

    def __str__(self) -> str:
        return str(self.args[0])


class Cancelled(FoxError):  # noqa: N818
    """Somebody asked for the end of this answer while it was being made. `args`: message."""

    code = "cancelled"

    def __str__(self) -> str:
        return str(self.args[0])


_BY_NAME: dict[str, type[FoxError]] = {
    cls.__name__: cls
    for cls in (
        InvalidRequest,
        ContextExceeded,
        ModelNotFound,
        ModelLoadFailed,
        QueueFull,
        Draining,
        EngineFailed,
        Cancelled,
    )
}


def to_wire(error: Exception) -> tuple[str, WireArgs]:
    """`(class name, args)` of an error. Anything that is no FoxError travels as EngineFailed with its text."""
    if isinstance(error, FoxError):
        return type(error).__name__, error.args
    return EngineFailed.__name__, (f"{type(error).__name__}: {error}",)


def from_wire(name: str, args: WireArgs) -> FoxError:
    """The error that `to_wire` took apart. An unknown name becomes EngineFailed."""
    return _BY_NAME.get(name, EngineFailed)(*args)
