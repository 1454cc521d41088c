"""`fox create`: a model of one's own, from a Modelfile."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fox import config
from fox.cli.client import Client, Fields, connect, in_process
from fox.cli.refusal import Refusal

if TYPE_CHECKING:
    from fox.cli.progress import Progress
    from fox.cli.sending import Sender
    from fox.registry.modelfile import Modelfile

DEFAULT_FILE = "Modelfile"
DEFAULT_TEXT = b"FROM ."
HINT = "its first line reads `FROM ./model.gguf`, or `FROM` and a model's name"


@click.command("create")
@click.argument("name")
@click.option("-f", "--file", type=click.Path(path_type=Path), help="The Modelfile [default: Modelfile].")
@click.option("-q", "--quantize", metavar="TYPE", help="Quantize it to this type, such as Q4_K_M.")
@click.option("--url", metavar="URL", help="Server to ask [default: FOX_HOST, or http://127.0.0.1:8080].")
def command(name: str, file: Path | None, quantize: str | None, url: str | None) -> None:
    """Make a model from a Modelfile.

    Without one in the working directory the first GGUF there is taken as it is.
    """
    from fox.cli.progress import Progress
    from fox.cli.sending import Sender
    from fox.registry import modelfile

    data, folder = _text(file)
    recipe = modelfile.read(data)
    for parameter in recipe.deprecated:
        click.echo(f"warning: the parameter `{parameter}` means nothing any more", err=True)
    settings = config.load({})
    client = connect(url, settings) or in_process(settings)
    with closing(client), Progress() as progress:
        asked = _asked(recipe, folder, Sender(client, settings.models_dir, progress))
        wish = {"quantize": quantize} if quantize else {}
        follow(client, {"model": name, **asked, **wish}, progress)


def follow(client: Client, asked: Fields, progress: Progress) -> None:
    """Ask for the model, and tell each step. Raises Refusal where it does not end well."""
    status = ""
    for step in client.stream("/api/create", asked):
        status = str(step.get("status") or status)
        progress.step(status, step.get("completed"), step.get("total"))
    if status != "success":
        raise Refusal("the server ended before the model was made")


def _text(file: Path | None) -> tuple[bytes, Path]:
    """The Modelfile's bytes, and the folder that its paths count from."""
    path = (file or Path(DEFAULT_FILE)).expanduser()
    try:
        return path.read_bytes(), path.absolute().parent
    except FileNotFoundError:
        if file is None:
            return DEFAULT_TEXT, Path.cwd()
        raise Refusal(f"no file `{path}`", HINT) from None
    except OSError as error:
        raise Refusal(f"cannot read `{path}`: {str(error.strerror).lower()}", HINT) from None


def _asked(recipe: Modelfile, folder: Path, sender: Sender) -> Fields:
    """The body of the request; every file that it names is with the server then. Raises Refusal."""
    asked: Fields = {}
    for base in recipe.bases:
        if files := sender.sent(base, folder):
            asked.setdefault("files", {}).update(files)
        else:
            asked["from"] = base
    for name, paths in (("adapters", recipe.adapters), ("draft_files", recipe.drafts)):
        for path in paths:
            asked.setdefault(name, {}).update(sender.must_send(path, folder))
    said = {
        "template": recipe.template,
        "system": recipe.system,
        "license": list(recipe.licenses),
        "parameters": dict(recipe.parameters),
        "messages": [{"role": role, "content": text} for role, text in recipe.messages],
        "renderer": recipe.renderer,
        "parser": recipe.parser,
        "requires": recipe.requires,
    }
    return asked | {name: value for name, value in said.items() if value not in (None, [], {})}
