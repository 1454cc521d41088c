"""`fox show`: what a model is, without loading it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import click

from fox.cli.client import Client, Fields, reach
from fox.cli.refusal import Misuse

PARTS = ("license", "modelfile", "parameters", "system", "template")
ONE_ONLY = (
    "only one of '--license', '--modelfile', '--parameters', '--system', or '--template' can be specified"
)


@click.command("show")
@click.argument("model")
@click.option("--license", is_flag=True, help="Its licence only.")
@click.option("--modelfile", is_flag=True, help="The Modelfile that makes it.")
@click.option("--parameters", is_flag=True, help="Its parameters only.")
@click.option("--system", is_flag=True, help="Its system prompt only.")
@click.option("--template", is_flag=True, help="Its template only.")
@click.option("-v", "--verbose", is_flag=True, help="All its metadata, and its tensors.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--path", type=click.Path(path_type=Path), help="Folder to look in; its header alone is read.")
@click.option("--url", metavar="URL", help="Server to ask [default: FOX_HOST, or http://127.0.0.1:8080].")
def command(
    model: str, path: Path | None, url: str | None, *, verbose: bool, as_json: bool, **parts: bool
) -> None:
    """Show what a model is.

    MODEL is a name, or the path of a GGUF, whose header is read then.
    """
    wanted = [part for part in PARTS if parts[part]]
    if len(wanted) > 1:
        raise Misuse(ONE_ONLY)
    from fox.cli.header import named_file

    if (file := named_file(model, path)) and not wanted:
        return _show_file(file, as_json=as_json)
    with closing(reach(url)) as client:
        shown = asked(client, model, verbose=verbose)
    if wanted:
        click.echo(shown.get(wanted[0]) or "", nl=bool(shown.get(wanted[0])))
    elif as_json:
        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        from fox.cli import sheet

        click.echo(sheet.text(shown, verbose=verbose))
    return None


def asked(client: Client, model: str, *, verbose: bool = False) -> Fields:
    """What `/api/show` answers. Raises Refused."""
    return client.post("/api/show", {"model": model, **({"verbose": True} if verbose else {})})


def _show_file(file: Path, *, as_json: bool) -> None:
    from fox.cli import header

    facts = header.facts(file)
    click.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else header.text(facts))
