"""What ships beside the code: the image, the compose file, the workflow. Read here, never built."""

from __future__ import annotations

from pathlib import Path

import yaml

from fox import config

ROOT = Path(__file__).resolve().parents[1]


def dockerfile() -> list[list[str]]:
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_what_the_image_copies_is_there_and_is_all_that_the_builder_gets() -> None:
    ignore = (ROOT / ".dockerignore").read_text("utf-8").split()
    sent = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    copies = [line[1:-1] for line in dockerfile() if line[0] == "COPY" and "--from" not in line[1]]
    assert {source for sources in copies for source in sources} == sent
    assert [source for source in sent if not (ROOT / source).exists()] == []


def test_the_image_runs_as_a_user_and_is_asked_for_its_health() -> None:
    words = [line[0] for line in dockerfile()]
    assert {"USER", "HEALTHCHECK", "EXPOSE", "VOLUME"} <= set(words[len(words) - words[::-1].index("FROM") :])


def test_compose_keeps_models_in_a_volume_and_offers_the_gpu_only_when_asked() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    services = compose["services"]
    assert services["fox-gpu"]["profiles"] == ["gpu"]
    assert "profiles" not in services["fox"]
    for service in services.values():
        volume = service["volumes"][0].split(":")[0]
        assert volume in compose["volumes"]


def test_the_workflow_runs_what_people_run() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    steps = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert "scripts/test" in steps


def readme_rows(heading: str) -> list[list[str]]:
    """The table under a heading of the README: its rows without the head, as cells."""
    section = (ROOT / "README.md").read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_what_the_readme_claims_names_tests_that_exist() -> None:
    named = [path.strip("`") for cells in readme_rows("What works") for path in cells[-1].split(", ")]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_lists_the_flags_of_serve() -> None:
    listed = [
        flag.strip("` ") for cells in readme_rows("Flags of `fox serve`") for flag in cells[0].split(",")
    ]
    assert sorted(listed) == sorted(option.flag for option in config.OPTIONS)
