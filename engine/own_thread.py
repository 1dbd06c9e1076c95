"""Work that DataFusion cannot do on the thread that asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_own_thread(work: Callable[[], Result]) -> Result:
    """What `work` returns or raises, done on a thread of its own while this one waits.

    DataFusion calls tables and functions of Python on threads of its runtime, or while it
    blocks one for it; a SessionContext that is used there panics, and on another thread it
    works.
    """
    # Either is set before the thread ends; a panic is no Exception.
    done: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # whatever it is, it is raised below
            failed.append(error)

    thread = threading.Thread(target=run, name="datafusion-lance", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
