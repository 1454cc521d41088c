"""`fox run` with a server: once, from a pipe, and as a chat in a terminal."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fake_ollama import (
    SHOWN,
    Answer,
    Fields,
    Ollama,
    Said,
    chat_lines,
    generate_lines,
    model,
    ollama,
)
from tests.cli.processes import PATIENCE_S, Fox, ask_fox, fox

THINKER = {**SHOWN, "capabilities": ["completion", "thinking"]}
EMBEDDER = {**SHOWN, "capabilities": ["embedding"]}
LOADED: Fields = {"response": "", "done": True, "done_reason": "load"}
TIMINGS = """\
total duration:       2.5s
load duration:        20.3ms
prompt eval count:    7 token(s)
prompt eval duration: 70ms
prompt eval rate:     100.00 tokens/s
eval count:           10 token(s)
eval duration:        500ms
eval rate:            20.00 tokens/s
"""


def answers(shown: Fields = SHOWN, *pieces: str, thoughts: tuple[str, ...] = ()) -> dict[str, Answer]:
    """A server whose model says `pieces` to every prompt, and `ok N` to the Nth message of a chat."""

    def chat(body: Any) -> Said:
        return Said(chat_lines("ok ", str(len(body["messages"])), thoughts=thoughts))

    def generate(body: Any) -> Said:
        return Said(generate_lines(*pieces, thoughts=thoughts) if body["prompt"] else LOADED)

    return {"POST /api/show": Said(shown), "POST /api/generate": generate, "POST /api/chat": chat}


def once(server: Ollama, *words: str, text: str = "") -> tuple[int, str, str]:
    answer = ask_fox("run", *words, text=text, env=server.env)
    return answer.returncode, answer.stdout, answer.stderr


def asked(server: Ollama) -> Fields:
    (one,) = server.bodies("/api/generate")
    return dict(one)


def test_a_prompt_is_generated_once() -> None:
    with ollama(answers(SHOWN, "Good ", "day")) as server:
        assert once(server, "m", "say", "hello") == (0, "Good day\n", "")
    assert server.lines == ["HEAD /", "POST /api/show", "POST /api/generate"]
    assert asked(server) == {"model": "m", "prompt": "say hello", "options": {}}


def test_a_pipe_follows_the_prompt() -> None:
    with ollama(answers(SHOWN, "ok")) as server:
        once(server, "m", "Say:", text="from a pipe\n")
    assert asked(server)["prompt"] == "Say:\n\nfrom a pipe"


def test_flags_become_options() -> None:
    flags = {
        "--temperature": "0.5", "--top-p": "0.9", "--top-k": "20", "--repetition-penalty": "1.1", "--seed": "7",
        "--max-new-tokens": "5", "--max-context-len": "4096", "--system-prompt": "be brief", "--keepalive": "5m",
        "--format": "json",
    }  # fmt: skip
    words = [word for pair in flags.items() for word in pair]
    with ollama(answers(SHOWN, "{}")) as server:
        assert once(server, *words, "--nowordwrap", "--insecure", "m", "hi")[0] == 0
    assert asked(server) == {
        "model": "m",
        "prompt": "hi",
        "options": {
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 20,
            "repeat_penalty": 1.1,
            "seed": 7,
            "num_predict": 5,
            "num_ctx": 4096,
        },
        "system": "be brief",
        "keep_alive": 300,
        "format": "json",
    }


@pytest.mark.parametrize(
    ("flag", "field"),
    [
        ("--keepalive=-1", {"keep_alive": -1}),
        ("--keepalive=0", {"keep_alive": 0}),
        ("--keepalive=1h30m", {"keep_alive": 5400}),
        ('--format={"type": "object"}', {"format": {"type": "object"}}),
        ("--think", {"think": True}),
        ("--think=false", {"think": False}),
        ("--think=high", {"think": "high"}),
    ],
)
def test_a_flags_value_on_the_wire(flag: str, field: Fields) -> None:
    with ollama(answers({**SHOWN, "capabilities": ["thinking", "completion"]}, "ok")) as server:
        assert once(server, flag, "m", "hi")[0] == 0
    assert asked(server) == {"model": "m", "prompt": "hi", "options": {}, "think": True, **field}


@pytest.mark.parametrize("flag", ["--keepalive=soon", "--format=xml", "--format=[1]", "--think=hard"])
def test_a_flags_value_that_makes_no_sense_is_refused(flag: str) -> None:
    answer = ask_fox("run", flag, "m", "hi")
    name, _, value = flag.partition("=")
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (
        2,
        f"error: `{name}` cannot be `{value}`",
    )


def test_verbose_tells_ollamas_timings_on_stderr() -> None:
    with ollama(answers(SHOWN, "ok")) as server:
        assert once(server, "--verbose", "m", "hi") == (0, "ok\n", TIMINGS)


def test_thoughts_stand_between_two_lines_of_their_own() -> None:
    with ollama(answers(THINKER, "4", thoughts=("2 and ", "2"))) as server:
        assert once(server, "m", "2+2")[1] == "Thinking...\n2 and 2\n...done thinking.\n\n4\n"
        assert once(server, "m", "2+2", "--hidethinking")[1] == "4\n"
    assert [body["think"] for body in server.bodies("/api/generate")] == [True, True]


def test_thinking_that_a_model_cannot_do_is_warned_of() -> None:
    with ollama(answers(SHOWN, "4")) as server:
        code, out, err = once(server, "--think", "m", "2+2")
    assert (code, out) == (0, "4\n")
    assert err == 'warning: model "m" does not support thinking output\n'


def test_a_model_without_capabilities_is_not_asked_to_think() -> None:
    shown = {name: value for name, value in SHOWN.items() if name != "capabilities"}
    with ollama(answers(shown, "4")) as server:
        assert once(server, "m", "2+2") == (0, "4\n", "")
    assert "think" not in asked(server)


def test_an_embedding_model_prints_the_prompts_vector() -> None:
    replies: dict[str, Answer] = {
        "POST /api/show": Said(EMBEDDER),
        "POST /api/embed": Said({"embeddings": [[0.5, -0.25]]}),
    }
    with ollama(replies) as server:
        assert once(server, "--dimensions", "2", "--keepalive", "10", "m", "hi") == (0, "[0.5,-0.25]\n", "")
        assert server.lines == ["HEAD /", "POST /api/show", "POST /api/embed"]
        assert server.bodies("/api/embed") == [
            {"model": "m", "input": "hi", "dimensions": 2, "keep_alive": 10}
        ]


def test_without_a_model_the_servers_first_answers() -> None:
    tags: Answer = Said({"models": [model("first:1b"), model("second:1b")]})
    with ollama({**answers(SHOWN, "ok"), "GET /api/tags": tags}) as server:
        assert once(server, "a quoted sentence")[1] == "ok\n"
    assert server.lines == ["HEAD /", "GET /api/tags", "POST /api/show", "POST /api/generate"]
    assert asked(server)["model"] == "first:1b"


def test_a_picture_goes_along_with_a_model_that_sees(tmp_path: Path) -> None:
    picture = tmp_path / "a b.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n rest")
    sees = {**SHOWN, "capabilities": ["completion", "vision"]}
    with ollama(answers(sees, "a cat")) as server:
        _, out, err = once(server, "m", f"what is in {tmp_path}/a\\ b.png ?")
        assert (out, err) == ("a cat\n", f"added `{picture}`\n")
        assert asked(server)["images"] == [base64.b64encode(picture.read_bytes()).decode()]
        assert asked(server)["prompt"] == "what is in  ?"


def test_a_picture_stays_text_for_a_model_that_does_not_see(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with ollama(answers(SHOWN, "ok")) as server:
        once(server, "m", f"{tmp_path}/a.png")
    assert asked(server) == {"model": "m", "prompt": f"{tmp_path}/a.png", "options": {}}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (Said({"error": "out of memory"}, 500), "error: out of memory"),
        (Said([{"response": "a", "done": False}, {"error": "it broke"}]), "error: it broke"),
        (Said([{"response": "a", "done": False}]), "error: the answer ended without its last line"),
        (Said(b"<html>\n"), "error: what answers on"),
    ],
)
def test_an_answer_that_fails_is_told(said: Said, line: str) -> None:
    with ollama({"POST /api/show": Said(SHOWN), "POST /api/generate": said}) as server:
        code, _, err = once(server, "m", "hi")
    assert (code, err.startswith(line)) == (1, True)


def test_a_model_that_only_this_machine_has_is_run_here(tmp_path: Path) -> None:
    with ollama() as server:
        absent = once(server, "nope", "hi")
        assert server.lines == ["HEAD /", "POST /api/show"]
        assert absent[2].splitlines()[0] == "error: model 'nope' not found"


@pytest.mark.parametrize("flag", ["--local", "--engine=echo", "--threads=1"])
def test_flags_of_this_process_ask_no_server(flag: str) -> None:
    with ollama(answers(SHOWN, "ok")) as server:
        answer = ask_fox("run", flag, "echo", "hi", env={**server.env, "FOX_ENGINE": "echo"})
    assert (answer.stdout, server.lines) == ("hi\n", [])


@contextmanager
def chat(server: Ollama, *words: str) -> Iterator[Fox]:
    with fox("run", *words, "m", env=server.env, terminal=True) as one:
        one.expect("`/\\?` lists the commands")
        yield one


def test_a_chat_loads_the_model_and_sends_every_message() -> None:
    with ollama(answers()) as server, chat(server) as one:
        one.type("hello\n")
        one.expect("ok 1\n", "stdout")
        one.type("again\n")
        one.expect("ok 3\n", "stdout")
        one.type("/clear\nanew\n")
        one.expect("ok 1\nok 3\nok 1\n", "stdout")
        one.type("/bye\n")
        assert one.exit_code() == 0
    assert server.lines == ["HEAD /", "POST /api/show", "POST /api/generate", *["POST /api/chat"] * 3]
    assert asked(server) == {"model": "m", "prompt": "", "options": {}}
    assert server.bodies("/api/chat")[1] == {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "ok 1"},
            {"role": "user", "content": "again"},
        ],
        "options": {},
    }


def test_a_chat_begins_with_the_models_own_messages() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello there"}]
    with ollama(answers({**SHOWN, "messages": messages})) as server, chat(server) as one:
        one.expect("> hi\nhello there\n")


def test_thoughts_are_remembered_with_their_answer() -> None:
    with ollama(answers(THINKER, thoughts=("hm",))) as server, chat(server, "--hidethinking") as one:
        one.type("a\n")
        one.expect("ok 1\n", "stdout")
        one.type("b\n")
        one.expect("ok 3\n", "stdout")
        assert "hm" not in one.stdout
    said = server.bodies("/api/chat")[1]
    assert said["messages"][1] == {"role": "assistant", "content": "ok 1", "thinking": "hm"}
    assert said["think"] is True


def test_set_changes_what_is_asked_for() -> None:
    with ollama(answers(THINKER)) as server, chat(server) as one:
        one.type("/set parameter temperature 0.25\n/set parameter stop a b\n/set system be brief\n")
        one.type("/set format json\n/set nothink\n/set verbose\nhello\n")
        one.expect("eval rate: +20.00 tokens/s")
        one.type("/set noformat\n/set think high\n/set quiet\n/set nohistory\n/set history\nhello\n")
        one.expect("ok 4\n", "stdout")
        assert one.stderr.count("eval rate") == 2  # of the prompt, and of the answer: once only
    first, second = server.bodies("/api/chat")
    assert first["options"] == {"temperature": 0.25, "stop": ["a", "b"]}
    assert first["messages"][0] == {"role": "system", "content": "be brief"}
    assert (first["format"], first["think"]) == ("json", False)
    assert ("format" in second, second["think"]) == (False, "high")


def test_three_quotes_hold_several_lines() -> None:
    with ollama(answers()) as server, chat(server) as one:
        one.type('"""one\ntwo\n"""\n')
        one.expect("ok 1\n", "stdout")
        one.type('/set system """first\nsecond"""\n"""three"""\n')
        one.expect("ok 4\n", "stdout")
    first, second = server.bodies("/api/chat")
    assert first["messages"][0]["content"] == "one\ntwo\n"
    assert second["messages"][0] == {"role": "system", "content": "first\nsecond"}
    assert second["messages"][-1]["content"] == "three"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/set parameter nope 1", "error: unknown parameter 'nope'"),
        ("/set parameter top_k x", "error: "),
        ("/set colour red", "error: `/set colour` wants other words"),
        ("/set format xml", "error: `/set format` wants other words"),
        ("/set", "error: `/set` wants other words"),
        ("/show colour", "error: `/show colour` is nothing to show"),
        ("/nope", "error: no such command `/nope`"),
        ("/?", "/set parameter NAME VALUE"),
        ("/list", "error: not here"),
        ("/save a b", "error: `/save` wants other words"),
        ("/show license", "no license was specified for this model"),
        ("/show info", "context length +8192"),
    ],
)
def test_what_a_command_tells(typed: str, told: str) -> None:
    with ollama(answers()) as server, chat(server) as one:
        one.type(f"{typed}\n")
        one.expect(told)
        one.type("still there\n")
        one.expect("ok 1\n", "stdout")


def test_show_asks_with_what_was_set() -> None:
    with ollama(answers({**SHOWN, "parameters": "top_k 3"})) as server, chat(server) as one:
        one.type("/set system be brief\n/show system\n/show parameters\n")
        one.expect("be brief\n")
        one.expect("top_k 3\n")
    assert server.bodies("/api/show")[1] == {"model": "m", "system": "be brief", "options": {}}


def test_load_begins_a_conversation_with_another_model() -> None:
    with ollama(answers()) as server, chat(server) as one:
        one.type("hello\n")
        one.expect("ok 1\n", "stdout")
        one.type("/load other\nhello\n")
        one.expect("loaded model 'other'")
        one.expect("ok 1\nok 1\n", "stdout")
    assert [body["model"] for body in server.bodies("/api/chat")] == ["m", "other"]
    assert server.lines[-3:] == ["POST /api/show", "POST /api/generate", "POST /api/chat"]


def test_load_of_an_unknown_model_changes_nothing() -> None:
    def show(body: Any) -> Said:
        return Said(SHOWN) if body["model"] == "m" else Said({"error": "model 'x' not found"}, 404)

    with ollama({**answers(), "POST /api/show": show}) as server, chat(server) as one:
        one.type("/load x\nhello\n")
        one.expect("error: couldn't find model 'x'")
        one.expect("ok 1\n", "stdout")
    assert server.bodies("/api/chat")[0]["model"] == "m"


@pytest.mark.parametrize(
    ("parent", "base"), [("", "m"), ("llama3.2:1b", "llama3.2:1b"), ("/blobs/sha256-1", "m")]
)
def test_save_makes_a_model_of_the_conversation(parent: str, base: str) -> None:
    shown = {**SHOWN, "details": {"parent_model": parent}, "messages": [{"role": "user", "content": "hi"}]}
    made: Answer = Said([{"status": "success"}])
    with ollama({**answers(shown), "POST /api/create": made}) as server, chat(server) as one:
        one.type("/set system be brief\n/set parameter seed 3\nhello\n")
        one.expect("ok 2\n", "stdout")
        one.type("/save mine\n")
        one.expect("created new model 'mine'")
    assert server.bodies("/api/create") == [
        {
            "model": "mine",
            "from": base,
            "system": "be brief",
            "parameters": {"seed": 3},
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": "ok 2"},
            ],
        }
    ]


def test_ctrl_c_stops_the_answer_and_not_the_chat() -> None:
    calls = []

    def talk(body: Any) -> Said:
        calls.append(body)
        return (
            Said(chat_lines("Once ", "upon")[:2], holds=True) if len(calls) == 1 else Said(chat_lines("yes"))
        )

    with ollama({**answers(), "POST /api/chat": talk}) as server, chat(server) as one:
        one.type("tell\n")
        one.expect("Once upon", "stdout")
        one.type("\x03")
        one.expect("stopped\n")
        assert server.left.wait(PATIENCE_S)
        one.type("go on\n")
        one.expect("yes\n", "stdout")
    assert [message["content"] for message in calls[1]["messages"]] == ["tell", "Once upon", "go on"]


def test_ctrl_c_ends_a_single_answer() -> None:
    holding: Answer = Said(generate_lines("Once ")[:1], holds=True)
    with (
        ollama({**answers(), "POST /api/generate": holding}) as server,
        fox("run", "m", "tell", env=server.env, terminal=True) as one,
    ):
        one.expect("Once ", "stdout")
        one.type("\x03")
        assert one.exit_code() == 130
        assert server.left.wait(PATIENCE_S)
        assert re.fullmatch(r"\n?", one.stderr)
