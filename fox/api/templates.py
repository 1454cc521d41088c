"""Each engine's way of talking, made once: compiling its template takes 5 ms, rendering 0.15."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from fox.api.options import ApiOptions
from fox.chat import ChatModel
from fox.engine import Engine
from fox.registry import Registry
from fox.registry.recipe import Recipe


class Templates:
    """Forgets an engine's template together with the engine."""

    def __init__(self, registry: Registry, options: ApiOptions) -> None:
        self._registry = registry
        self._options = options
        self._models: WeakKeyDictionary[Engine, ChatModel] = WeakKeyDictionary()

    def of(self, engine: Engine) -> ChatModel:
        """Raises InvalidRequest if the model's template does not compile."""
        if engine not in self._models:
            options, template = self._options, self.recipe(engine).template
            self._models[engine] = ChatModel(
                engine.info,
                options.tool_call_parser or None,
                go_source=None if options.go_template == "off" else template,
                go_always=options.go_template == "on",
            )
        return self._models[engine]

    def recipe(self, engine: Engine) -> Recipe:
        """How the engine's model is to be served."""
        return self._registry.recipe(engine)
