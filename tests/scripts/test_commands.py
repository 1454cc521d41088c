"""scripts/serve, test and lint: what they refuse, what they run, what they pass on."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.scripts.machine import COMPILER, FAILS, NO_ENSUREPIP, PYTHON, ROOT, Machine


@pytest.mark.parametrize(
    ("programs", "missing"),
    [
        ({}, "no python 3.11 or newer"),
        ({"python3": FAILS}, "no python 3.11 or newer"),
        ({"python3": PYTHON}, "no C++ compiler"),
        ({"python3": PYTHON, "c++": FAILS}, "no C++ compiler"),
        ({"python3": NO_ENSUREPIP, "c++": COMPILER}, "lacks `ensurepip`"),
    ],
)
@pytest.mark.parametrize("script", ["scripts/install", "scripts/serve", "scripts/test", "scripts/lint"])
def test_what_is_missing_is_said_in_one_line_and_a_hint(
    bare: Machine, script: str, programs: dict[str, str], missing: str
) -> None:
    for name, text in programs.items():
        bare.put(name, text)
    result = bare.run(script)
    error, hint = result.stderr.splitlines()
    assert (result.returncode, result.stdout) == (1, "")
    assert error.startswith("error: ")
    assert missing in error
    assert hint.startswith("hint: ")


def test_serve_takes_flags_from_any_folder_and_through_a_symlink(machine: Machine, tmp_path: Path) -> None:
    link = tmp_path / "serve-fox"
    link.symlink_to(machine.checkout / "scripts/serve")
    result = machine.run(link, "--port", "auto", "--system-prompt", "two words", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "fox serve --port auto --system-prompt two words\n")


def linters(machine: Machine, text: str) -> None:
    for tool in ("ruff", "mypy", "lint-imports"):
        machine.put(tool, text, machine.checkout / ".venv/bin")


@pytest.mark.parametrize(
    ("command", "given"), [(["scripts/test", "-m", "not slow"], " -m not slow"), (["bash", ".ci/run"], "")]
)
def test_lint_runs_before_pytest_which_gets_the_rest(
    machine: Machine, command: list[str], given: str
) -> None:
    machine.install("starter,test")
    linters(machine, '#!/bin/sh\necho "${0##*/}" "$@"\n')
    result = machine.run(*command)
    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        "ruff check .",
        "ruff format --check .",
        "mypy",
        "lint-imports",
        f"pytest{given}",
    ]


def test_a_failing_lint_stops_the_tests(machine: Machine) -> None:
    machine.install("starter,test")
    linters(machine, "#!/bin/sh\nexit 3\n")
    result = machine.run("scripts/test")
    assert (result.returncode, result.stdout) == (3, "")


def test_every_script_may_be_executed() -> None:
    scripts = [*(ROOT / "scripts").iterdir(), ROOT / ".ci/run"]
    assert [path.name for path in scripts if path.is_file() and not path.stat().st_mode & stat.S_IXUSR] == []
