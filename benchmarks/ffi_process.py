"""The process of `ffi_peer.py`, which runs in the second environment."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

SCRIPT = Path(__file__).resolve().parent / "ffi_peer.py"
FFI = "DataFusion 54, FFI"


class FfiProcess:
    """A table in a process of its own; ends with the `with` statement."""

    def __init__(self, python: Path, table: Path) -> None:
        self._process = subprocess.Popen(
            [python, SCRIPT, table],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, do: str, sql: str = "") -> Any:
        """The reply; RuntimeError with what the process said last, if it gives none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, "sql": sql}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            line = ""
        else:
            line = self._process.stdout.readline()
        if not line:
            _, said = self._process.communicate()
            raise RuntimeError(f"{FFI}: {said.strip()[-500:]}")
        return json.loads(line)

    def __enter__(self) -> FfiProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()


@dataclass(frozen=True, slots=True)
class FfiStatement:
    """A contender: a statement in that process, which times itself."""

    process: FfiProcess
    sql: str

    def answer(self) -> pa.Table:
        return pa.table({"first": self.process.ask("answer", self.sql)})

    def milliseconds(self) -> float:
        return self.process.ask("time", self.sql)
