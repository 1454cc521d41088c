"""The rows of the settings table as flags of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from fox.config import OPTIONS, SWITCH, Option
from fox.config.options import flag

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_flags(rows: Iterable[Option] = OPTIONS) -> Callable[[Command], Command]:
    """Give a command these rows' flags. It gets them under the rows' names; None where a flag was not given.

    Values stay as they were written: `config.load` reads flags, environment and file alike.
    """

    def decorate(command: Command) -> Command:
        for row in reversed(list(rows)):
            command = _flag(row)(command)
        return command

    return decorate


def _flag(row: Option) -> Callable[[Command], Command]:
    flags = [flag(name) for name in row.names]
    if row.kind is SWITCH:
        names = [f"{name}/--no-{name[2:]}" for name in flags]
        return click.option(*names, row.name, default=None, help=_help(row))
    return click.option(*flags, row.name, metavar=row.kind.metavar, help=_help(row))


def _help(row: Option) -> str:
    shown = row.default not in (None, "", False)
    return f"{row.help} [default: {row.default}]" if shown else row.help
