"""A case as a script that stands alone: it writes the tables, asks three ways and compares."""

from __future__ import annotations

import inspect

from .changes import age_index, lived
from .exploring import Case, Difference
from .source import IMPORTS, table_source, type_source
from .texts import GIVEN
from .worlds import Life, World
from .writing import write_fragments


def script(difference: Difference) -> str:
    """Prints each of the three answers, and what differs. Needs the installed package only."""
    case = difference.case
    statement = case.statement
    return "\n".join(
        [
            *(f"# {line}" for line in difference.words.splitlines()),
            "from pathlib import Path",
            "from tempfile import mkdtemp",
            "",
            "from datafusion import SessionConfig, SessionContext, col, lit",
            "from datafusion import functions as f",
            "from lance.dataset import Index",
            "from dataclasses import replace",
            "from datafusion_lance.engine import LanceSessionContext",
            "from datafusion_lance.udfs.minhash.definitions import function_of",
            IMPORTS,
            "",
            inspect.getsource(write_fragments).replace("Path | str", "str"),
            *([inspect.getsource(age_index).replace("path: Any", "path")] if _ages(case) else []),
            "",
            *_life(case.world.t, case, "t"),
            *_life(case.world.u, case, "u"),
            "",
            *_sessions(case.world),
            "",
            f"setup = {statement.setup(in_memory=False)!r}",
            f"asked = {statement.text(in_memory=False)!r}",
            f"memory_setup = {statement.setup(in_memory=True)!r}",
            f"memory_asked = {statement.text(in_memory=True)!r}",
            "",
            "",
            "def answer(ctx, setup, asked):",
            "    try:",
            "        for text in setup:",
            "            ctx.sql(text).collect()",
            f"        frame = {'eval(asked)' if statement.shape.is_chain else 'ctx.sql(asked)'}",
            f"        return frame{'.cache()' if statement.shape.cached else ''}.to_arrow_table()",
            "    except BaseException as error:",
            "        return f'{type(error).__name__}: {error}'",
            "",
            "",
            "print('memory:', answer(memory, memory_setup, memory_asked))",
            "print('without indexes:', answer(plain, setup, asked))",
            "print('with indexes:', answer(indexed, setup, asked))",
            "",
        ]
    )


def _ages(case: Case) -> bool:
    return any("age_index" in change.source() for change in case.world.t.changes)


def _life(life: Life, case: Case, name: str) -> list[str]:
    is_t = name == "t"
    changes = life.changes[: case.moment.changes] if is_t else life.changes
    past = case.moment.past if is_t else None
    shown = changes if past is None else changes[:past]
    lines = [
        f"{name} = path = mkdtemp() + '/{name}.lance'",
        f"first = {table_source(life.first)}",
        f"write_fragments(path, first, {life.rows_per_fragment}, {life.stable_row_ids})",
        f"{name}_version = None",
    ]
    if past == 0:
        lines.append(f"{name}_version = lance.dataset(path).version")
    for number, change in enumerate(changes, 1):
        lines.append(change.source().replace("from tests.oracle.changes import age_index\n", ""))
        if number == past:
            lines.append(f"{name}_version = lance.dataset(path).version")
    lines.append(f"{name}_rows = {table_source(lived(life.first, shown))}")
    return lines


def _sessions(world: World) -> list[str]:
    lines = [
        "def config():",
        f"    config = SessionConfig().with_target_partitions({world.target_partitions})",
        f"    config = config.with_batch_size({world.batch_size})",
        "    return config.set('datafusion.sql_parser.dialect', 'duckdb')",
        "",
        "",
        "indexed = LanceSessionContext(config())",
        "plain = LanceSessionContext(config(), use_indexes=False)",
        "for session in (indexed, plain):",
        "    session.register_lance('t', t, version=t_version)",
        "    session.register_lance('r', t, version=t_version, row_id=True)",
        "    session.register_lance('u', u)",
        "memory = SessionContext(config())",
        "for name, rows in (('t', t_rows), ('u', u_rows)):",
        "    empty = pa.RecordBatch.from_pylist([], schema=rows.schema)",
        "    memory.register_record_batches(name, [rows.combine_chunks().to_batches() or [empty]])",
        "for base in ('minhash_distance', 'minhash_similarity'):",
        f"    for given in ((), *{GIVEN!r}):",
        "        memory.register_udf(function_of(base, given).udf)",
    ]
    if world.own_function is not None:
        (column,) = [one for one in world.t.columns if one.name == "a"]
        lists = type_source(column.type)
        needles = f"pa.list_({type_source(column.type.value_type)})"
        lines += [
            "from datafusion import udf",
            "own = udf(lambda a, b: pa.array([None if one is None else len(one) % 2 == 0",
            f"    for one in a.to_pylist()], pa.bool_()), [{lists}, {needles}],",
            f"    pa.bool_(), 'immutable', {world.own_function!r})",
            "for session in (indexed, plain, memory):",
            "    session.register_udf(own)",
        ]
    return lines
