"""A conversation in this terminal: answers on stdout as they come, the rest on stderr."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from fox.cli.chat_prompt import MORE_MARK, LineReader
from fox.cli.refusal import Refusal, complain, hint_for
from fox.errors import FoxError

if TYPE_CHECKING:
    from fox.cli.conversation import Talk

HELP = """\
/clear        forget the conversation
/bye, /exit   leave, as Ctrl-D does
/?            this list
\"\"\"           begin and end a message of several lines
Ctrl-C        stop the answer; what came of it stays in the conversation"""

GREETING = "`/?` lists the commands, `/bye` or Ctrl-D leaves"
QUOTES = '"""'
OPENS = re.compile(rf"(/set\s+system\s+|){QUOTES}", re.DOTALL)


class Terminal:
    """Asks on behalf of one person."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._at_line_start = True
        self._reader = LineReader()

    def answer(self, text: str) -> None:
        """Ask once. Raises FoxError, Refusal; KeyboardInterrupt at Ctrl-C, with the answer stopped."""
        try:
            took = self._talk.ask(text, self._show)
        finally:
            if not self._at_line_start:
                self._show("\n")
        if self._talk.verbose:
            click.echo(str(took), err=True)

    def chat(self) -> None:
        """Ask until the person leaves. Raises FoxError, Refusal where the model cannot be loaded at all."""
        self._talk.load()
        click.echo(GREETING, err=True)
        while True:
            try:
                line, quoted = self._message()
            except KeyboardInterrupt:
                click.echo(f"\n{GREETING}", err=True)
            except EOFError:
                click.echo(err=True)
                return
            else:
                if line in ("/bye", "/exit") and not quoted:
                    return
                self._obey(line, quoted=quoted)

    def _message(self) -> tuple[str, bool]:
        """A line, or the lines between two `\"\"\"`; whether it is nothing but those."""
        line = self._reader().strip()
        found = OPENS.match(line)
        if not found:
            return line, False
        text = line[found.end() :]
        while not text.endswith(QUOTES):
            text += "\n" + self._reader(MORE_MARK)
        return found[1] + text.removesuffix(QUOTES), not found[1]

    def _obey(self, line: str, *, quoted: bool) -> None:
        try:
            if quoted or not line.startswith("/"):
                self._say(line)
            elif not self._command(line):
                if re.fullmatch(r"/[\w?]*", line):
                    complain(f"no such command `{line}`", "`/?` lists the commands")
                else:
                    self._say(line)
        except (FoxError, Refusal) as error:
            complain(error.message if isinstance(error, Refusal) else str(error), hint_for(error))

    def _command(self, line: str) -> bool:
        words = line.split()
        if line == "/clear":
            self._talk.clear()
        elif words[0] in ("/?", "/help"):
            click.echo("\n".join(part for part in (self._talk.help, HELP) if part), err=True)
        elif words[:2] in (["/set", "history"], ["/set", "nohistory"]) and self._talk.help:
            self._reader.remembers = words[1] == "history"
        else:
            rest = line.split(maxsplit=2)[2] if len(words) > 2 else ""
            return self._talk.command(words, rest)
        return True

    def _say(self, text: str) -> None:
        if text:
            try:
                self.answer(text)
            except KeyboardInterrupt:
                click.echo("stopped", err=True)

    def _show(self, piece: str) -> None:
        sys.stdout.write(piece)
        sys.stdout.flush()
        self._at_line_start = piece.endswith("\n")
