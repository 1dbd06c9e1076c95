"""The bar that long work shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final, TypeVar

from tqdm import tqdm

from .cancellation import stop_asked

Item = TypeVar("Item")

_SECONDS: Final = 0.5


class Progress:
    """A bar on stderr; every step of the work goes through it, so that the work can be cancelled.

    It is quiet where stderr is no terminal, or where it is not wanted. A context manager.
    """

    def __init__(self, what: str, total: int | None, unit: str, shown: bool) -> None:
        self._check = stop_asked()
        # With None, tqdm looks for the terminal itself.
        self._bar: tqdm[Any] = tqdm(
            total=total, desc=what, unit=f" {unit}", disable=None if shown else True
        )

    def expect(self, total: int) -> None:
        """Says how many units there are in all."""
        self._bar.total = total

    def update(self, units: int) -> None:
        """Says that so many more units are done.

        Raises `CancelledError` where the work is to end.
        """
        self._check()
        self._bar.update(units)

    def watched(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items as they are; see `update` for what else may come of them."""
        for item in items:
            self.update(0)
            yield item

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


@contextmanager
def elapsed(what: str, shown: bool) -> Iterator[None]:
    """Shows how long work takes that tells nothing of its steps; quiet where a bar would be."""
    line: tqdm[Any] = tqdm(
        desc=what, bar_format="{desc}: {elapsed}", disable=None if shown else True
    )
    done = Event()

    def tick() -> None:
        while not done.wait(_SECONDS):
            line.refresh()

    ticking = Thread(target=tick, name="datafusion-lance", daemon=True)
    if not line.disable:
        ticking.start()
    try:
        yield
    finally:
        done.set()
        if ticking.is_alive():
            ticking.join()
        line.close()
