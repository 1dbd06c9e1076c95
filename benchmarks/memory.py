"""How much memory something takes, in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import threading
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
    before = _resident()
    most = before
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.005):
            most = max(most, _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    done.set()
    watcher.join()
    return most - before


def _resident() -> int:
    """Bytes in memory, without those of mapped files, which the system can take back."""
    _, resident, shared = Path("/proc/self/statm").read_text(encoding="ascii").split()[:3]
    return (int(resident) - int(shared)) * resource.getpagesize()
