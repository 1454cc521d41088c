"""A conversation in this terminal: answers on stdout as they come, the rest on stderr."""

from __future__ import annotations

import asyncio
import re
import sys

import click

from fox.cli.chat_prompt import line_reader
from fox.cli.conversation import Conversation
from fox.cli.refusal import complain, hint_for
from fox.errors import FoxError

HELP = """\
/clear        forget the conversation
/bye, /exit   leave, as Ctrl-D does
/?            this list
Ctrl-C        stop the answer; what came of it stays in the conversation"""

GREETING = "`/?` lists the commands, `/bye` or Ctrl-D leaves"


class Terminal:
    """Asks on behalf of one person. Owns no engine; `runner` runs the loop only while an answer comes."""

    def __init__(self, runner: asyncio.Runner, conversation: Conversation, *, verbose: bool) -> None:
        self._runner = runner
        self._conversation = conversation
        self._verbose = verbose
        self._at_line_start = True

    def answer(self, text: str) -> None:
        """Ask once. Raises FoxError; KeyboardInterrupt at Ctrl-C, with the answer stopped."""
        try:
            speed = self._runner.run(self._conversation.ask(text, self._show))
        finally:
            if not self._at_line_start:
                self._show("\n")
        if self._verbose:
            click.echo(str(speed), err=True)

    def chat(self) -> None:
        """Ask until the person leaves. Raises FoxError where the model cannot be loaded at all."""
        self._runner.run(self._conversation.load())
        click.echo(GREETING, err=True)
        read_line = line_reader()
        while True:
            try:
                line = read_line().strip()
            except KeyboardInterrupt:
                click.echo(f"\n{GREETING}", err=True)
            except EOFError:
                click.echo(err=True)
                return
            else:
                if line in ("/bye", "/exit"):
                    return
                self._obey(line)

    def _obey(self, line: str) -> None:
        if line == "/clear":
            self._conversation.clear()
        elif line == "/?":
            click.echo(HELP, err=True)
        elif re.fullmatch(r"/[\w?]*", line):
            complain(f"no such command `{line}`", "`/?` lists the commands")
        elif line:
            self._answer_or_tell(line)

    def _answer_or_tell(self, line: str) -> None:
        try:
            self.answer(line)
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
        except FoxError as error:
            complain(str(error), hint_for(error))

    def _show(self, piece: str) -> None:
        sys.stdout.write(piece)
        sys.stdout.flush()
        self._at_line_start = piece.endswith("\n")
