"""GGUFs whose layout is Ollama's own: llama.cpp would misread them, or say nothing that helps.

Which ones there are: https://github.com/ollama/ollama/tree/main/llama/compat.
"""

from __future__ import annotations

from fox.errors import ModelLoadFailed
from fox.registry.catalog import ModelEntry
from fox.registry.gguf import GGUFError, Header, read_header

FOREIGN = frozenset(
    ("gptoss", "olmo3", "qwen25vl", "deepseekocr", "glmocr", "glm4moelite", "nemotron_h_omni")
)
"""Architectures that llama.cpp knows by another name, or not at all."""
EMBEDDED = ("v.", "mm.", "a.", "vision_tower.", "multi_modal_projector.")
ADVICE = "take a GGUF made for llama.cpp instead, such as the model's GGUF on Hugging Face"


def foreign_layout(header: Header) -> str | None:
    """What of it llama.cpp does not read; None where nothing is known."""
    if header.architecture == "clip":
        return None
    inside = next((tensor.name for tensor in header.tensors if tensor.name.startswith(EMBEDDED)), None)
    if inside:
        return f"tensors of another model inside it (`{inside}`)"
    if header.architecture in FOREIGN:
        return f"the architecture `{header.architecture}`"
    return None


def refuse_foreign(entry: ModelEntry) -> None:
    """Raises ModelLoadFailed. A file that is no GGUF at all is left to the engine, which says more."""
    if entry.path is None or entry.kind != "llama" or not entry.path.is_file():
        return
    try:
        header = read_header(entry.path)
    except (GGUFError, OSError):
        return
    if what := foreign_layout(header):
        raise ModelLoadFailed(entry.name, f"it has Ollama's own layout, {what}: {ADVICE}")
