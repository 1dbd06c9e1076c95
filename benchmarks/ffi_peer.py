"""The peer with an environment of its own: DataFusion 54 over pylance's FFI table provider.

    python ffi_peer.py TABLE

pylance 14 offers its provider to DataFusion 54 only. A request is a JSON line on standard input,
`{"do": "time" | "answer" | "cold", "sql": ...}` or `{"do": "versions"}`, its reply one on standard
output: milliseconds, the first column, the milliseconds of opening the table and the first
run, versions. The table is called images.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from typing import Any

import lance
from datafusion import SessionConfig, SessionContext
from lance import FFILanceTableProvider


def opened(path: str) -> SessionContext:
    session = SessionContext(SessionConfig().set("datafusion.sql_parser.dialect", "duckdb"))
    table: Any = FFILanceTableProvider(lance.dataset(path))
    session.register_table("images", table)
    return session


def replies(path: str) -> None:
    """Answers requests until there are no more."""
    session: SessionContext | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "versions":
            print(json.dumps({name: version(name) for name in ("datafusion", "pylance")}))
            sys.stdout.flush()
            continue
        began = time.perf_counter()
        if session is None or request["do"] == "cold":
            session = opened(path)
        if request["do"] == "time":
            began = time.perf_counter()
        table = session.sql(request["sql"]).to_arrow_table()
        taken = (time.perf_counter() - began) * 1000
        reply = table.column(0).to_pylist() if request["do"] == "answer" else taken
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    replies(sys.argv[1])
