"""Names at the door: which model is meant, and whether it can do what is asked."""

from __future__ import annotations

from contextlib import suppress

from fox.api.failures import CloudOff
from fox.api.ollama.facts import Facts, Shelf
from fox.api.ollama.schema import Asking
from fox.errors import InvalidRequest, ModelNotFound
from fox.registry import ModelEntry, Registry
from fox.registry.names import InvalidName, ModelName, source_selector
from fox.registry.parameters import go_quote


class Desk:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.shelf = Shelf()

    def entry(self, asked: str) -> ModelEntry:
        """The model that a name means. Raises InvalidRequest for what is no name, ModelNotFound, CloudOff."""
        name, source = source_selector(asked)
        try:
            return self.registry.catalog.find(name)
        except ModelNotFound as error:
            if source == "cloud":
                raise CloudOff("remote inference") from None
            ModelName.parse(name)
            raise ModelNotFound(asked, *error.args[1:]) from None

    def facts(self, asked: str) -> Facts:
        """All that is known of it. Raises as `entry` does."""
        return self.shelf.of(self.entry(asked))


def tagged(name: str) -> str:
    """As Ollama tells it back: with its tag."""
    with suppress(InvalidName):
        return ModelName.parse(name).shortest
    return name


def check_can_talk(facts: Facts, asked: str, what: str) -> None:
    """Raises InvalidRequest for a model that only embeds."""
    if not facts.can("completion"):
        raise InvalidRequest(f"{go_quote(asked)} does not support {what}", "model")


def check_images(facts: Facts, asked: Asking, images: bool) -> None:
    """Raises InvalidRequest: no model sees yet."""
    if images:
        raise InvalidRequest(f"{facts.full_name} does not support vision", "images")
