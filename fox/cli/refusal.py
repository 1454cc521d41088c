"""How the command line says no: a line, then a hint. Exit code 1: cannot be done, 2: asked wrongly."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from fox.errors import ContextExceeded, FoxError, ModelLoadFailed, ModelNotFound

_HINTS: dict[type[FoxError], str] = {
    ContextExceeded: "`/clear` starts afresh in a chat, `--max-context-len` gives more room",
    ModelNotFound: "`fox list` shows the models on this machine",
    ModelLoadFailed: "`fox show` reads a model's header without loading it",
}


class Refusal(click.ClickException):
    """The command cannot do what it was asked. `hint`: what the person may do about it."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Misuse(Refusal):
    """The command was asked wrongly."""

    exit_code = 2


def reported(command: Callable[[], object]) -> int:
    """Run `command`, tell a refusal to the person, and return the exit code."""
    try:
        code = command()
    except click.Abort:
        return 130
    except click.ClickException as error:
        complain(_restyled(error), hint_for(error))
        return error.exit_code
    except FoxError as error:
        complain(str(error), hint_for(error))
        return 2 if error.code == "invalid_config" else 1
    return code if isinstance(code, int) else 0


def complain(message: str, hint: str | None = None) -> None:
    """Two lines on stderr, coloured on a terminal unless NO_COLOR is set."""
    color = False if os.environ.get("NO_COLOR") else None
    click.echo(f"{click.style('error:', fg='red', bold=True)} {message}", err=True, color=color)
    if hint:
        click.echo(f"{click.style('hint:', fg='cyan')} {hint}", err=True, color=color)


def _restyled(error: click.ClickException) -> str:
    """click's own sentences in the house's style: lower case, backticks, no full stop."""
    if isinstance(error, Refusal):
        return error.message
    text = error.message if getattr(error, "possibilities", None) else error.format_message()
    return (text[:1].lower() + text[1:]).rstrip(".").replace("'", "`")


def hint_for(error: click.ClickException | FoxError) -> str | None:
    """What the person may do about it."""
    if hint := getattr(error, "hint", None):
        return str(hint)
    if near := getattr(error, "possibilities", None):
        return f"did you mean `{near[0]}`?"
    if isinstance(error, click.UsageError):
        return "`--help` lists what there is"
    return next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), None)
