"""Reads what a person types in a chat: with prompt-toolkit where it is installed, else with readline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

MARK = "> "

ReadLine = Callable[[], str]


def line_reader() -> ReadLine:
    """A function that asks for one line and remembers it for the arrow keys.

    It raises EOFError at Ctrl-D and KeyboardInterrupt at Ctrl-C.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        with suppress(ImportError):
            return _rich_reader()
        with suppress(ImportError):
            import readline  # noqa: F401 - gives `input` its line editing and history
    return _plain_read


def _rich_reader() -> ReadLine:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory

    session: PromptSession[str] = PromptSession(history=InMemoryHistory())
    return lambda: session.prompt(MARK)


def _plain_read() -> str:
    if sys.stdout.isatty():
        return input(MARK)
    print(MARK, end="", file=sys.stderr, flush=True)  # noqa: T201 - stdout is for the answers
    return input()
