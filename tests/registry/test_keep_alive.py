"""The forms in which clients say how long a model stays."""

from __future__ import annotations

import math

import pytest

from fox.errors import InvalidRequest
from fox.registry.keep_alive import seconds


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, None),
        ("", None),
        (" ", None),
        (0, 0.0),
        ("0", 0.0),
        ("0s", 0.0),
        (300, 300.0),
        (0.5, 0.5),
        ("300", 300.0),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("500ms", 0.5),
        ("5m0s", 300.0),
        (-1, math.inf),
        ("-1", math.inf),
        ("-1m", math.inf),
        ("24h", 86400.0),
        (1e12, math.inf),
    ],
)
def test_a_time_is_read(said: object, meant: float | None) -> None:
    assert seconds(said) == meant


@pytest.mark.parametrize("said", ["soon", True, [], {}, "5 minutes", "5m3", "m", "--1m", math.nan, "1e3m"])
def test_nonsense_is_refused(said: object) -> None:
    with pytest.raises(InvalidRequest) as told:
        seconds(said)
    assert told.value.param == "keep_alive"
