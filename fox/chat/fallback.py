"""Templates for models that bring none: by the turn markers that their vocabulary has."""

from __future__ import annotations

from collections.abc import Collection

FALLBACK_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + (message.content or '') + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""ChatML, where nothing else is known."""

LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n'"
    " + (message.content or '') | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else"
    " 'user') + '\n' + (message.content or '') | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
PHI = (
    "{% for message in messages %}{{ '<|' + message.role + '|>\n' + (message.content or '') + '<|end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'assistant' %}"
    "{{ ' ' + (message.content or '') + eos_token }}{% else %}"
    "{{ '[INST] ' + (message.content or '') + ' [/INST]' }}{% endif %}{% endfor %}"
)
_BY_MARK = {
    "<|im_start|>": FALLBACK_TEMPLATE,
    "<|start_header_id|>": LLAMA3,
    "<start_of_turn>": GEMMA,
    "<|assistant|>": PHI,
    "[INST]": MISTRAL,
}


def fallback_template(control_tokens: Collection[str]) -> str:
    return next((t for mark, t in _BY_MARK.items() if mark in control_tokens), FALLBACK_TEMPLATE)
