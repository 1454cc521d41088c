"""A llama.cpp whose AMX code a compiler broke is found out before it kills an engine."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fox.engine.llama import amx
from tests.model.desk import Desk

pytestmark = pytest.mark.model


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    cached = amx.is_broken
    cached.cache_clear()
    yield
    cached.cache_clear()


def processor(monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: f"flags : {flags}")


def test_the_build_under_test_multiplies() -> None:
    amx.multiply()


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        ("os.kill(os.getpid(), signal.SIGILL)", True),
        ("sys.exit(1)", False),
        ("", False),
        ("time.sleep(60)", True),
    ],
)
def test_a_product_that_kills_or_hangs_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, broken: bool
) -> None:
    trial = tmp_path / "python"
    run = shlex.join([sys.executable, "-c", f"import os, signal, sys, time; {code}"])
    trial.write_text(f"#!/bin/sh\nexec {run}\n")
    trial.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(trial))
    monkeypatch.setattr(amx, "PATIENCE_S", 1.0)
    processor(monkeypatch, "avx512f amx_int8")
    assert amx.is_broken() is broken


def test_a_processor_without_it_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    processor(monkeypatch, "avx512f")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("nothing to try"))
    assert not amx.is_broken()


def test_a_broken_build_answers_without_it_and_says_so(
    monkeypatch: pytest.MonkeyPatch, starter_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(amx, "is_broken", lambda: True)
    assert Desk.open(starter_path).say("The capital of France is", 4).usage.completion_tokens == 4
    assert "AMX code is broken" in capfd.readouterr().err
