from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts.machine import COMPILER, PYTHON, Machine


@pytest.fixture
def bare(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def machine(bare: Machine) -> Machine:
    bare.put("python3.12", PYTHON)
    bare.put("c++", COMPILER)
    return bare
