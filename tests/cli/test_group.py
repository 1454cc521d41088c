"""The group: what costs nothing until it is asked for, and how wrong words are refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fox.cli import COMMANDS
from tests.cli.processes import ask_fox


def test_help_names_every_command_on_stdout() -> None:
    answer = ask_fox("--help")
    assert answer.returncode == 0
    assert answer.stderr == ""
    for name, (_, text) in COMMANDS.items():
        assert name in answer.stdout
        assert text in answer.stdout


def test_help_imports_no_command_and_no_heavy_library() -> None:
    program = (
        "import sys; sys.argv = ['fox', '--help']\n"
        "from fox.cli import run_group\n"
        "run_group()\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(done.stderr.split())
    heavy = {
        "asyncio",
        "rich",
        "uvicorn",
        "starlette",
        "pydantic",
        "msgspec",
        "jinja2",
        "llama_cpp",
        "fox.config",
    }
    assert not modules & (heavy | {module for module, _ in COMMANDS.values()})


def test_serve_help_imports_no_server() -> None:
    program = (
        "import sys; sys.argv = ['fox', 'serve', '--help']\n"
        "from fox.cli import run_group\n"
        "run_group()\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(done.stderr.split()) & {"uvicorn", "starlette", "pydantic", "huggingface_hub", "llama_cpp"}


def test_no_word_at_all_gets_the_help() -> None:
    answer = ask_fox()
    assert answer.returncode == 0
    assert answer.stdout == ask_fox("--help").stdout


def test_the_version_is_one_line() -> None:
    from fox import __version__

    assert ask_fox("--version").stdout == f"fox {__version__}\n"


@pytest.mark.parametrize(
    ("args", "line", "hint"),
    [
        (["sevre"], "error: no such command `sevre`", "hint: did you mean `serve`?"),
        (["xyzzy"], "error: no such command `xyzzy`", "hint: `fox --help` lists the commands"),
        (["--verson"], "error: no such option `--verson`", "hint: did you mean `--version`?"),
        (["serve", "--prt", "1"], "error: no such option `--prt`", "hint: did you mean `--port`?"),
        (
            ["serve", "--port"],
            "error: option `--port` requires an argument",
            "hint: `--help` lists what there is",
        ),
        (["serve", "--port", "x"], "error: `--port` cannot be `x`", "hint: give 1 to 65535, or `auto`"),
        (
            ["serve", "--threads", "0"],
            "error: `--threads` cannot be `0`",
            "hint: give a whole number, 1 or more",
        ),
        (
            ["run", "--threads", "-1"],
            "error: `--threads` cannot be `-1`",
            "hint: give a whole number, 1 or more",
        ),
        (
            ["run", "--top-p", "0"],
            "error: invalid value for `--top-p`: 0.0 is not in the range 0<x<=1",
            "hint: `--help` lists what there is",
        ),
        (
            ["ps", "--url", "ftp://x"],
            "error: `ftp://x` is no http address",
            "hint: a server's address reads `http://127.0.0.1:8080`",
        ),
    ],
)
def test_wrong_words_get_one_line_and_a_hint(args: list[str], line: str, hint: str) -> None:
    answer = ask_fox(*args)
    assert answer.stderr == f"{line}\n{hint}\n"
    assert answer.stdout == ""
    assert answer.returncode == (1 if args[0] == "ps" else 2)
