"""Logs on stderr: a line of text for people, or a JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime


class TextFormatter(logging.Formatter):
    """`2026-12-01 16:04:05 warning fox.engine: message`, local time."""

    default_msec_format = None

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(lower)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.lower = record.levelname.lower()
        return super().format(record)


class JsonFormatter(logging.Formatter):
    """`{"time": ISO 8601 in UTC, "level", "logger", "message"}`, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def set_up(level: str, *, as_json: bool) -> None:
    """Send every logger's records from `level` up to stderr, less what uvicorn says about its own life."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.WARNING)


def silence() -> None:
    """No logs at all: the command itself tells what went wrong."""
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)


def announce(message: str, *, as_json: bool) -> None:
    """Tell something on stderr whatever the log level is."""
    record = logging.LogRecord("fox", logging.INFO, "", 0, message, None, None)
    print(JsonFormatter().format(record) if as_json else message, file=sys.stderr, flush=True)  # noqa: T201
