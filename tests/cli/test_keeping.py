"""`fox list`, `show`, `stop`, `cp` and `rm`, against a server that records what it is asked."""

from __future__ import annotations

import json

import pytest

from tests.cli.fake_ollama import SHOWN, Answer, Ollama, Said, model, ollama
from tests.cli.processes import ask_fox

UNLOADED = Said({"model": "m", "response": "", "done": True, "done_reason": "unload"})
KEEPING: dict[str, Answer] = {
    "POST /api/show": Said(SHOWN),
    "POST /api/generate": UNLOADED,
    "POST /api/copy": Said(),
    "DELETE /api/delete": Said(),
}
ABSENT = Said({"error": "model 'm' not found"}, 404)


def fox(server: Ollama, *words: str) -> tuple[int, str, str]:
    answer = ask_fox(*words, env=server.env)
    return answer.returncode, answer.stdout, answer.stderr


def test_list_asks_the_server_for_its_models() -> None:
    models = [model("llama3.2:1b"), model("gpt-oss:120b-cloud", remote_model="gpt-oss:120b", size=384)]
    with ollama({"GET /api/tags": Said({"models": models})}) as server:
        code, out, _ = fox(server, "list")
    years = out.splitlines()[1].split("    ")[-1]
    assert (code, server.lines) == (0, ["HEAD /", "GET /api/tags"])
    assert out.splitlines() == [
        "NAME                  ID              SIZE      MODIFIED",
        f"llama3.2:1b           baf6a787fdff    1.3 GB    {years}",
        f"gpt-oss:120b-cloud    baf6a787fdff    -         {years}",
    ]
    assert years.endswith("years ago")


@pytest.mark.parametrize(
    "fields",
    [{"digest": "abc"}, {"digest": ""}, {"digest": None}, {"modified_at": "0001-01-01T00:00:00Z"}],
)
def test_list_bears_what_is_short_or_absent(fields: dict[str, object]) -> None:
    with ollama({"GET /api/tags": Said({"models": [model("m:latest", **fields)]})}) as server:
        code, out, _ = fox(server, "ls")
    assert code == 0
    assert out.splitlines()[1].startswith("m:latest")
    assert ("modified_at" not in fields) or out.splitlines()[1].endswith("Never")


def test_list_takes_a_prefix() -> None:
    models = [model("llama3.2:1b"), model("qwen3:4b")]
    with ollama({"GET /api/tags": Said({"models": models})}) as server:
        _, out, err = fox(server, "list", "QW")
        _, none, no_hint = fox(server, "list", "zz")
    assert [line.split()[0] for line in out.splitlines()] == ["NAME", "qwen3:4b"]
    assert (len(none.splitlines()), err, no_hint) == (1, "", "")


def test_stop_shows_the_model_and_unloads_it() -> None:
    with ollama(KEEPING) as server:
        code, out, err = fox(server, "stop", "m")
    assert (code, out, err) == (0, "", "")
    assert server.lines == ["HEAD /", "POST /api/show", "POST /api/generate"]
    assert server.bodies("/api/generate") == [{"model": "m", "keep_alive": 0}]


def test_stop_leaves_a_model_of_another_machine_alone() -> None:
    with ollama({**KEEPING, "POST /api/show": Said({**SHOWN, "remote_host": "https://x"})}) as server:
        assert fox(server, "stop", "m")[0] == 0
    assert server.lines == ["HEAD /", "POST /api/show"]


def test_stop_of_an_unknown_model_says_so() -> None:
    with ollama({"POST /api/show": ABSENT}) as server:
        code, out, err = fox(server, "stop", "m")
    assert (code, out) == (1, "")
    assert err.splitlines()[0] == 'error: couldn\'t find model "m" to stop'


def test_stop_needs_a_server(no_server: str) -> None:
    answer = ask_fox("stop", "m")
    assert (answer.returncode, answer.stderr.splitlines()[0]) == (
        1,
        f"error: no server answers on {no_server}",
    )


def test_cp_names_source_and_destination() -> None:
    with ollama(KEEPING) as server:
        code, out, err = fox(server, "cp", "a", "b")
    assert (code, out, err) == (0, "copied 'a' to 'b'\n", "")
    assert server.lines == ["HEAD /", "POST /api/copy"]
    assert server.bodies("/api/copy") == [{"source": "a", "destination": "b"}]


def test_rm_stops_each_model_and_deletes_it() -> None:
    with ollama(KEEPING) as server:
        code, out, err = fox(server, "rm", "a", "b", "-y")
    assert (code, out, err) == (0, "deleted 'a'\ndeleted 'b'\n", "")
    each = ["POST /api/show", "POST /api/generate", "DELETE /api/delete"]
    assert server.lines == ["HEAD /", *each, *each]
    assert server.bodies("/api/delete") == [{"model": "a"}, {"model": "b"}]


def test_rm_goes_on_where_a_model_cannot_be_stopped() -> None:
    with ollama({**KEEPING, "POST /api/generate": Said({"error": "busy"}, 500)}) as server:
        code, out, err = fox(server, "rm", "a")
    assert (code, out) == (0, "deleted 'a'\n")
    assert err == "warning: unable to stop model 'a': busy\n"


def test_rm_of_an_unknown_model_ends_there() -> None:
    with ollama({"POST /api/show": ABSENT, "DELETE /api/delete": ABSENT}) as server:
        code, out, err = fox(server, "rm", "m", "n")
    assert (code, out, err.splitlines()[0]) == (1, "", "error: model 'm' not found")
    assert server.lines == ["HEAD /", "POST /api/show", "DELETE /api/delete"]


def test_show_prints_ollamas_sections() -> None:
    shown = {
        **SHOWN,
        "capabilities": ["completion", "vision"],
        "projector_info": {
            "general.architecture": "clip",
            "general.parameter_count": 415_000_000,
            "clip.vision.embedding_length": 1024,
            "clip.vision.projection_dim": 4096,
        },
        "parameters": 'stop                           "<|eot_id|>"\ntemperature                    0.7',
        "system": "one\n\ntwo\nthree",
        "license": "Apache License\nVersion 2.0",
    }
    with ollama({"POST /api/show": Said(shown)}) as server:
        _, out, _ = fox(server, "show", "m")
    assert out == (
        "  Model\n"
        "    architecture        llama\n"
        "    parameters          1.2B\n"
        "    context length      8192\n"
        "    embedding length    576\n"
        "    quantization        Q4_K_M\n\n"
        "  Capabilities\n    completion\n    vision\n\n"
        "  Projector\n"
        "    architecture        clip\n"
        "    parameters          415M\n"
        "    embedding length    1024\n"
        "    dimensions          4096\n\n"
        '  Parameters\n    stop           "<|eot_id|>"\n    temperature    0.7\n\n'
        "  System\n    one\n    two\n    ...\n\n"
        "  License\n    Apache License\n    Version 2.0\n\n"
    )
    assert server.bodies("/api/show") == [{"model": "m"}]


def test_show_leaves_out_what_is_no_number() -> None:
    shown = {**SHOWN, "model_info": {"general.architecture": "llama", "llama.context_length": "8192"}}
    with ollama({"POST /api/show": Said(shown)}) as server:
        code, out, _ = fox(server, "show", "m")
    assert code == 0
    assert "context length" not in out


def test_show_verbose_tells_all_metadata_and_tensors() -> None:
    info = {
        "general.architecture": "llama",
        "llama.rope.freq_base": 500000.0,
        "some.flag": True,
        "some.list": list(range(20)),
    }
    tensors = [{"name": "output.weight", "type": "Q4_K", "shape": [576, 49152]}]
    with ollama({"POST /api/show": Said({**SHOWN, "model_info": info, "tensors": tensors})}) as server:
        _, out, _ = fox(server, "show", "-v", "m")
    assert server.bodies("/api/show") == [{"model": "m", "verbose": True}]
    assert "    llama.rope.freq_base    500000\n" in out
    assert "    some.flag               true\n" in out
    assert "    some.list               [0 1 2 ...+17 more]\n" in out
    assert "    output.weight    Q4_K    [576 49152]\n" in out


@pytest.mark.parametrize("part", ["license", "modelfile", "parameters", "system", "template"])
def test_show_prints_one_part_as_it_is(part: str) -> None:
    with ollama({"POST /api/show": Said({**SHOWN, part: "some\n  text"})}) as server:
        assert fox(server, "show", "m", f"--{part}") == (0, "some\n  text\n", "")
    with ollama({"POST /api/show": Said(SHOWN)}) as server:
        assert fox(server, "show", "m", f"--{part}") == (0, "", "")


def test_show_takes_one_flag_only() -> None:
    answer = ask_fox("show", "m", "--system", "--license")
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[0] == (
        "error: only one of '--license', '--modelfile', '--parameters', '--system', or '--template' "
        "can be specified"
    )


def test_show_as_json_is_the_servers_answer() -> None:
    with ollama({"POST /api/show": Said(SHOWN)}) as server:
        assert json.loads(fox(server, "show", "m", "--json")[1]) == SHOWN


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (Said({"error": "model 'm' not found"}, 404), "error: model 'm' not found"),
        (Said({"error": {"message": "no such model"}}, 404), "error: no such model"),
        (Said({"error": "unauthorized", "signin_url": "x"}, 401), "error: unauthorized"),
    ],
)
def test_a_refusal_is_told_in_the_servers_words(said: Said, line: str) -> None:
    with ollama({"POST /api/show": said}) as server:
        code, out, err = fox(server, "show", "m")
    assert (code, out, err.splitlines()[0]) == (1, "", line)


def test_an_address_that_somebody_named_is_not_left_for_this_process(no_server: str) -> None:
    for words in (["list"], ["show", "smollm2"], ["rm", "smollm2"], ["run", "smollm2", "hi"]):
        answer = ask_fox(*words, "--url", no_server)
        assert answer.returncode == 1
        assert answer.stderr.startswith(f"error: no server answers on {no_server}\n")


def test_a_web_server_on_the_default_address_is_passed_over_unless_it_was_named() -> None:
    class Web(Ollama):
        def answer(self, asked: object) -> Said:
            return Said(b"<html>", 404)

    with ollama(kind=Web) as server:
        assert "smollm2:135m" in fox(server, "list")[1]
        named = ask_fox("list", "--url", server.url)
    assert named.stderr.startswith(f"error: what answers on {server.url} is not fox\n")
