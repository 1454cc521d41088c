"""The count of one request: made once, whatever way it ends."""

from __future__ import annotations

import time

from fox.errors import Cancelled, FoxError, ModelLoadFailed
from fox.metrics import Meter, Metrics, Status


class Tally:
    """Of a request that nothing else is told about, the client has left. `model`: once it is known to exist."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._began = time.perf_counter()
        self._meter: Meter | None = None
        self._model = ""
        self._tokens = 0
        self._heard_at = 0.0
        self._status: Status = "cancelled"
        self._rejected = ""

    def found(self, model: str) -> None:
        self._model = model

    def admitted(self) -> None:
        """The engine has taken it. An error before this is a rejection, one after it a failed answer."""
        self._meter = self._metrics.meter(self._model)

    def heard(self, tokens: int) -> None:
        """More of the answer has come."""
        if not tokens or self._meter is None:
            return
        now = time.perf_counter()
        if not self._tokens:
            self._meter.first_token_after(now - self._began)
        else:
            self._meter.next_token_after(now - self._heard_at)
        self._heard_at = now
        self._tokens += tokens
        self._meter.generated(tokens)

    def ended(self, status: Status) -> None:
        self._status = status

    def failed(self, error: Exception) -> None:
        self._status = "cancelled" if isinstance(error, Cancelled) else "failed"
        if isinstance(error, ModelLoadFailed):
            self._model = str(error.args[0])
        if self._meter is None:
            self._rejected = error.code if isinstance(error, FoxError) else FoxError.code

    def close(self) -> str:
        """Count it. Returns what the log says of it."""
        if self._rejected:
            self._metrics.rejected(self._model, self._rejected)
            return self._rejected
        seconds = time.perf_counter() - self._began
        self._metrics.meter(self._model).ended(self._status, seconds)
        return f"{self._model} {self._status} {self._tokens} tokens"
