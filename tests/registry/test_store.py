"""A store in Ollama's layout: read in place, written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fox.registry import writing
from fox.registry.catalog import Catalog
from fox.registry.names import ModelName
from fox.registry.recipe import read_recipe
from fox.registry.store import BadDigestError, DigestMismatchError, Layer, Store, StoreError
from fox.registry.writing import Writer

NAME = ModelName.parse("tiny")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def put(store: Store, name: str = "tiny", **texts: str) -> None:
    """A model of these layers."""
    writer = Writer(store)
    layers = [writer.add(text.encode(), kind)[0] for kind, text in {"model": "weights", **texts}.items()]
    writer.write(ModelName.parse(name), {"model_format": "gguf"}, layers)


def state(store: Store) -> dict[str, str]:
    """Every file and its hash."""
    files = (path for path in store.root.rglob("*") if path.is_file())
    return {str(p.relative_to(store.root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_what_is_written_is_ollamas_layout(store: Store) -> None:
    put(store, system="Be brief.")
    file = store.root / "manifests/registry.ollama.ai/library/tiny/latest"
    fields = json.loads(file.read_bytes())
    assert fields["schemaVersion"] == 2
    assert fields["config"]["mediaType"] == "application/vnd.docker.container.image.v1+json"
    assert [layer["mediaType"].rpartition(".")[2] for layer in fields["layers"]] == ["model", "system"]
    for layer in (fields["config"], *fields["layers"]):
        blob = store.root / "blobs" / layer["digest"].replace(":", "-")
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == layer["digest"][7:]
        assert blob.stat().st_size == layer["size"]
    (manifest,) = store.manifests()
    assert manifest.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    assert manifest.size_bytes == sum(blob.stat().st_size for blob in (store.root / "blobs").iterdir())


def test_layers_become_a_recipe(store: Store) -> None:
    messages = json.dumps([{"role": "user", "content": "hi"}, {"role": "robot", "content": "no"}])
    put(
        store,
        template="{{ .Prompt }}",
        system="S",
        params='{"temperature": 0.1}',
        messages=messages,
        license="L",
    )
    recipe = read_recipe(store, store.manifests()[0])
    assert (recipe.template, recipe.system, recipe.licenses) == ("{{ .Prompt }}", "S", ("L",))
    assert recipe.parameters == {"temperature": 0.1}
    assert recipe.messages == ({"role": "user", "content": "hi"},)


def test_a_manifest_is_read_again_only_when_it_changes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store)
    first = store.manifests()
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("read again"))
    assert store.manifests() == first
    monkeypatch.undo()
    put(store, system="new")
    assert len(store.manifests()[0].layers) == 2


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("registry.ollama.ai/library/half/latest", b'{"schemaVersion": 2, "config": {'),
        ("registry.ollama.ai/library/empty/latest", b""),
        ("registry.ollama.ai/library/list/latest", b"[]"),
        ("registry.ollama.ai/library/null/latest", b"null"),
        (
            "registry.ollama.ai/library/digest/latest",
            b'{"config": {"digest": "sha256:../../x", "size": 1}, "layers": []}',
        ),
        (
            "registry.ollama.ai/library/size/latest",
            b'{"config": {"digest": "sha256:%s", "size": -1}}' % (b"0" * 64),
        ),
        (
            "registry.ollama.ai/library/a b/latest",
            b'{"config": {"digest": "sha256:%s", "size": 1}}' % (b"0" * 64),
        ),
        ("registry.ollama.ai/library/.DS_Store", b"\0\0"),
        ("registry.ollama.ai/library/deep/er/latest", b"{}"),
        ("registry.ollama.ai/shallow", b"{}"),
        (".DS_Store", b"\0"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_passed_over(store: Store, path: str, content: bytes) -> None:
    put(store)
    file = store.root / "manifests" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    assert [one.name.shortest for one in store.manifests()] == ["tiny:latest"]


def test_links_that_leave_the_store_are_refused(store: Store, tmp_path: Path) -> None:
    put(store)
    secret = tmp_path / "secret"
    secret.write_text("{}")
    digest = "sha256:" + "a" * 64
    (store.root / "blobs" / digest.replace(":", "-")).symlink_to(secret)
    with pytest.raises(StoreError, match="leaves the store"):
        store.blob(digest)
    (store.root / "manifests/registry.ollama.ai/library/evil").mkdir()
    (store.root / "manifests/registry.ollama.ai/library/evil/latest").symlink_to(secret)
    assert [one.name.model for one in store.manifests()] == ["tiny"]


def test_a_folder_of_blobs_may_lie_on_another_disk(store: Store, tmp_path: Path) -> None:
    put(store)
    (store.root / "blobs").rename(tmp_path / "big")
    (store.root / "blobs").symlink_to(tmp_path / "big")
    manifest = store.manifests()[0]
    assert store.text(manifest.layers[0]) == "weights"


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "sha256:xyz", "sha256:" + "A" * 64, "md5:" + "a" * 64, "../" * 9, None, 5]
)
def test_what_is_no_digest_is_refused(store: Store, digest: Any) -> None:
    with pytest.raises(BadDigestError):
        store.blob(digest)


def test_a_blob_that_is_not_what_its_digest_says_is_not_kept(store: Store) -> None:
    with Writer(store).receive() as incoming:
        incoming.write(b"something else")
        with pytest.raises(DigestMismatchError, match="digest mismatch, expected"):
            incoming.become_blob("sha256:" + "0" * 64)
    assert state(store) == {}


def test_a_blob_that_breaks_off_is_not_kept(store: Store) -> None:
    def leave() -> None:
        with Writer(store).receive() as incoming:
            incoming.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert state(store) == {}


def test_a_file_is_adopted_without_copying_it(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" * 1000)
    layer, new = Writer(store).adopt(file, "model")
    assert new
    assert store.blob(layer.digest).stat().st_ino == file.stat().st_ino
    assert Writer(store).adopt(file, "model") == (layer, False)


def test_where_nothing_can_be_linked_a_file_is_copied(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" * 1000)

    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "other disk")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    layer, _ = Writer(store).adopt(file, "model")
    assert store.blob(layer.digest).read_bytes() == file.read_bytes()
    assert store.blob(layer.digest).stat().st_ino != file.stat().st_ino


@pytest.mark.parametrize("step", ["mkdir", "write", "replace"])
def test_a_full_disk_leaves_the_store_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    put(store)
    before = state(store)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    where = {"mkdir": (Path, "mkdir"), "write": (os, "fsync"), "replace": (Path, "replace")}[step]
    monkeypatch.setattr(*where, full)
    with pytest.raises(StoreError, match="the disk is full"):
        put(store, system="this does not fit")
    monkeypatch.undo()
    assert state(store) == before


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="cannot write to"):
        Writer(Store(tmp_path)).add(b"x", "system")


def test_a_name_in_another_case_is_written_over(store: Store) -> None:
    put(store, "Tiny")
    put(store, "tiny", system="new")
    (manifest,) = store.manifests()
    assert (manifest.name.model, len(manifest.layers)) == ("Tiny", 2)


def test_deleting_takes_only_what_no_other_model_names(store: Store) -> None:
    put(store, "one", system="one alone")
    put(store, "two")
    both = store.manifests()[0].of("model")[0].digest
    Writer(store).delete(next(one for one in store.manifests() if one.name.model == "one"))
    assert [one.name.model for one in store.manifests()] == ["two"]
    assert store.blob(both).is_file()
    assert not (store.root / "manifests/registry.ollama.ai/library/one").exists()
    assert len(list((store.root / "blobs").iterdir())) == 2


def test_beside_a_manifest_that_cannot_be_read_no_blob_is_deleted(store: Store) -> None:
    put(store, "one", system="one alone")
    put(store, "two")
    (store.root / "manifests/registry.ollama.ai/library/two/latest").write_text("{")
    blobs = sorted((store.root / "blobs").iterdir())
    Writer(store).delete(store.manifests()[0])
    assert sorted((store.root / "blobs").iterdir()) == blobs


def test_a_copy_is_the_same_model_under_another_name(store: Store) -> None:
    put(store)
    Writer(store).copy(store.manifests()[0], ModelName.parse("other:v2"))
    assert {one.name.shortest: one.digest for one in store.manifests()}["other:v2"] == store.find(NAME).digest  # type: ignore[union-attr]


def test_models_of_a_store_are_in_the_catalog_by_their_shortest_names(store: Store) -> None:
    for name in ("tiny", "me/mine:v1", "hf.co/org/Repo.x:Q4_K_M"):
        put(store, name)
    catalog = Catalog(store.root, starter=False)
    assert sorted(entry.name for entry in catalog.entries()) == [
        "hf.co/org/Repo.x:Q4_K_M",
        "me/mine:v1",
        "tiny:latest",
    ]
    for asked in (
        "tiny",
        "TINY:latest",
        "registry.ollama.ai/library/tiny",
        "library/tiny:latest",
        "https://registry.ollama.ai/library/tiny",
    ):
        assert catalog.find(asked).name == "tiny:latest", asked
    assert catalog.find("hf.co/org/repo.X:q4_k_m").name == "hf.co/org/Repo.x:Q4_K_M"
    assert catalog.find("repo.x").name == "hf.co/org/Repo.x:Q4_K_M"


def test_a_second_store_is_read_where_it_is(store: Store, tmp_path: Path) -> None:
    put(store)
    catalog = Catalog(tmp_path / "mine", starter=False, stores=[store.root])
    assert [entry.name for entry in catalog.entries()] == ["tiny:latest"]
    assert not (tmp_path / "mine").exists()


def test_an_old_prompt_layer_is_a_template() -> None:
    fields = {"mediaType": "application/vnd.ollama.image.prompt", "digest": "sha256:" + "0" * 64, "size": 1}
    assert Layer.of(fields).kind == "template"


def test_nothing_is_linked_where_a_blob_is_there_already(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "same"
    file.write_bytes(b"weights")
    put(store)
    monkeypatch.setattr(writing, "_link", lambda *_: pytest.fail("linked"))
    assert Writer(store).adopt(file, "model")[1] is False
