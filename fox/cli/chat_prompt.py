"""Reads what a person types in a chat: with prompt-toolkit where it is installed, else with readline."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

MARK, MORE_MARK = "> ", "... "

Ask = Callable[[str], str]


class LineReader:
    """Asks for one line, and remembers it for the arrow keys while `remembers` is set.

    Calling it raises EOFError at Ctrl-D and KeyboardInterrupt at Ctrl-C.
    """

    def __init__(self) -> None:
        self.remembers = True
        self._ask = self._best()

    def __call__(self, mark: str = MARK) -> str:
        return self._ask(mark)

    def _best(self) -> Ask:
        if sys.stdin.isatty() and sys.stdout.isatty():
            with suppress(ImportError):
                return self._rich()
            with suppress(ImportError):
                return self._readline()
        return _plain

    def _rich(self) -> Ask:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory

        reader = self

        class History(InMemoryHistory):  # type: ignore[misc]
            def append_string(self, string: str) -> None:
                if reader.remembers:
                    super().append_string(string)

        session: PromptSession[str] = PromptSession(history=History())
        return lambda mark: str(session.prompt(mark))

    def _readline(self) -> Ask:
        import readline

        def ask(mark: str) -> str:
            readline.set_auto_history(self.remembers)
            return input(mark)

        return ask


def _plain(mark: str) -> str:
    if sys.stdout.isatty():
        return input(mark)
    print(mark, end="", file=sys.stderr, flush=True)  # noqa: T201 - stdout is for the answers
    return input()
