"""Which processes have ended, as far as this one can see."""

from __future__ import annotations

import os
import subprocess
import sys
from uuid import uuid4

import pytest

from datafusion_lance.indexes import owner
from datafusion_lance.indexes.owner import has_ended, is_running, this_process

NAMED = "import datafusion_lance.indexes.owner as o; print(o.this_process(), flush=True); input()"

pytestmark = pytest.mark.skipif(not this_process(), reason="nothing names a process here")


def test_this_one_has_not() -> None:
    assert not has_ended(this_process())
    assert is_running(this_process())


def test_another_one_has_once_it_has() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        named = other.stdout.readline().strip()
        assert str(other.pid) in named
        assert not has_ended(named)
        assert is_running(named)
        other.kill()
        other.wait()

    assert has_ended(named)
    assert not is_running(named)


@pytest.mark.parametrize(
    "named", ["", "x", "a b c d", "-1", f"{uuid4()} pid:[1] 1 1"], ids=range(5)
)
def test_what_cannot_be_seen_has_not(named: str) -> None:
    assert not has_ended(named)
    assert not is_running(named)


def test_the_same_number_elsewhere_has_not() -> None:
    boot, namespace, _, began = this_process().split(" ")
    gone = str(2**22 + 5)

    assert has_ended(f"{boot} {namespace} {gone} {began}")
    assert not has_ended(f"{uuid4()} {namespace} {gone} {began}")
    assert not has_ended(f"{boot} pid:[1] {gone} {began}")
    assert not has_ended(f"{boot} {namespace} 0 {began}")


def test_one_that_is_hidden_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    named = this_process()

    def denied(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", denied)
    monkeypatch.setattr(owner, "_state", lambda _: ("", ""))

    assert not has_ended(named)


def test_where_nothing_names_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    named = this_process()
    monkeypatch.setattr(owner, "_place", lambda: None)

    assert this_process() == ""
    assert not has_ended(named)
