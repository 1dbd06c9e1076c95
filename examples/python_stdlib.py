"""Index Python's standard library and ask it questions.

Builds a Lance table with a row for each function, method and class of the standard library of the
Python that runs this, indexes the rows' labels, the fields of their parameters and their
docstrings, and answers each question twice: from the indexes, and by DataFusion's own scan.

    python examples/python_stdlib.py
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import pkgutil
import platform
import re
import statistics
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa

from datafusion_lance.engine import LanceSessionContext

SCHEMA = pa.schema(
    {
        "name": pa.string(),
        "module": pa.string(),
        "labels": pa.list_(pa.string()),
        # NULL where Python cannot tell, as for many functions that are written in C.
        "parameters": pa.list_(
            pa.struct(
                {
                    "name": pa.string(),
                    "kind": pa.string(),
                    "default": pa.string(),
                    "annotation": pa.string(),
                }
            )
        ),
        "docstring": pa.string(),
        "lines": pa.int32(),  # NULL without Python source
    }
)

LEFT_OUT = {
    "antigravity",  # opens a browser
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "test",
    "tests",
    "this",  # prints a poem
    "turtledemo",
}

QUESTIONS = {
    "Which coroutines of asyncio take keyword-only parameters?": """
        SELECT name, array_length(parameters) AS parameters FROM stdlib
        WHERE array_has_all(labels, ['asyncio', 'async', 'keyword_only'])
        ORDER BY name
        """,
    "Which are the longest generators without a docstring?": """
        SELECT name, lines FROM stdlib
        WHERE array_has_any(labels, ['generator', 'async_generator'])
          AND NOT array_has(labels, 'has_docstring') AND lines > 20
        ORDER BY lines DESC, name
        """,
    "Which modules define the most exceptions?": """
        SELECT module, count(*) AS exceptions FROM stdlib
        WHERE 'exception' = ANY(labels)
        GROUP BY module ORDER BY exceptions DESC, module LIMIT 5
        """,
    "How many public functions and methods have no docstring?": """
        SELECT count(*) AS functions FROM stdlib
        WHERE array_has_any(labels, ['function', 'method'])
          AND NOT array_has_any(labels, ['private', 'special', 'has_docstring'])
        """,
    "Which functions have a parameter `key` that only a keyword can give?": """
        SELECT name FROM stdlib
        WHERE any_element(parameters, 'name = ''key'' AND kind = ''keyword-only''')
        ORDER BY name
        """,
    "Which coroutines have a timeout that is not None by default?": """
        SELECT name FROM stdlib
        WHERE array_has(labels, 'async')
          AND any_element(parameters, 'name = ''timeout'' AND "default" IS DISTINCT FROM ''None''')
        ORDER BY name
        """,
    "How many methods have no parameter `self`?": """
        SELECT count(*) AS methods FROM stdlib
        WHERE array_has(labels, 'method') AND NOT any_element(parameters, 'name = ''self''')
        """,
    "Which public docstrings are closest to these words?": """
        SELECT name, minhash_distance(docstring,
            'Reload the module and return it. It must have been imported before.') AS distance
        FROM stdlib WHERE NOT array_has(labels, 'private')
        ORDER BY distance, name LIMIT 5
        """,
    "Which docstrings were taken over from another module, with changes?": """
        SELECT a.name AS one, b.name AS other, _distance
        FROM minhash_pairs('stdlib', 'docstring', 0.12)
            JOIN stdlib AS a ON a._rowid = left_rowid JOIN stdlib AS b ON b._rowid = right_rowid
        WHERE _distance > 0 AND a.module <> b.module
        ORDER BY _distance, one, other
        """,
}

INDEXES: list[tuple[str, str, dict[str, Any]]] = [
    ("labels", "LABEL_LIST", {}),
    ("parameters", "LIST_ELEMENT", {"keys": ["name", "kind"]}),
    ("docstring", "MINHASHLSH", {}),
]

RUNS = 5


def standard_modules() -> Iterator[ModuleType]:
    """The public modules of the standard library that can be imported here."""
    pending = sorted(sys.stdlib_module_names)
    while pending:
        name = pending.pop()
        last = name.rpartition(".")[2]
        if last.startswith("_") or last in LEFT_OUT:
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                module = importlib.import_module(name)
        except ImportError:  # made for another system, or without a library that it needs
            continue
        yield module
        inside = pkgutil.iter_modules(getattr(module, "__path__", []))
        pending += sorted(f"{name}.{info.name}" for info in inside)


def definitions(module: ModuleType) -> Iterator[tuple[str, str, Any]]:
    """Name within the module, kind and object of what `module` itself defines."""
    for value in list(vars(module).values()):  # copied, as looking at one may import another
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            yield value.__qualname__, "class", value
            for name, member in list(vars(value).items()):
                function = getattr(member, "__func__", member)  # under class and static methods
                if inspect.isroutine(function):
                    yield f"{value.__qualname__}.{name}", "method", function
        elif inspect.isroutine(value):
            yield value.__qualname__, "function", value


def line_counts(module: ModuleType) -> dict[str, int]:
    """Lines of each function and class in the module's source, by name within the module."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError):  # no Python source
        return {}
    counts: dict[str, int] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = prefix + child.name
                counts[name] = (child.end_lineno or child.lineno) - child.lineno + 1
                visit(child, f"{name}.")
            else:
                visit(child, prefix)

    visit(tree, "")
    return counts


def parameters(value: Any) -> list[dict[str, str | None]] | None:
    """The signature's parameters, or None where there is no signature to read."""
    try:
        signature = inspect.signature(value)
    except (AttributeError, TypeError, ValueError):
        return None

    def text(of: Any, show: Callable[[Any], str]) -> str | None:
        # Addresses in memory differ between two runs.
        return None if of is inspect.Parameter.empty else re.sub(r" at 0x\w+", "", show(of))

    return [
        {
            "name": parameter.name,
            "kind": parameter.kind.description,
            "default": text(parameter.default, repr),
            "annotation": text(parameter.annotation, inspect.formatannotation),
        }
        for parameter in signature.parameters.values()
    ]


def labels(row: dict[str, Any], kind: str, value: Any) -> list[str]:
    """What can be said of a definition in a word each, its top-level module first."""
    taken = row["parameters"] or []
    kinds = {parameter["kind"] for parameter in taken}
    own_name = row["name"].rpartition(".")[2]
    facts = {
        "async": inspect.iscoroutinefunction(value),
        "generator": inspect.isgeneratorfunction(value),
        "async_generator": inspect.isasyncgenfunction(value),
        "exception": kind == "class" and issubclass(value, BaseException),
        "abstract": inspect.isabstract(value) or getattr(value, "__isabstractmethod__", False),
        "private": own_name.startswith("_") and not own_name.endswith("__"),
        "special": own_name.startswith("__") and own_name.endswith("__"),
        "has_docstring": row["docstring"] is not None,
        "has_source": row["lines"] is not None,
        "annotated": any(parameter["annotation"] for parameter in taken),
        "keyword_only": "keyword-only" in kinds,
        "variadic": "variadic positional" in kinds,
    }
    return [
        row["module"].partition(".")[0],
        kind,
        *(label for label, true in facts.items() if true),
    ]


def build_table() -> pa.Table:
    """A row for each function, method and class, sorted by name."""
    rows: dict[str, dict[str, Any]] = {}
    for module in standard_modules():
        lines = line_counts(module)
        for name, kind, value in definitions(module):
            docstring = getattr(value, "__doc__", None)
            row = {
                "name": f"{module.__name__}.{name}",
                "module": module.__name__,
                "parameters": parameters(value),
                "docstring": docstring if isinstance(docstring, str) else None,
                "lines": lines.get(name),
            }
            rows[row["name"]] = row | {"labels": labels(row, kind, value)}
    return pa.Table.from_pylist([rows[name] for name in sorted(rows)], schema=SCHEMA)


def milliseconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1000


def show(answer: pa.Table, at_most: int = 5) -> None:
    """Prints the first rows as columns of text."""
    head = [answer.column_names, *(row.values() for row in answer.slice(0, at_most).to_pylist())]
    cells = [[str(cell) for cell in row] for row in head]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("    " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())
    if answer.num_rows > at_most:
        print(f"    … and {answer.num_rows - at_most} more")


def explain(session: LanceSessionContext, question: str) -> Iterable[str]:
    """The lines of the physical plan, and notes on what no index serves."""
    for row in session.sql(f"EXPLAIN {question}").to_pylist():
        if row["plan_type"] in ("physical_plan", "index_notes"):
            yield from row["plan"].splitlines()


def main(folder: Path) -> bool:
    """Builds, indexes and asks; whether both sessions gave the same answers throughout."""
    path = folder / "stdlib.lance"
    print(f"Reading the standard library of Python {platform.python_version()} …")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = build_table()
    lance.write_dataset(table, path)

    indexed = LanceSessionContext()
    indexed.register_lance("stdlib", path, row_id=True)
    print(f"{table.num_rows:,} functions, methods and classes")
    for column, kind, options in INDEXES:
        took = milliseconds(
            lambda: indexed.create_lance_index("stdlib", column, kind, **options)  # noqa: B023
        )
        print(f"{column}: {kind} index built in {took:.0f} ms")

    scanning = LanceSessionContext(use_indexes=False)
    scanning.register_lance("stdlib", path, row_id=True)

    all_same = True
    for title, question in QUESTIONS.items():
        question = textwrap.dedent(question).strip()
        print(f"\n{title}\n\n{textwrap.indent(question, '    ')}\n")
        answer = indexed.sql(question).to_arrow_table()
        same = answer.equals(scanning.sql(question).to_arrow_table())
        all_same &= same
        show(answer)

        sessions = (indexed, scanning)
        times = [
            [milliseconds(session.sql(question).to_arrow_table) for session in sessions]
            for _ in range(RUNS)
        ]
        by_index, by_scan = map(statistics.median, zip(*times, strict=True))
        print(f"\n    with the index {by_index:.1f} ms, without {by_scan:.1f} ms", end="; ")
        print("the same answer" if same else "THE ANSWERS DIFFER")
        print("    EXPLAIN:")
        for line in explain(indexed, question):
            print(f"    {line}")
    print(f"\n{'All answers are the same' if all_same else 'NOT all answers are the same'}", end="")
    print(f" with and without the index. Times are medians of {RUNS} runs.")
    return all_same


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="python-stdlib-") as temporary:
        sys.exit(0 if main(Path(temporary)) else 1)
