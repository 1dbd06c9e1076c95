"""A prompt for SQL, with the lines of earlier times."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .statements import is_complete, statements

_PROMPT = "lance> "
_MORE = "   ...> "
_LINES_KEPT = 1000
_HELP = """\
Statements end with a semicolon and may take several lines. Ctrl-C drops what was typed.
  \\d      the tables        \\di     the indexes
  \\?      this text         \\q      the end, as is Ctrl-D
"""
_COMMANDS = {"\\d": "SHOW TABLES", "\\di": "SHOW INDEXES"}


class Prompt:
    """Reads statements line by line and has `run` run each; an error ends nothing."""

    def __init__(self, run: Callable[[str], None]) -> None:
        self._run = run

    def run(self) -> None:
        print("SQL on Lance tables; \\? for help", file=sys.stderr)
        with _history():
            while (text := self._read()) is not None:
                self._execute(text)

    def _read(self) -> str | None:
        """The next statements; None at the end."""
        text = ""
        while True:
            try:
                line = input(_MORE if text else _PROMPT)
            except EOFError:
                print()
                return None
            except KeyboardInterrupt:
                print()
                text = ""
                continue
            if not text and line.strip().lower() in ("\\q", "quit", "exit", "quit;", "exit;"):
                return None
            if not text and line.strip().startswith("\\"):
                return line.strip()
            text += line + "\n"
            if is_complete(text):
                return text
            if not text.strip():
                text = ""

    def _execute(self, text: str) -> None:
        if text == "\\?":
            print(_HELP, end="")
            return
        started = time.perf_counter()
        try:
            for statement in statements(_COMMANDS.get(text, text)):
                self._run(statement)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
        except Exception as error:
            print(f"error: {error}", file=sys.stderr)
        else:
            print(f"{time.perf_counter() - started:.3f} s", file=sys.stderr)


@contextmanager
def _history() -> Iterator[None]:
    """Editing with earlier lines at hand, where Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = _history_file()
    with suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_LINES_KEPT)
    try:
        yield
    finally:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(path)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "datafusion-lance" / "history"
