"""Answers bound to JSON against free ones, 8 streams at once; how long schemas take to compile; an agent's request."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from scripts.benchmarks import rig

STREAMS, TOKENS, ROUNDS = 8, 96, 5
RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "city": {"type": "string"},
        "age": {"type": "integer"},
        "is_member": {"type": "boolean"},
    },
    "required": ["name", "city", "age", "is_member"],
    "additionalProperties": False,
}
FORMS: dict[str, dict[str, Any]] = {
    "records": {"type": "array", "items": RECORD, "minItems": 50},  # many of its tokens are forced
    "one long text": {
        "type": "object",
        "properties": {"t": {"type": "string", "minLength": 2000}},
        "required": ["t"],
    },
}


def run() -> None:
    with rig.serving("--threads", str(rig.THREADS)) as server:
        asyncio.run(_streams(server.port))
    _schemas()
    _agent()


async def _streams(port: int) -> None:
    free: list[float] = []
    bound: dict[str, list[float]] = {name: [] for name in FORMS}
    await _rate(port, None)
    for name in FORMS:
        await _rate(port, name)
    for at in range(ROUNDS):
        for name in [None, *FORMS] if at % 2 else [*FORMS, None]:  # type: ignore[list-item]
            (bound[name] if name else free).append(await _rate(port, name))
    print(f"{STREAMS} streams of {TOKENS} tokens: free {rig.median(free):.1f} tokens a second")
    for name, rates in bound.items():
        ratios = [rate / other for rate, other in zip(rates, free, strict=True)]
        print(
            f"bound to {name}: {rig.median(rates):.1f}, ratio {rig.median(ratios):.3f}"
            f" (min {min(ratios):.3f}, max {max(ratios):.3f}; asked: at least 0.95)"
        )


async def _rate(port: int, name: str | None) -> float:
    """Tokens a second of all streams, from the first token of any to the last."""
    more: dict[str, Any] = {"temperature": 0.8, "ignore_eos": True}
    if name:
        form = {"type": "json_schema", "json_schema": {"name": "f", "schema": FORMS[name]}}
        more = {"temperature": 0.8, "response_format": form}
    asked = (
        rig.chat(port, "smollm2:135m", f"Write about people, please ({at}).", TOKENS, seed=at, **more)
        for at in range(STREAMS)
    )
    streams = await asyncio.gather(*asked)
    assert all(stream.tokens == TOKENS for stream in streams), [stream.tokens for stream in streams]
    spent = max(s.times[-1] for s in streams) - min(s.times[0] for s in streams)
    return sum(stream.tokens for stream in streams) / spent


def _schemas() -> None:
    """On the starter's vocabulary, in the process that does it: the engine's."""
    from fox.chat.forms import json_form
    from fox.engine.llama.bindings import lib
    from fox.engine.llama.grammar import Grammars
    from fox.engine.llama.log import LogTail
    from fox.engine.llama.vocabulary import Vocabulary
    from fox.engine.llama.weights import load_weights

    path = rig.starter()
    vocab = Vocabulary(load_weights(path.stem, path, LogTail(lib)))
    grammars = Grammars(vocab)
    properties = {
        f"field_{at}": {"type": ["string", "integer", "boolean"][at % 3], "description": "x" * 40}
        for at in range(300)
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    began = time.perf_counter()
    grammars.compile(json_form({"type": "object"}, "f", strict=True))
    print(
        f"the tokenizer table and the first grammar: {(time.perf_counter() - began) * 1e3:.1f} ms, once a model"
    )
    spent = []
    for at in range(11):
        form = json_form({**schema, "title": str(at)}, "f", strict=True)
        began = time.perf_counter()
        grammars.compile(form)
        spent.append((time.perf_counter() - began) * 1e3)
    print(f"a schema of 300 properties: {rig.median(spent):.1f} ms (max {max(spent):.1f}; asked: under 50)")


def _agent() -> None:
    """A request as coding agents send: 24 tools, a long system prompt, 78 kB."""
    from fox.api.openai.parse import parse
    from fox.api.openai.schema import ChatRequest
    from fox.api.openai.turn import ask
    from fox.chat import ChatModel
    from fox.generation import ModelInfo

    properties = {f"argument_{at}": {"type": "string", "description": "what it is " * 12} for at in range(10)}
    tools = [
        {
            "type": "function",
            "function": {
                "name": f"tool_{at}",
                "description": "what it does " * 60,
                "parameters": {"type": "object", "properties": properties, "required": [*properties][:3]},
            },
        }
        for at in range(24)
    ]
    turns = [{"role": "user" if at % 2 else "assistant", "content": "some words " * 20} for at in range(21)]
    system = {"role": "system", "content": "You are an agent. " * 280}
    body = json.dumps({"model": "m", "messages": [system, *turns], "tools": tools, "stream": True}).encode()
    template = (
        "{%- if tools %}<|im_start|>system\n{{ messages[0].content }}\n<tools>\n{%- for tool in tools %}\n"
        "{{ tool | tojson }}\n{%- endfor %}\n</tools> <tool_call><|im_end|>\n{%- endif %}"
        "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{%- endfor %}"
        "<|im_start|>assistant\n"
    )
    controls = ("<|im_start|>", "<|im_end|>")
    info = ModelInfo("m", "llama", 1, 1, 1, 1, 1, 1, template, "", "<|im_end|>", controls, (1, 2))
    model, spent = ChatModel(info), []
    for _ in range(51):
        began = time.perf_counter()
        model.prepare(ask(parse(ChatRequest, body), "", separate=True))
        spent.append((time.perf_counter() - began) * 1e3)
    print(
        f"an agent's request of {len(body) / 1000:.0f} kB, checked and rendered: {rig.median(spent):.2f} ms"
        f" (max {max(spent):.2f}; asked: under 5)"
    )
