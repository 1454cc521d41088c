"""`fox run`: once, from a pipe, and as a chat in a terminal; a real echo child speaks."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from tests.cli.processes import PATIENCE_S, Fox, all_end, ask_fox, fox

pytestmark = pytest.mark.usefixtures("no_server")

RUN = ("run", "--engine", "echo")
MANY = " ".join(f"w{i}" for i in range(1500))  # more than a minute of echo-slow


def test_a_prompt_is_answered_once() -> None:
    answer = ask_fox(*RUN, "echo", "hello", "big", "world")
    assert (answer.stdout, answer.stderr, answer.returncode) == ("hello big world\n", "", 0)


def test_a_pipe_is_a_prompt() -> None:
    assert ask_fox(*RUN, "echo", text="from a pipe\n").stdout == "from a pipe\n"


def test_a_pipe_follows_the_prompt_after_an_empty_line() -> None:
    assert ask_fox(*RUN, "echo", "Say this:", text="from a pipe\n").stdout == "Say this:\n\nfrom a pipe\n"


def test_a_quoted_sentence_needs_no_model() -> None:
    assert ask_fox(*RUN, "no model has such a name").stdout == "no model has such a name\n"


def test_an_answer_is_cut_at_max_new_tokens() -> None:
    assert ask_fox(*RUN, "--max-new-tokens", "2", "echo", "a b c d").stdout == "a b\n"


def test_verbose_tells_on_stderr_what_the_answer_took() -> None:
    answer = ask_fox(*RUN, "--verbose", "echo", "a b c")
    assert answer.stdout == "a b c\n"
    assert re.search(
        r"^prompt \d+ tokens, answer [34] tokens, [\d.]+ tokens/s, first token [\d.]+ s, load [\d.]+ s$",
        answer.stderr,
        re.MULTILINE,
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nope", "hi"], "error: model 'nope' not found"),
        (
            ["echo-fails", "hi"],
            "error: model 'echo-fails' failed to load: this echo model always fails to load",
        ),
        (["echo"], "error: no prompt"),
        (["echo", "a @fail b"], "error: the prompt asked for a failing step"),
        (["echo", "a @die b"], "error: the engine of 'echo' was killed by SIGKILL"),
        (["--max-context-len", "8", "echo", "1 2 3 4 5 6 7 8 9"], "error: the prompt"),
        (["--model-path", "/nowhere.gguf", "hi"], "error: `/nowhere.gguf` does not exist"),
    ],
)
def test_a_failure_is_one_line_on_stderr(words: list[str], line: str) -> None:
    answer = ask_fox(*RUN, *words)
    assert answer.returncode == 1
    assert answer.stderr.startswith(line)
    assert len(answer.stderr.splitlines()) <= 2


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "fox", *RUN, "echo-slow", MANY],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.read(2) == b"w0"
        process.stdout.close()
        process.wait(PATIENCE_S)
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("signum", "code"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGKILL", -9)])
def test_no_child_outlives_it_at(signum: str, code: int) -> None:
    with fox(*RUN, "echo-slow", MANY, terminal=True) as run:
        run.expect("w0", "stdout")
        children = run.children()
        run.signal(signal.Signals[signum])
        assert run.exit_code() == code
        assert children
        assert all_end(children)
        assert run.stderr in ("", "\n")


def start_chat(run: Fox) -> None:
    run.expect("`/\\?` lists the commands")
    run.expect("> ")


def test_a_chat_answers_line_by_line_and_ends_at_bye() -> None:
    with fox(*RUN, "echo", terminal=True) as chat:
        start_chat(chat)
        chat.type("good day\n")
        chat.expect("good day\n", "stdout")
        chat.type("and again\n")
        chat.expect("and again\n", "stdout")
        chat.type("/bye\n")
        assert chat.exit_code() == 0
        assert chat.stdout == "good day\nand again\n"


@pytest.mark.parametrize("leave", ["/bye\n", "/exit\n", "\x04"])
def test_a_chat_is_left_with(leave: str) -> None:
    with fox(*RUN, "echo", terminal=True) as chat:
        start_chat(chat)
        children = chat.children()
        chat.type(leave)
        assert chat.exit_code() == 0
        assert all_end(children)
        assert chat.stdout == ""


def test_ctrl_c_stops_the_answer_and_not_the_chat() -> None:
    with fox(*RUN, "echo-slow", terminal=True) as chat:
        start_chat(chat)
        children = chat.children()
        chat.type(f"{MANY[:1000]}\n")
        chat.expect("w0 w1", "stdout")
        chat.type("\x03")
        chat.expect("stopped\n")
        chat.type("still there\n")
        chat.expect("still there\n", "stdout")
        assert chat.children() == children
        assert MANY[:1000] not in chat.stdout


def test_ctrl_c_at_an_empty_prompt_gives_a_hint() -> None:
    with fox(*RUN, "echo", terminal=True) as chat:
        start_chat(chat)
        greeted = len(chat.stderr)
        chat.type("\x03")
        chat.expect("Ctrl-D leaves", after=greeted)
        chat.type("hello\n")
        chat.expect("hello\n", "stdout")


def test_an_engine_that_dies_is_told_and_loaded_anew() -> None:
    with fox(*RUN, "echo", terminal=True) as chat:
        start_chat(chat)
        chat.type("a @die b\n")
        chat.expect("error: the engine of 'echo' was killed by SIGKILL")
        chat.type("back again\n")
        chat.expect("back again\n", "stdout")


def test_a_chat_helps_and_refuses_what_it_does_not_know() -> None:
    with fox(*RUN, "echo", terminal=True) as chat:
        start_chat(chat)
        chat.type("/?\n")
        chat.expect("/clear +forget the conversation")
        chat.type("/nope\n")
        chat.expect("error: no such command `/nope`\nhint: `/\\?` lists the commands")
        chat.type("/clear\n/etc/hosts is a file\n")
        chat.expect("/etc/hosts is a file\n", "stdout")


def test_a_model_that_fails_to_load_opens_no_chat() -> None:
    with fox(*RUN, "echo-fails", terminal=True) as chat:
        assert chat.exit_code() == 1
        assert chat.stderr.startswith("error: model 'echo-fails' failed to load")


def test_a_chat_works_where_stdout_is_the_terminal_too() -> None:
    keyboard, screen = pty.openpty()
    env = os.environ | {"TERM": "dumb", "PROMPT_TOOLKIT_NO_CPR": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "fox", *RUN, "echo"], stdin=screen, stdout=screen, stderr=screen, env=env
    ) as process:
        os.close(screen)
        os.write(keyboard, b"hello there\n/bye\n")
        shown = b""
        while chunk := _read(keyboard):
            shown += chunk
        assert process.wait(PATIENCE_S) == 0
    os.close(keyboard)
    assert shown.count(b"hello there") >= 2


def _read(terminal: int) -> bytes:
    """What a terminal shows next; nothing once its last process has gone."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
