"""Sizes, times and durations, to the letter as Ollama prints them."""

from __future__ import annotations

import time

import pytest

from fox.cli import table
from fox.cli.took import Took, duration

HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "Less than a second"),
        (1, "1 second"),
        (59.9, "59 seconds"),
        (60, "About a minute"),
        (119, "About a minute"),
        (120, "2 minutes"),
        (59 * 60, "59 minutes"),
        (HOUR, "About an hour"),
        (1.6 * HOUR, "2 hours"),
        (47 * HOUR, "47 hours"),
        (2 * DAY, "2 days"),
        (13 * DAY, "13 days"),
        (14 * DAY, "2 weeks"),
        (59 * DAY, "8 weeks"),
        (60 * DAY, "2 months"),
        (700 * DAY, "23 months"),
        (730 * DAY, "2 years"),
    ],
)
def test_a_length_of_time(seconds: float, text: str) -> None:
    assert table.length(seconds) == text


@pytest.mark.parametrize(
    ("ahead_s", "text"),
    [(-2 * DAY - 60, "2 days ago"), (4 * 60 + 30, "4 minutes from now"), (25 * 365 * DAY, "Forever")],
)
def test_a_moment(ahead_s: float, text: str) -> None:
    assert table.when(time.time() + ahead_s) == text


@pytest.mark.parametrize("stamp", [None, "", 5, "0001-01-01T00:00:00Z"])
def test_no_moment_is_never(stamp: object) -> None:
    assert table.when(table.moment(stamp)) == "Never"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (134_515_008, "134.52M"),
        (7_615_616_512, "7.6B"),
        (8e9, "8B"),
        (415e6, "415M"),
        (12_400, "12K"),
        (7, "7"),
    ],
)
def test_a_count_of_parameters(count: float, text: str) -> None:
    assert table.number(count) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0ns"),
        (999, "999ns"),
        (1_500, "1.5µs"),
        (20_300_000, "20.3ms"),
        (2_500_000_000, "2.5s"),
        (1_234_567_891, "1.234567891s"),
        (60_500_000_000, "1m0.5s"),
        (3_600_000_000_000, "1h0m0s"),
    ],
)
def test_a_duration_is_printed_as_go_does(ns: int, text: str) -> None:
    assert duration(ns) == text


def test_what_the_server_does_not_tell_is_left_out() -> None:
    assert str(Took({"eval_count": 3, "total_duration": None})) == "eval count:           3 token(s)"


def test_columns_are_four_blanks_apart_and_rows_may_end_early() -> None:
    assert table.lines([("a", "bb"), ("ccc", "d"), ("e",)]) == ["a      bb", "ccc    d", "e"]
    assert table.lines([]) == []
