"""The twins of `ollama`'s commands against a real `fox serve`, and the same in this process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import PATIENCE_S, Fox, fox


class Ways:
    """Runs commands over one models' folder: where a server runs it answers, else this process."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self._env = env | {"FOX_MODELS_DIR": str(folder / "models")}

    def fox(self, *words: str, text: str = "") -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "fox", *words],
            input=text,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=os.environ | self._env,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def names(self) -> list[str]:
        return [line.split()[0] for line in self.fox("list")[1].splitlines()[1:]]

    @property
    def blobs(self) -> Path:
        return self.folder / "models" / "blobs"


@pytest.fixture(params=["server", "in process"])
def ways(request: pytest.FixtureRequest, tmp_path: Path, no_server: str) -> Iterator[Ways]:
    if request.param == "in process":
        yield Ways(tmp_path, {})
        return
    args = ("serve", "--port", "0", "--host", "127.0.0.1", "--models-dir", str(tmp_path / "models"))
    with fox(*args, "--threads", "1") as server:
        yield Ways(tmp_path, {"FOX_HOST": server.url.removeprefix("http://")})


@pytest.fixture
def echo() -> Iterator[Fox]:
    with fox("serve", "--port", "0", "--host", "127.0.0.1", "--engine", "echo") as server:
        yield server


def at(server: Fox) -> dict[str, str]:
    return {"FOX_HOST": server.url.removeprefix("http://")}


def test_list_names_the_same_either_way(ways: Ways) -> None:
    from fox.cli.list_ import listed
    from fox.registry import Catalog

    shown = json.loads(ways.fox("list", "--json")[1])["models"]
    here = listed(Catalog(ways.folder / "models"))
    assert [(one["name"], one["digest"]) for one in shown] == [(one["name"], one["digest"]) for one in here]


def test_a_model_is_made_shown_copied_and_deleted(ways: Ways, starter_path: Path) -> None:
    shutil.copy(starter_path, ways.folder / "w.gguf")
    (ways.folder / "Modelfile").write_text("FROM ./w.gguf\nSYSTEM be brief\nPARAMETER temperature 0\n")
    code, out, err = ways.fox("create", "mine")
    assert (code, out, err.splitlines()[-1]) == (0, "", "success")
    assert ways.names() == ["mine:latest", "smollm2:135m"]
    assert any(blob.samefile(ways.folder / "w.gguf") for blob in ways.blobs.iterdir())

    assert ways.fox("show", "mine", "--system") == (0, "be brief\n", "")
    assert ways.fox("show", "mine", "--parameters")[1].split() == ["temperature", "0"]
    assert "    temperature    0\n" in ways.fox("show", "mine")[1]

    assert ways.fox("cp", "mine", "other") == (0, "copied 'mine' to 'other'\n", "")
    assert ways.fox("rm", "mine", "other") == (0, "deleted 'mine'\ndeleted 'other'\n", "")
    assert ways.names() == ["smollm2:135m"]
    assert (ways.folder / "w.gguf").exists()


def test_a_model_is_made_from_another(ways: Ways) -> None:
    (ways.folder / "Modelfile").write_text("FROM smollm2:135m\nSYSTEM be brief\n")
    assert ways.fox("create", "mine")[0] == 0
    assert "FROM " in ways.fox("show", "mine", "--modelfile")[1]
    assert ways.fox("rm", "mine")[0] == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["show", "nope"], "error: model 'nope:latest' not found"),
        (["cp", "nope", "x"], 'error: model "nope" not found'),
        (["rm", "nope"], "error: model 'nope' not found"),
        (["rm", "a b"], "error: "),
        (["run", "nope", "hi"], "error: model 'nope' not found"),
    ],
)
def test_refusals_are_the_same_either_way(ways: Ways, words: list[str], line: str) -> None:
    code, out, err = ways.fox(*words)
    assert (code, out) == (1, "")
    assert err.splitlines()[0].startswith(line)


@pytest.mark.model
def test_a_model_answers_the_same_either_way(ways: Ways) -> None:
    words = ("run", "--temperature", "0", "--max-new-tokens", "8", "smollm2:135m", "Say hello.")
    code, out, _ = ways.fox(*words)
    assert code == 0
    assert out.strip()
    form = '--format={"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}'
    code, out, err = ways.fox("run", "--temperature", "0", form, "smollm2:135m", "Say a.")
    assert (code, err) == (0, "")
    assert isinstance(json.loads(out)["a"], bool)


def test_ps_and_stop_see_what_run_has_loaded(echo: Fox) -> None:
    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "fox", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=os.environ | at(echo),
            timeout=PATIENCE_S,
            check=False,
        )

    assert ask("run", "echo", "a b c").stdout == "a b c\n"
    row = ask("ps").stdout.splitlines()[1]
    assert row.split()[0] == "echo:latest"
    assert "100% CPU" in row
    assert row.endswith(" from now")
    assert ask("run", "--keepalive", "-1", "echo", "hi").returncode == 0
    assert ask("ps").stdout.splitlines()[1].endswith("Forever")
    assert ask("stop", "echo").returncode == 0
    assert ask("ps").stdout.splitlines()[1:] == []
    assert ask("stop", "nope").stderr.splitlines()[0] == 'error: couldn\'t find model "nope" to stop'


def test_a_chat_with_a_real_server(echo: Fox) -> None:
    with fox("run", "echo", env=at(echo), terminal=True) as chat:
        chat.expect("`/\\?` lists the commands")
        chat.type("hello there\n")
        chat.expect("hello there\n", "stdout")
        chat.type("/show info\n")
        chat.expect("Model\n")
        chat.type("/set verbose\nagain\n")
        chat.expect("eval count:")
        chat.type("/bye\n")
        assert chat.exit_code() == 0


def test_ctrl_c_stops_the_servers_answer(echo: Fox) -> None:
    many = " ".join(f"w{i}" for i in range(200))
    with fox("run", "echo-slow", env=at(echo), terminal=True) as chat:
        chat.expect("`/\\?` lists the commands")
        chat.type(f"{many}\n")
        chat.expect("w0 w1", "stdout")
        chat.type("\x03")
        chat.expect("stopped\n")
        chat.type("still there\n")
        chat.expect("still there\n", "stdout")
        assert many not in chat.stdout
