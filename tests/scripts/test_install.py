"""scripts/install: what it does, and what it leaves alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripts.machine import FAILS, NO_PIP, PYTHON, Machine, Running, pinned_llama


def test_an_unknown_extra_is_refused_and_the_known_ones_are_named(machine: Machine) -> None:
    result = machine.install("starter,nonsense")
    assert result.returncode == 1
    assert "`nonsense,starter`" in result.stderr
    assert "starter,test" in result.stderr
    assert machine.done() == []


def test_a_named_python_is_taken_and_no_other(machine: Machine) -> None:
    machine.put("elsewhere", FAILS)
    assert "`elsewhere`" in machine.install(PYTHON="elsewhere").stderr
    assert machine.done() == []


def test_a_second_install_does_nothing(machine: Machine) -> None:
    assert machine.install("starter").returncode == 0
    assert machine.done() == ["venv", "pip -e .[starter]"]
    again = machine.install("starter")
    assert (again.returncode, again.stderr, machine.done()) == (0, "", [])


def test_extras_add_up(machine: Machine) -> None:
    for extras in ("test,starter", "starter", "", "chat"):
        assert machine.install(extras).returncode == 0
    assert machine.done() == ["venv", "pip -e .[starter,test]", "pip -e .[chat,starter,test]"]


def test_a_changed_pyproject_is_installed_with_the_extras_there_were(machine: Machine) -> None:
    machine.install("starter,test")
    machine.done()
    with (machine.checkout / "pyproject.toml").open("a") as project:
        project.write("\n# more\n")
    machine.install("starter")
    assert machine.done() == ["pip -e .[starter,test]"]


def test_a_moved_checkout_gets_a_new_venv_with_the_extras_there_were(machine: Machine) -> None:
    machine.install("starter,test")
    machine.done()
    machine.checkout = machine.checkout.rename(machine.checkout.with_name("moved"))
    machine.install("starter")
    assert machine.done() == ["venv", "pip -e .[starter,test]"]


def test_a_venv_that_lost_its_python_is_made_anew(machine: Machine) -> None:
    machine.install("starter")
    machine.done()
    python = machine.checkout / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/nowhere/python")
    machine.install("starter")
    assert machine.done() == ["venv", "pip -e .[starter]"]


def test_a_venv_made_by_hand_is_adopted(machine: Machine) -> None:
    machine.run("python3.12", "-m", "venv", machine.checkout / ".venv")
    machine.done()
    machine.install("starter")
    machine.install("starter")
    assert machine.done() == ["pip -e .[starter]"]


def test_a_venv_without_pip_is_made_anew(machine: Machine) -> None:
    machine.put("python3.12", NO_PIP)
    machine.run("python3.12", "-m", "venv", machine.checkout / ".venv")
    machine.put("python3.12", PYTHON)
    machine.done()
    machine.install("starter")
    assert machine.done() == ["venv", "pip -e .[starter]"]


def test_a_failed_install_keeps_what_stood(machine: Machine) -> None:
    machine.install("starter")
    failed = machine.install("test", PIP_EXIT="1")
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith("hint: ")
    machine.done()
    machine.install("starter")
    assert machine.done() == []
    machine.install("test")
    assert machine.done() == ["pip -e .[starter,test]"]


def test_no_compiler_is_needed_once_llama_is_built(machine: Machine) -> None:
    machine.install("starter")
    (machine.programs / "c++").unlink()
    assert machine.install("test").returncode == 0


def test_other_build_flags_build_llama_anew_past_the_wheel_that_pip_kept(machine: Machine) -> None:
    machine.install("starter")
    machine.done()
    for _ in range(2):
        machine.install("starter", CMAKE_ARGS="-DGGML_CUDA=on")
    machine.install("starter")
    build, rest = machine.done()
    assert build.startswith("pip --no-cache-dir --force-reinstall")
    assert build.endswith(f"llama-cpp-python=={pinned_llama()}")
    assert rest == "pip -e .[starter]"


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A pipe to hold pip with: its name, and a file descriptor where a line lets go."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    let_go = os.open(pipe, os.O_RDWR)
    yield str(pipe), let_go
    os.close(let_go)


def wait_for(word: str, process: Running) -> None:
    assert process.stderr is not None
    assert any(word in line for line in process.stderr), f"the script ended without saying `{word}`"


@pytest.mark.parametrize(
    ("before", "during"), [([], "venv"), ([], "pip"), (["starter"], "pip"), (["starter", "test"], "pip")]
)
def test_an_interrupted_install_is_begun_anew(
    machine: Machine, held: tuple[str, int], before: list[str], during: str
) -> None:
    for extras in before:
        machine.install(extras)
    with machine.start("scripts/install", "chat", HOLD=during, HELD=held[0]) as process:
        wait_for("held", process)
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 130
    machine.done()
    assert machine.install("starter").returncode == 0
    assert machine.done() == ["venv", "pip -e .[starter]"]


def test_a_second_install_waits_for_the_first_and_finds_it_done(
    machine: Machine, held: tuple[str, int]
) -> None:
    pipe, let_go = held
    with machine.start("scripts/install", "starter", HOLD="pip", HELD=pipe) as first:
        wait_for("held", first)
        with machine.start("scripts/install", "starter") as second:
            wait_for("waiting", second)
            os.write(let_go, b"\n")
    assert (first.returncode, second.returncode) == (0, 0)
    assert machine.done() == ["venv", "pip -e .[starter]"]
