"""Each engine's way of talking, made once: compiling its template takes 5 ms, rendering 0.15."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from fox.chat import ChatModel
from fox.engine import Engine


class Templates:
    """Forgets an engine's template together with the engine. `parser`: the family of its tool calls ("": by itself)."""

    def __init__(self, parser: str = "") -> None:
        self._parser = parser or None
        self._models: WeakKeyDictionary[Engine, ChatModel] = WeakKeyDictionary()

    def of(self, engine: Engine) -> ChatModel:
        """Raises InvalidRequest if the model's template does not compile."""
        if engine not in self._models:
            self._models[engine] = ChatModel(engine.info, self._parser)
        return self._models[engine]
