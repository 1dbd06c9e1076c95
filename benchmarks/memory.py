"""How much memory something takes, in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any


def most_memory(prepare: Callable[..., Callable[[], Any]], *arguments: Any) -> int:
    """Bytes that a process of its own took at most for one run of `prepare(*arguments)`'s result,
    beyond what it had before that run."""
    spawn = multiprocessing.get_context("spawn")
    # Not a Pool: that ends its processes before they can clear up.
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        return executor.submit(_memory_of, prepare, arguments).result()


def _memory_of(prepare: Callable[..., Callable[[], Any]], arguments: tuple[Any, ...]) -> int:
    run = prepare(*arguments)
    _RESET.write_text("5", encoding="ascii")
    before = _memory()
    run()
    after = _memory()
    files = after["RssFile"] - before["RssFile"]
    return max(after["VmHWM"] - before["VmRSS"] - files, 0)


_RESET = Path("/proc/self/clear_refs")
"""Lets the most that the process has ever had in memory begin anew, at what it has now."""


def _memory() -> dict[str, int]:
    """Bytes in memory: now, at most, and of mapped files, which the system can take back."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    fields = (line.split() for line in lines if line.startswith(("VmHWM", "VmRSS", "RssFile")))
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in fields}
