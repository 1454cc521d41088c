"""The families, in the order in which their marks are looked for in a template."""

from __future__ import annotations

from fox.chat.reading import deepseek, gemma, glm, harmony, invokes, kimi, kimi3, llama, mistral, qwen_xml
from fox.chat.reading.family import THINK, CallSyntax, Family
from fox.chat.reading.functionary import functionary
from fox.chat.reading.hermes import hermes, tagged_call
from fox.chat.reading.lists import listed
from fox.errors import InvalidRequest

OBJECT = '{"name": "{name}", "arguments": '
DSML, DSML_41 = "｜DSML｜", "｜DSML｜ "
ACTION, ACTION_END = "<|START_ACTION|>", "<|END_ACTION|>"
TOOL_CALL, TOOL_CALL_END = "<|tool_call|>", "<|/tool_call|>"

GPT_OSS = Family(
    "gpt-oss",
    harmony.harmony,
    template=((harmony.CHANNEL, harmony.MESSAGE),),
    shown=(harmony.START, harmony.CHANNEL, harmony.MESSAGE, harmony.CONSTRAIN, *harmony.ENDS),
    thought=("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
    answers=("<|channel|>final<|message|>", "<|channel|>final <|constrain|>json<|message|>"),
    call=CallSyntax(
        "<|channel|>commentary to=functions.",
        "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>",
        "",
    ),
)
KIMI_K3 = Family(
    "kimi-k3",
    kimi3.kimi3,
    template=((kimi3.OPEN, kimi3.SEPARATOR),),
    shown=(kimi3.OPEN, kimi3.CLOSE, kimi3.SEPARATOR),
    thought=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    answers=("<|open|>response<|sep|>",),
)
KIMI_K2 = Family(
    "kimi-k2",
    kimi.kimi,
    template=((kimi.CALL,),),
    shown=(kimi.CALLS, kimi.CALLS_END, kimi.CALL, kimi.CALL_END, kimi.ARGUMENTS, *THINK),
    call=CallSyntax(
        kimi.CALLS,
        f"{kimi.CALL}functions.{{name}}:0{kimi.ARGUMENTS}",
        kimi.CALL_END,
        opens=kimi.CALLS,
        closes=kimi.CALLS_END,
    ),
)
DSML_CALLS = Family(
    "deepseek-v3.2",
    invokes.invoking(DSML, f"{DSML}function_calls", f"{DSML}tool_calls"),
    template=((f"{DSML}invoke",),),
    shown=(DSML, *THINK),
    call=CallSyntax(
        f"<{DSML}function_calls>",
        f'<{DSML}invoke name="{{name}}">\n',
        f"</{DSML}invoke>\n",
        opens=f"<{DSML}function_calls>\n",
        closes=f"</{DSML}function_calls>",
        argument=(
            f'<{DSML}parameter name="{{key}}" string="{{is_text}}">',
            f"</{DSML}parameter>\n",
        ),
    ),
)
DSML_41_CALLS = Family(
    "deepseek-v4.1",
    invokes.invoking(DSML_41, f"{DSML_41}calls"),
    template=((f"{DSML_41}invoke",),),
    shown=(DSML, *THINK),
)
DEEPSEEK_TOKENS = (deepseek.CALLS, deepseek.CALLS_END, deepseek.CALL, deepseek.CALL_END, deepseek.SEPARATOR)
DEEPSEEK_V3 = Family(
    "deepseek-v3",
    deepseek.deepseek,
    template=((deepseek.CALL, "```json"),),
    shown=(*DEEPSEEK_TOKENS, *THINK),
    call=CallSyntax(
        deepseek.CALLS,
        f"{deepseek.CALL}function{deepseek.SEPARATOR}{{name}}\n```json\n",
        f"\n```{deepseek.CALL_END}",
        separator="\n",
        opens=deepseek.CALLS,
        closes=deepseek.CALLS_END,
    ),
)
DEEPSEEK_V31 = Family(
    "deepseek-v3.1",
    deepseek.deepseek,
    template=((deepseek.CALL,),),
    shown=(*DEEPSEEK_TOKENS, *THINK),
    call=CallSyntax(
        deepseek.CALLS,
        f"{deepseek.CALL}{{name}}{deepseek.SEPARATOR}",
        deepseek.CALL_END,
        opens=deepseek.CALLS,
        closes=deepseek.CALLS_END,
    ),
)
GLM = Family(
    "glm",
    glm.glm,
    template=((glm.KEY, glm.VALUE),),
    shown=(glm.OPENS, glm.CLOSES, glm.KEY, glm.KEY_END, glm.VALUE, glm.VALUE_END, *THINK),
    call=CallSyntax(
        glm.OPENS,
        f"{glm.OPENS}{{name}}\n",
        glm.CLOSES,
        separator="\n",
        argument=(f"{glm.KEY}{{key}}{glm.KEY_END}\n{glm.VALUE}", f"{glm.VALUE_END}\n"),
    ),
)
MINIMAX = Family(
    "minimax",
    invokes.invoking("", "minimax:tool_call"),
    template=(("minimax:tool_call",), ("<invoke name=", "<parameter name=")),
    shown=("<minimax:tool_call>", "</minimax:tool_call>", *THINK),
    call=CallSyntax(
        "<minimax:tool_call>",
        '<invoke name="{name}">\n',
        "</invoke>\n",
        opens="<minimax:tool_call>\n",
        closes="</minimax:tool_call>",
        argument=('<parameter name="{key}">', "</parameter>\n"),
    ),
)
SEED_OSS = Family(
    "seed-oss",
    qwen_xml.xml_calls("seed:tool_call"),
    template=(("seed:tool_call",), ("<seed:think>",)),
    shown=("<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"),
    thought=("<seed:think>", "</seed:think>"),
    call=CallSyntax(
        "<seed:tool_call>",
        "<seed:tool_call>\n<function={name}>\n",
        "</function>\n</seed:tool_call>",
        separator="\n",
        argument=("<parameter={key}>\n", "\n</parameter>\n"),
    ),
)
QWEN_XML = Family(
    "qwen3-coder",
    qwen_xml.xml_calls(),
    template=((qwen_xml.FUNCTION, qwen_xml.PARAMETER),),
    shown=("<tool_call>", "</tool_call>", *THINK),
    call=CallSyntax(
        "<tool_call>",
        "<tool_call>\n<function={name}>\n",
        "</function>\n</tool_call>",
        separator="\n",
        argument=("<parameter={key}>\n", "\n</parameter>\n"),
    ),
)
MISTRAL_MARKS = (mistral.CALLS, mistral.ARGS, mistral.ID, "[THINK]", "[/THINK]")
MISTRAL = Family(
    "mistral",
    mistral.mistral,
    template=((mistral.CALLS, mistral.ARGS),),
    shown=MISTRAL_MARKS,
    thought=("[THINK]", "[/THINK]"),
    call=CallSyntax(mistral.CALLS, f"{mistral.CALLS}{{name}}{mistral.ARGS}", ""),
)
MISTRAL_V3 = Family(
    "mistral-v3",
    mistral.mistral,
    template=((mistral.CALLS,), ("[THINK]",)),
    shown=MISTRAL_MARKS,
    thought=("[THINK]", "[/THINK]"),
    call=CallSyntax(mistral.CALLS, OBJECT, "}", separator=", ", opens=f"{mistral.CALLS} [", closes="]"),
)
GEMMA4 = Family(
    "gemma4",
    gemma.gemma,
    template=((gemma.OPENS,), (gemma.QUOTE,)),
    shown=(gemma.OPENS, gemma.CLOSES, gemma.QUOTE, "<|channel>", "<channel|>"),
    thought=(gemma.THOUGHT, gemma.THOUGHT_END),
)
COMMAND_R = Family(
    "command-r",
    listed(ACTION, closes=ACTION_END, drops=("<|START_RESPONSE|>", "<|END_RESPONSE|>")),
    template=((ACTION,), ("<|START_THINKING|>",)),
    shown=(
        ACTION,
        ACTION_END,
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
    ),
    thought=("<|START_THINKING|>", "<|END_THINKING|>"),
    call=CallSyntax(
        ACTION,
        '{"tool_call_id": "0", "tool_name": "{name}", "parameters": ',
        "}",
        separator=", ",
        opens=f"{ACTION}[",
        closes=f"]{ACTION_END}",
    ),
)
FUNCTIONARY = Family(
    "functionary",
    functionary,
    template=((">>>all",), (">>>assistant",), (">>>", "all\n"), ("<function=", "</function>")),
    shown=("<|eot_id|>",),
)
GRANITE = Family(
    "granite",
    listed(TOOL_CALL, "<|tool_call|> "),
    template=((TOOL_CALL, "<|start_of_role|>"),),
    shown=(TOOL_CALL,),
    call=CallSyntax(TOOL_CALL, OBJECT, "}", separator=", ", opens=f"{TOOL_CALL}[", closes="]"),
)
PHI4 = Family(
    "phi-4",
    listed(TOOL_CALL, "functools", closes=TOOL_CALL_END),
    template=((TOOL_CALL,), ("functools",)),
    shown=(TOOL_CALL, TOOL_CALL_END),
    call=CallSyntax(
        TOOL_CALL, OBJECT, "}", separator=", ", opens=f"{TOOL_CALL}[", closes=f"]{TOOL_CALL_END}"
    ),
)
HERMES = Family(
    "hermes",
    hermes,
    template=(("<tool_call>",),),
    shown=("<tool_call>", "</tool_call>", *THINK),
    call=CallSyntax("<tool_call>", f"<tool_call>\n{OBJECT}", "}\n</tool_call>", separator="\n"),
)
LLAMA4 = Family(
    "llama4",
    llama.pythonic,
    template=(("func_name1(",), ("<|python_start|>",)),
    shown=(llama.LIST, llama.LIST_END),
)
LLAMA3 = Family(
    "llama3",
    llama.bare_json({llama.TAG: llama.tagged}),
    template=((llama.TAG,), ('"parameters": dictionary',), ("<|eom_id|>",)),
    shown=(llama.TAG,),
    call=CallSyntax("", '{"name": "{name}", "parameters": ', "}", separator="; "),
)
GENERIC = Family(
    "generic",
    llama.bare_json({"<tool_call>": tagged_call}),
    shown=("<tool_call>", "</tool_call>", *THINK),
    call=CallSyntax("", OBJECT, "}", separator="\n"),
)

FAMILIES: tuple[Family, ...] = (
    *(GPT_OSS, KIMI_K3, KIMI_K2, DSML_41_CALLS, DSML_CALLS, DEEPSEEK_V3, DEEPSEEK_V31, GLM),
    *(MINIMAX, SEED_OSS, QWEN_XML, MISTRAL, MISTRAL_V3, GEMMA4, COMMAND_R, GRANITE),
    *(PHI4, HERMES, LLAMA4, LLAMA3, FUNCTIONARY, GENERIC),
)


def family_of(template: str) -> Family:
    """The family whose marks a chat template has."""
    for family in FAMILIES:
        if any(all(mark in template for mark in marks) for marks in family.template):
            return family
    return GENERIC


def family_named(name: str) -> Family:
    """Raises InvalidRequest that names those there are."""
    for family in FAMILIES:
        if family.name == name:
            return family
    names = ", ".join(family.name for family in FAMILIES)
    raise InvalidRequest(f"there is no family `{name}` of tool calls; there are {names}", "tool_call_parser")
