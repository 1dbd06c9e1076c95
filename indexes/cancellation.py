"""Long work that Ctrl-C ends tidily."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from types import FrameType
from typing import Final, TypeVar

Value = TypeVar("Value")

_STOP: Final[ContextVar[Event | None]] = ContextVar("stop", default=None)


class CancelledError(Exception):
    """Raised inside work that is to end."""


def cancellable(work: Callable[[], Value]) -> Value:
    """The value of `work`, which Ctrl-C ends at its next step, by a KeyboardInterrupt then.

    If it came at any moment, it might come inside a function that DataFusion calls, which makes a
    panic of it. The second one comes at once.
    """
    stop = Event()
    token = _STOP.set(stop)
    try:
        with _interrupts_kept(stop, at_most=1):
            return work()
    except CancelledError as error:
        raise KeyboardInterrupt from error
    finally:
        _STOP.reset(token)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C comes after what is done inside, which is short and done wholly or not at all."""
    with _interrupts_kept(Event(), at_most=None):
        yield


def stop_asked() -> Callable[[], None]:
    """A function that raises `CancelledError` once this work is to end, on any thread."""
    stop = _STOP.get()

    def check() -> None:
        if stop is not None and stop.is_set():
            raise CancelledError

    return check


@contextmanager
def _interrupts_kept(kept: Event, at_most: int | None) -> Iterator[None]:
    """Sets `kept` instead of what SIGINT does otherwise, which is done afterwards."""
    before = signal.getsignal(signal.SIGINT)
    # Python runs handlers on the main thread alone; one of another language stays.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    count = 0

    def keep(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        kept.set()
        if at_most is not None and count > at_most:
            before(number, frame)

    signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if kept.is_set():
            before(signal.SIGINT, None)
