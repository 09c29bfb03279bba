"""What a measurement was made on: every table and result file names it."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import torch

from laconic.backends import native
from laconic.version import __version__

Machine = dict[str, str | int | float | None]


def describe() -> Machine:
    """Hardware, versions and date, ready for JSON. Names no user, host or path.

    >>> describe()["laconic"] == __version__
    True
    """
    core = native.core()
    return {
        "cpu": _cpu_model(),
        "cores": _usable_cores(),
        "memory_gib": _memory_gib(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "os": f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "laconic": __version__,
        "commit": _commit(),
        "native": core.isa() if core else None,
        "date": datetime.now(UTC).date().isoformat(),
    }


def summary(machine: Machine) -> str:
    """One line for a table's caption."""
    body = f"native ({machine['native']})" if machine["native"] else "pure Python"
    memory = f", {machine['memory_gib']} GiB" if machine["memory_gib"] else ""
    gpu = f", {machine['gpu']}" if machine["gpu"] else ""
    commit = f" ({machine['commit']})" if machine["commit"] else ""
    return (
        f"{machine['cpu']}, {machine['cores']} cores{memory}{gpu}; torch {machine['torch']}, "
        f"{machine['threads']} threads; laconic {machine['laconic']}{commit}, {body}; {machine['date']}"
    )


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _usable_cores() -> int:
    """Those this process may run on: fewer than the machine's in many containers."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_gib() -> float | None:
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _commit() -> str | None:
    """The commit of the checkout that laconic runs from; None where it is installed."""
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:  # a checkout of something else around us
        return None
    changed = _git("status", "--porcelain", "--", ":/src", ":/native")
    commit = _git("rev-parse", "--short=12", "HEAD")
    return f"{commit}-dirty" if changed else commit


def _git(*arguments: str) -> str | None:
    """What git printed, asked where this file is; None where it failed, or there is no git."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
