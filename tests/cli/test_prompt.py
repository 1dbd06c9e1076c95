"""The prompt of `datafusion-lance sql`."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from datafusion_lance.cli.prompt import Prompt

from .command import Command, Result

Typing = Callable[..., Result]


@pytest.fixture
def typing(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typing:
    """What a session prints in which the given lines are typed; an exception is a key."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)

    def typed(*lines: str | BaseException) -> Result:
        keys: Iterator[str | BaseException] = iter((*lines, EOFError()))

        def read(_: str) -> str:
            line = next(keys)
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr(builtins, "input", read)
        return command("sql", "-t", command.images, "--format", "csv")

    return typed


def test_statements_may_take_several_lines(typing: Typing) -> None:
    result = typing("SELECT count(*) AS n", "FROM images", ";", "", "SELECT ';", "' AS s;")

    assert result.code == 0
    assert result.lines == ['"n"', "6", '"s"', '";', '"', ""]


def test_an_error_ends_nothing(typing: Typing) -> None:
    result = typing("SELECT nope;", "SELECT 1 AS one;")

    assert result.lines[:2] == ['"one"', "1"]
    assert "error: Schema error: No field named nope" in result.err
    assert "Traceback" not in result.err


def test_ctrl_c_drops_what_was_typed(typing: Typing) -> None:
    result = typing("SELECT nope", KeyboardInterrupt(), "SELECT 1 AS one;")

    assert '"one"' in result.lines
    assert "nope" not in result.err


def test_commands(typing: Typing) -> None:
    assert '"images"' in typing("\\d").out
    assert '"unusable"' in typing("\\di").out
    assert "\\q" in typing("\\?").out
    for end in ("\\q", "quit", "EXIT;"):
        assert typing(end, "SELECT 1;").out == ""
    assert "error:" in typing("\\nope").err


def test_lines_are_kept_for_the_next_time(typing: Typing, tmp_path: Path) -> None:
    pytest.importorskip("readline")

    typing("\\q")

    assert (tmp_path / "state" / "datafusion-lance" / "history").exists()


def test_without_readline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "readline", None)
    monkeypatch.setattr(builtins, "input", lambda _: "\\q")

    Prompt(lambda _: None).run()
