"""What llama.cpp says while it works: warnings go to stderr, the last errors are kept as reasons."""

from __future__ import annotations

import re
import sys
from collections import deque
from typing import Any, ClassVar

WARN, ERROR, CONTINUED = 3, 4, 5
EXPECTED = (
    "possible training context overflow"  # the pool of all sequences is longer than any one of them may be
)


class LogTail:
    """Installs itself as llama.cpp's log callback and keeps the last error lines."""

    _installed: ClassVar[Any] = None
    """Whoever owned it may be gone: llama.cpp calls it until another takes its place."""

    def __init__(self, lib: Any) -> None:
        self._errors: deque[str] = deque(maxlen=8)
        self._level = 0
        callback = lib.llama_log_callback(self._hear)
        lib.llama_log_set(callback, None)
        LogTail._installed = callback

    def reason(self) -> str:
        """Why the last thing failed, in one line, then forgotten. llama.cpp's first error is its most specific."""
        lines = list(self._errors)
        self._errors.clear()
        return _bare(lines[0]) if lines else "llama.cpp gave no reason"

    def warn(self, text: str) -> None:
        """Tell the server's log."""
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - the parent reads it

    def _hear(self, level: int, text: bytes, _data: object) -> None:
        self._level = level if level != CONTINUED else self._level
        line = text.decode(errors="replace").strip()
        if self._level < WARN or not line or EXPECTED in line:
            return
        if self._level >= ERROR:
            self._errors.append(line)
        self.warn(line)


def _bare(line: str) -> str:
    """`llama_model_load: error loading model: ...` without the C function's name and the words before the reason."""
    return re.sub(r"^\w+: (error loading model( architecture)?: )*", "", line)
