"""The shell scripts, run in a copy of the checkout with a stubbed python: nothing is built or fetched."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = """sh bash cat chmod cksum cp dirname getconf mkdir mv nproc paste readlink rm sed sort tr"""

# Answers `-m venv`, `-m pip` and `-m pytest` itself and hands the rest to the real interpreter.
# HELD names a pipe that its pip waits for before it installs anything.
PYTHON = f"""#!/bin/sh
case "$*" in
"-m venv "*)
    echo venv >>"$LOG"
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    printf '#!/bin/sh\\necho "fox $*"\\n' >"$3/bin/fox"
    chmod +x "$3/bin/fox" ;;
"-m pip --version") ;;
"-m pip install "*)
    shift 4
    echo "pip $*" >>"$LOG"
    [ -z "${{HELD-}}" ] || {{ echo held; cat "$HELD"; }}
    mkdir -p .venv/lib/python3/site-packages/llama_cpp_python-$PIN.dist-info
    exit "${{PIP_EXIT-0}}" ;;
"-m pytest"*) shift 2; echo pytest "$@" ;;
*) exec '{sys.executable}' "$@" ;;
esac
"""
FAILS = "#!/bin/sh\nexit 1\n"
COMPILER = "#!/bin/sh\n"
NO_ENSUREPIP = PYTHON.replace("*) exec", "*ensurepip) exit 1 ;;\n*) exec")

Running = subprocess.Popen[str]
Ended = subprocess.CompletedProcess[str]


def pinned_llama() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pins = [need for need in project["dependencies"] if need.startswith("llama-cpp-python")]
    return str(pins[0]).removeprefix("llama-cpp-python==")


class Machine:
    """A checkout in a folder with a space in its name, on a machine with exactly the programs put there."""

    def __init__(self, tmp_path: Path) -> None:
        self.checkout = tmp_path / "a checkout"
        self.programs = tmp_path / "programs"
        self.home = tmp_path / "home"
        self.log = tmp_path / "log"
        for folder in (self.checkout, self.programs, self.home):
            folder.mkdir()
        for name in ("scripts", ".ci"):
            shutil.copytree(ROOT / name, self.checkout / name)
        shutil.copy(ROOT / "pyproject.toml", self.checkout)
        for tool in TOOLS.split():
            if found := shutil.which(tool):
                (self.programs / tool).symlink_to(found)

    def put(self, name: str, text: str, folder: Path | None = None) -> None:
        program = (folder or self.programs) / name
        program.write_text(text, "utf-8")
        program.chmod(0o755)

    def start(self, *command: str | Path, cwd: Path | None = None, **env: str) -> Running:
        own = {"PATH": self.programs, "HOME": self.home, "LOG": self.log, "PIN": pinned_llama()}
        return subprocess.Popen(
            command,
            cwd=cwd or self.checkout,
            env={name: str(value) for name, value in own.items()} | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *command: str | Path, cwd: Path | None = None, **env: str) -> Ended:
        with self.start(*command, cwd=cwd, **env) as process:
            out, err = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def install(self, extras: str = "", **env: str) -> Ended:
        return self.run("scripts/install", extras, **env)

    def done(self) -> list[str]:
        """What was done since this was last asked: venvs made, and what pip was told."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def machine(bare: Machine) -> Machine:
    bare.put("python3.12", PYTHON)
    bare.put("c++", COMPILER)
    return bare


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


def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def wait_for(word: str, process: Running) -> None:
    assert process.stderr is not None
    assert any(word in line for line in process.stderr), f"the script ended without saying `{word}`"


def test_an_interrupted_install_is_begun_anew(machine: Machine, tmp_path: Path) -> None:
    with machine.start("scripts/install", "starter", HELD=str(pipe(tmp_path))) as process:
        wait_for("held", process)
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 130
    machine.done()
    assert machine.install("starter").returncode == 0
    assert machine.done() == ["venv", "pip -e .[starter]"]


def test_a_second_install_waits_for_the_first_and_finds_it_done(machine: Machine, tmp_path: Path) -> None:
    go = pipe(tmp_path)
    with machine.start("scripts/install", "starter", HELD=str(go)) as first:
        wait_for("held", first)
        with machine.start("scripts/install", "starter") as second:
            wait_for("waiting", second)
            go.write_text("go")
    assert (first.returncode, second.returncode) == (0, 0)
    assert machine.done() == ["venv", "pip -e .[starter]"]


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
