"""What this machine offers a process: cores and memory, container limits included."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
CPU_TOPOLOGY = Path("/sys/devices/system/cpu")


def physical_cores() -> int:
    """Physical cores this process may use: hyper-threads count once, affinity and the cgroup's quota are kept."""
    if not hasattr(os, "sched_getaffinity"):
        return max(1, os.cpu_count() or 1)
    allowed = os.sched_getaffinity(0)
    cores = {_read(CPU_TOPOLOGY / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in allowed}
    return max(1, min(len(cores), _cpu_quota(len(allowed))))


def available_memory_bytes() -> int:
    """Memory that can still be taken without swapping, within the cgroup's limit."""
    free = _meminfo_available()
    limit, used = _read(CGROUP / "memory.max"), _read(CGROUP / "memory.current")
    if limit.isdigit() and used.isdigit():
        return max(0, min(free, int(limit) - int(used)))
    return free


def total_memory_bytes() -> int:
    """Memory of the machine, within the cgroup's limit."""
    total = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limit = _read(CGROUP / "memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def _meminfo_available() -> int:
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return total_memory_bytes() // 2


def _cpu_quota(otherwise: int) -> int:
    """Whole CPUs of the cgroup's quota (`max 100000`, `150000 100000`)."""
    quota, _, period = _read(CGROUP / "cpu.max").partition(" ")
    return max(1, int(quota) // int(period)) if quota.isdigit() and period.isdigit() else otherwise


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
