"""The commands of a conversation with a server: `/set`, `/show`, `/load`, `/save`, `/list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fox.cli.client import Fields, Refused
from fox.cli.refusal import Misuse, Refusal

if TYPE_CHECKING:
    from fox.cli.remote import Remote

HELP = """\
/set parameter NAME VALUE...   such as `/set parameter temperature 0.2`
/set system TEXT               what is said first; `\"\"\"` begins and ends a text of several lines
/set format json, noformat     answers in JSON, or in any form
/set think [LEVEL], nothink    think before answering, or do not
/set verbose, quiet            tell what each answer took, or do not
/set history, nohistory        remember what is typed for the arrow keys, or do not
/show info|license|modelfile|parameters|system|template
/load MODEL                    talk with another model
/save MODEL                    keep this conversation as a model
/list                          the server's models"""

SETTINGS = "`/set` takes parameter, system, format, think, nothink, verbose, quiet, history and nohistory"
PARTS = ("info", "license", "modelfile", "parameters", "system", "template")


class Commands:
    """Each tells what it has done on stderr. Raises Refusal, FoxError."""

    def __init__(self, talk: Remote) -> None:
        self._talk = talk

    def obey(self, words: list[str], rest: str) -> bool:
        """False: there is no such command."""
        match words:
            case ["/set", name, *values]:
                self._set(name, values, rest)
            case ["/show", part]:
                self._show(part)
            case ["/load", model]:
                self._load(model)
            case ["/save", name]:
                self._save(name)
            case ["/list"]:
                self._list()
            case ["/set" | "/show" | "/load" | "/save" | "/list", *_]:
                raise Misuse(f"`{words[0]}` wants other words", "`/?` lists the commands")
            case _:
                return False
        return True

    def _set(self, name: str, values: list[str], rest: str) -> None:
        talk = self._talk
        match name, values:
            case "parameter", [parameter, _, *_]:
                self._set_parameter(parameter, values[1:])
            case "system", [_, *_]:
                talk.system = rest
                _tell("set system message")
            case "format", ["json"]:
                talk.format = "json"
                _tell("set format to `json`")
            case "noformat", []:
                talk.format = None
                _tell("disabled format")
            case ("think", []) | ("think", [_]):
                self._set_thinking(values[0] if values else True)
            case "nothink", []:
                self._set_thinking(False)
            case (("verbose" | "quiet"), []):
                talk.verbose = name == "verbose"
                _tell(f"set `{name}` mode")
            case (("wordwrap" | "nowordwrap"), []):
                _tell("lines are left to the terminal")
            case _:
                raise Misuse(f"`/set {name}` wants other words", SETTINGS)

    def _set_parameter(self, name: str, values: list[str]) -> None:
        from fox.registry.parameters import parsed

        value = parsed(name, values)
        if value is not None:
            self._talk.options[name] = value
        _tell(f"set parameter `{name}` to `{', '.join(values)}`")

    def _set_thinking(self, value: bool | str) -> None:
        talk = self._talk
        talk.think = value
        if value and not talk.can_think:
            click.echo(f'warning: model "{talk.model}" does not support thinking output', err=True)
        _tell("set `nothink` mode" if value is False else "set `think` mode")

    def _show(self, part: str) -> None:
        if part not in PARTS:
            raise Misuse(f"`/show {part}` is nothing to show", f"`/show` takes {', '.join(PARTS)}")
        talk = self._talk
        asked: Fields = {"model": talk.model, "system": talk.system, "options": talk.options}
        shown = talk.client.post("/api/show", asked)
        if part == "info":
            from fox.cli import sheet

            _tell(sheet.text(shown, verbose=False))
            return
        text = talk.system if part == "system" and talk.system else shown.get(part)
        _tell(str(text) if text else f"no {part} was specified for this model")

    def _load(self, model: str) -> None:
        talk = self._talk
        before = talk.model, talk.shown, talk.messages
        try:
            talk.shown = talk.client.post("/api/show", {"model": model})
            talk.model, talk.messages = model, []
            if talk.think is True and not talk.can_think:
                talk.think = None
            talk.load()
        except Refusal as error:
            talk.model, talk.shown, talk.messages = before
            if isinstance(error, Refused) and "not found" in error.message:
                raise Refusal(f"couldn't find model '{model}'", "`/list` shows the server's models") from None
            raise
        _tell(f"loaded model '{model}'")

    def _save(self, name: str) -> None:
        talk = self._talk
        parent = str((talk.shown.get("details") or {}).get("parent_model") or "")
        base = talk.model if not parent or parent.startswith(("/", ".")) or "\\" in parent else parent
        messages = [
            {"role": one["role"], "content": one.get("content", "")}
            for one in (*(talk.shown.get("messages") or ()), *talk.messages)
        ]
        wishes: dict[str, Any] = {"system": talk.system, "parameters": talk.options, "messages": messages}
        asked = {"model": name, "from": base, **{key: value for key, value in wishes.items() if value}}
        last: Fields = {}
        for last in talk.client.stream("/api/create", asked):  # noqa: B007 - the last one counts
            pass
        if last.get("status") != "success":
            raise Refusal("the server ended before the model was made")
        _tell(f"created new model '{name}'")

    def _list(self) -> None:
        from fox.cli import list_, table

        rows = [list_.HEAD, *map(list_.row, list_.tags(self._talk.client))]
        _tell("\n".join(table.lines(rows)))


def _tell(text: str) -> None:
    click.echo(text, err=True)
