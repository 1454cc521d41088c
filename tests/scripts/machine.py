"""A machine for the scripts: a copy of the checkout, and a python that builds and fetches nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = """sh bash cat chmod cksum cp dirname getconf mkdir mv nproc paste readlink rm sed sort tr"""

# Says `held` and waits for a line from a pipe. Not by the shell's own means: dash can lose a Ctrl-C that arrives while
# it starts a program.
HOLDING = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("held", flush=True)
open(sys.argv[1]).readline()
"""
# Answers `-m venv`, `-m pip` and `-m pytest` itself and hands the rest to the real interpreter.
# HOLD=venv or HOLD=pip makes it wait there for the pipe HELD.
PYTHON = f"""#!/bin/sh
hold() {{ [ "${{HOLD-}}" != "$1" ] || '{sys.executable}' -c '{HOLDING}' "$HELD" || exit 1; }}
case "$*" in
"-m venv "*)
    echo venv >>"$LOG"
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    printf '#!/bin/sh\\necho "fox $*"\\n' >"$3/bin/fox"
    chmod +x "$3/bin/fox"
    hold venv ;;
"-m pip --version") ;;
"-m pip install "*)
    shift 4
    echo "pip $*" >>"$LOG"
    hold pip
    mkdir -p .venv/lib/python3/site-packages/llama_cpp_python-$PIN.dist-info
    exit "${{PIP_EXIT-0}}" ;;
"-m pytest"*) shift 2; echo pytest "$@" ;;
*) exec '{sys.executable}' "$@" ;;
esac
"""
FAILS = "#!/bin/sh\nexit 1\n"
COMPILER = "#!/bin/sh\n"
NO_PIP = PYTHON.replace('--version") ;;', '--version") exit 1 ;;')
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

    @contextmanager
    def start(self, *command: str | Path, cwd: Path | None = None, **env: str) -> Iterator[Running]:
        """A script on its way. It has ended by the end of the block: by itself within a minute, or killed."""
        own = {"PATH": self.programs, "HOME": self.home, "LOG": self.log, "PIN": pinned_llama()}
        process = subprocess.Popen(
            command,
            cwd=cwd or self.checkout,
            env={name: str(value) for name, value in own.items()} | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                yield process
                process.wait(60)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def run(self, *command: str | Path, cwd: Path | None = None, **env: str) -> Ended:
        with self.start(*command, cwd=cwd, **env) as process:
            out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def install(self, extras: str = "", **env: str) -> Ended:
        return self.run("scripts/install", extras, **env)

    def done(self) -> list[str]:
        """What was done since this was last asked: venvs made, and what pip was told."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines
