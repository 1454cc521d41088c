"""The command line: one small file per command, imported when that command is invoked."""

from __future__ import annotations

import importlib
from typing import cast

import click

from fox import __version__

# name -> module, one line of help. Literal, so that `fox --help` imports no command.
COMMANDS = {
    "serve": ("fox.cli.serve", "Answer requests over HTTP."),
    "run": ("fox.cli.run", "Ask a model, or chat with it, in this terminal."),
    "create": ("fox.cli.create", "Make a model from a Modelfile."),
    "show": ("fox.cli.show", "Show what a model is, without loading it."),
    "list": ("fox.cli.list_", "List the models on this machine, or on the server."),
    "ps": ("fox.cli.ps", "List the models a running server holds."),
    "stop": ("fox.cli.stop", "Take a model out of a running server's memory."),
    "cp": ("fox.cli.cp", "Give a model another name."),
    "rm": ("fox.cli.rm", "Delete models."),
}
ALIASES = {"ls": "list"}

SETTINGS = {"help_option_names": ["-h", "--help"]}


class LazyGroup(click.Group):
    """A group that imports a command's module only when it is invoked or asked for its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        return cast(click.Command, importlib.import_module(COMMANDS[cmd_name][0]).command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and args[0] not in (*COMMANDS, *ALIASES):
            raise _no_such_command(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _no_such_command(name: str) -> click.ClickException:
    import difflib

    from fox.cli.refusal import Misuse

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "`fox --help` lists the commands"
    return Misuse(f"no such command `{name}`", hint)


@click.group(cls=LazyGroup, context_settings=SETTINGS, invoke_without_command=True)
@click.version_option(__version__, prog_name="fox", message="%(prog)s %(version)s")
@click.pass_context
def group(ctx: click.Context) -> None:
    """One command that turns a machine into an LLM server."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run_group() -> int:
    """Run the command that `sys.argv` asks for. Returns the exit code."""
    from fox.cli.refusal import reported

    return reported(lambda: group.main(prog_name="fox", standalone_mode=False))
