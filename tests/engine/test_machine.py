from __future__ import annotations

from pathlib import Path

import pytest

from fox.engine import machine


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    return tmp_path


def test_there_is_at_least_one_core() -> None:
    assert machine.physical_cores() >= 1


@pytest.mark.parametrize(
    ("quota", "cores"), [("100000 100000", 1), ("50000 100000", 1), ("nonsense", None), ("max 100000", None)]
)
def test_the_cgroup_quota_bounds_the_cores(cgroup: Path, quota: str, cores: int | None) -> None:
    unlimited = machine.physical_cores()
    (cgroup / "cpu.max").write_text(quota + "\n")
    assert machine.physical_cores() == (cores or unlimited)


def test_hyper_threads_of_one_core_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CPU_TOPOLOGY", tmp_path)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    for cpu in range(4):
        (tmp_path / f"cpu{cpu}/topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}/topology/thread_siblings_list").write_text("0-1\n" if cpu < 2 else "2-3\n")
    assert machine.physical_cores() == 2


def test_the_cgroup_limit_bounds_the_memory(cgroup: Path) -> None:
    assert machine.available_memory_bytes() > 1 << 20
    (cgroup / "memory.max").write_text("1000000\n")
    (cgroup / "memory.current").write_text("400000\n")
    assert machine.available_memory_bytes() == 600000
