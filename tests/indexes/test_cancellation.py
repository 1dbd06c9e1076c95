"""Ctrl-C during long work, and the bar that the work goes through."""

from __future__ import annotations

import io
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from datafusion_lance.indexes.cancellation import CancelledError, cancellable, uninterrupted
from datafusion_lance.indexes.progress import Progress, elapsed


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def bar() -> Progress:
    return Progress("working", 10, "rows", shown=False)


@pytest.fixture(autouse=True)
def _handler_stays() -> object:
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def test_work_ends_at_its_next_step() -> None:
    steps: list[str] = []

    def work() -> None:
        with bar() as steps_of_it:
            interrupt()
            steps.append("goes on")
            try:
                steps_of_it.update(1)
            except CancelledError:
                steps.append("cleans up")
                raise
            steps.append("never")

    with pytest.raises(KeyboardInterrupt):
        cancellable(work)

    assert steps == ["goes on", "cleans up"]


def test_a_step_on_another_thread() -> None:
    def work() -> None:
        with bar() as made, ThreadPoolExecutor(1) as thread:
            thread.submit(made.update, 1).result()
            interrupt()
            thread.submit(list, made.watched([1])).result()

    with pytest.raises(KeyboardInterrupt):
        cancellable(work)


def test_work_that_is_done_before_its_next_step() -> None:
    done: list[int] = []

    def work() -> None:
        interrupt()
        done.append(1)

    with pytest.raises(KeyboardInterrupt):
        cancellable(work)

    assert done == [1]


def test_the_second_time_it_comes_at_once() -> None:
    done: list[int] = []

    def work() -> None:
        interrupt()
        done.append(1)
        interrupt()
        done.append(2)

    with pytest.raises(KeyboardInterrupt):
        cancellable(work)

    assert done == [1]


def test_nothing_comes_between() -> None:
    done: list[int] = []

    def commit() -> None:
        with uninterrupted():
            interrupt()
            interrupt()
            done.append(1)
        done.append(2)

    with pytest.raises(KeyboardInterrupt):
        commit()
    assert done == [1]

    done.clear()
    with pytest.raises(KeyboardInterrupt):
        cancellable(commit)
    # The work hears of it, and would end at its next step.
    assert done == [1, 2]


def test_values_and_errors_come_through() -> None:
    def fail() -> None:
        raise OSError("no space left")

    assert cancellable(lambda: 5) == 5
    with pytest.raises(OSError, match="no space left"):
        cancellable(fail)
    # Each step after it is free of it.
    with bar() as made:
        made.update(1)


def test_other_threads_have_no_interrupts() -> None:
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(cancellable, threading.get_ident).result() != threading.get_ident()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "shown", "says"),
    [(Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)],
)
def test_a_terminal_shows_the_time_of_work_without_steps(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, shown: bool, says: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    before = threading.active_count()
    with elapsed("working", shown):
        assert threading.active_count() == before + says
    assert ("working: 00:00" in stream.getvalue()) == says
    assert threading.active_count() == before


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown, says in ((Terminal(), True, True), (Terminal(), False, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with Progress("working", None, "rows", shown) as made:
            made.expect(4)
            made.update(4)
        assert ("working: 100%" in stream.getvalue()) == says

    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    with Progress("working", 4, "rows", shown=True) as made:
        made.update(4)
    assert quiet.getvalue() == ""
