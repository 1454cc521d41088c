"""langchain-tests' own cases for a chat model, with ChatOpenAI against the fox at $FOX_URL. Run by `langchain`."""

from __future__ import annotations

import os
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from scripts.conformances.server import MODEL


class TestFox(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        url = f"{os.environ['FOX_URL']}/v1"
        return {
            "model": MODEL,
            "base_url": url,
            "api_key": "none",
            "temperature": 0,
            "frequency_penalty": 0.8,  # a model this small repeats itself without end
            "max_tokens": 256,
            "max_retries": 0,
            "timeout": 120,
            "stream_usage": True,
        }

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return False

    @property
    def has_tool_choice(self) -> bool:
        return True

    @property
    def enable_vcr_tests(self) -> bool:
        return False
