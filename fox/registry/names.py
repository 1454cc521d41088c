"""Model names as Ollama writes them: `[scheme://][host/][namespace/]model[:tag]`.

Source: ollama/ollama, types/model/name.go and internal/modelref/modelref.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from fox.errors import InvalidRequest

DEFAULT_HOST, DEFAULT_NAMESPACE, DEFAULT_TAG, DEFAULT_SCHEME = (
    "registry.ollama.ai",
    "library",
    "latest",
    "https",
)

Source = Literal["cloud", "local"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,349}")
_NAMESPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
_MODEL = _TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")


class InvalidName(InvalidRequest):
    """No such name can be. `args`: what was given."""

    code = "invalid_name"

    @property
    def param(self) -> str:
        return "model"

    def __str__(self) -> str:
        return "invalid model name"


@dataclass(frozen=True)
class ModelName:
    """A name with all its parts, in the case it was written in. No part can climb out of a folder.

    `scheme` is how the host is spoken to; two names are the same model whatever it is.
    """

    host: str
    namespace: str
    model: str
    tag: str
    scheme: str = field(default=DEFAULT_SCHEME, compare=False)

    @classmethod
    def parse(cls, text: str) -> ModelName:
        """The name in `text`, white space around it left out, what it leaves open filled in. Raises InvalidName."""
        rest, scheme = _without_scheme(text.strip())
        rest, tag = _split_tag(rest)
        given = rest.split("/")
        if len(given) > 3 or (scheme and len(given) < 3):
            raise InvalidName(text)
        host, namespace, model = [DEFAULT_HOST, DEFAULT_NAMESPACE][: 3 - len(given)] + given
        name = cls(host, namespace, model, tag, scheme or DEFAULT_SCHEME)
        if not name._is_valid():
            raise InvalidName(text)
        return name

    @property
    def shortest(self) -> str:
        """How people write it: without the default host and namespace, always with its tag."""
        if self.host.lower() != DEFAULT_HOST:
            return self.full
        if self.namespace.lower() != DEFAULT_NAMESPACE:
            return f"{self.namespace}/{self.model}:{self.tag}"
        return f"{self.model}:{self.tag}"

    @property
    def full(self) -> str:
        """`host/namespace/model:tag`."""
        return f"{self.host}/{self.namespace}/{self.model}:{self.tag}"

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """Host, namespace, model, tag: the folders under `manifests/`, and the file."""
        return self.host, self.namespace, self.model, self.tag

    def same_as(self, other: ModelName) -> bool:
        """Whether both name one model: case does not tell models apart."""
        return self.full.lower() == other.full.lower()

    def _is_valid(self) -> bool:
        forms = (_HOST, _NAMESPACE, _MODEL, _TAG)
        return all(
            form.fullmatch(part) and ".." not in part for form, part in zip(forms, self.parts, strict=True)
        )


def source_selector(text: str) -> tuple[str, Source | None]:
    """`(name, where to look for it)`: `:cloud`, `-cloud` at a tag's end, and `:local`, in any case, are no part of
    the name. Raises InvalidRequest where there are two of them."""
    text = text.strip()
    name, source = _selector(text)
    if source and _selector(name)[1]:
        from fox.registry.parameters import go_quote

        raise InvalidRequest(f"use either :local or :cloud, not both: {go_quote(text)}", "model")
    return name, source


def _selector(text: str) -> tuple[str, Source | None]:
    before, colon, last = text.rpartition(":")
    word = last.strip().lower()
    if colon and word == "cloud":
        return before, "cloud"
    if colon and word == "local":
        return before, "local"
    if colon and "/" not in word and word.endswith("-cloud"):
        return before + colon + last.strip()[: -len("-cloud")], "cloud"
    return text, None


def _without_scheme(text: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    return (text[found.end() :], found[1]) if found else (text, "")


def _split_tag(text: str) -> tuple[str, str]:
    """A colon before the last slash belongs to the host: it is a port's."""
    if text.rfind(":") <= text.rfind("/"):
        return text, DEFAULT_TAG
    before, _, tag = text.rpartition(":")
    return before, tag
