"""Log lines."""

from __future__ import annotations

import json
import logging
import re
import sys

import pytest

from fox.cli.logs import JsonFormatter, TextFormatter, announce


def record(message: str, *args: object, failed: bool = False) -> logging.LogRecord:
    try:
        raise ValueError("why")
    except ValueError:
        info = sys.exc_info() if failed else None
    return logging.LogRecord("fox.engine", logging.WARNING, "", 0, message, args, info)


def test_a_text_line_has_time_level_and_logger() -> None:
    line = TextFormatter().format(record("slow: %d s", 3))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d warning fox.engine: slow: 3 s", line)


def test_a_json_line_is_one_object_on_one_line() -> None:
    line = JsonFormatter().format(record("two\nlines, and a %s", "grüß", failed=True))
    fields = json.loads(line)
    assert "\n" not in line
    assert fields["message"] == "two\nlines, and a grüß"
    assert (fields["level"], fields["logger"]) == ("warning", "fox.engine")
    assert fields["exception"].endswith("ValueError: why")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", fields["time"])


def test_an_announcement_is_plain_text_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    announce("here", as_json=False)
    assert capsys.readouterr().err == "here\n"


def test_an_announcement_is_json_where_the_logs_are(capsys: pytest.CaptureFixture[str]) -> None:
    announce("here", as_json=True)
    assert json.loads(capsys.readouterr().err)["message"] == "here"
