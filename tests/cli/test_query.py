"""`datafusion-lance sql` and `explain`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from .command import Command

NIGHTS = "SELECT id, tags FROM images WHERE array_has(tags, 'night') ORDER BY id"
QUERY = "SELECT id, tags, detections FROM images ORDER BY id"


def test_a_table_is_what_comes_without_asking(command: Command) -> None:
    result = command.succeed("sql", "-t", command.images, NIGHTS)

    assert result.out == (
        "+----+-------------------+\n"
        "| id | tags              |\n"
        "+----+-------------------+\n"
        '|  0 | ["night", "rain"] |\n'
        '|  5 | ["night"]         |\n'
        "+----+-------------------+\n"
    )


def test_rows_limit_a_table(command: Command) -> None:
    result = command.succeed("sql", "-t", command.images, "--rows", 1, NIGHTS)

    assert result.lines[3:] == [
        '|  0 | ["night", "rain"] |',
        "+----+-------------------+",
        "the first 1 rows; --rows N shows more",
    ]
    assert "the first" not in command.succeed("sql", "-t", command.images, "--rows", 2, NIGHTS).out


def test_csv(command: Command, tmp_path: Path) -> None:
    command.succeed("sql", "-t", command.images, "--format", "csv", "-o", tmp_path / "x", QUERY)

    rows = pyarrow.csv.read_csv(tmp_path / "x").to_pydict()
    assert rows["id"] == list(range(6))
    assert [json.loads(text or "null") for text in rows["tags"]] == [
        ["night", "rain"],
        ["day"],
        [],
        None,
        ["rain", None],
        ["night"],
    ]


def test_json(command: Command) -> None:
    rows = json.loads(command.succeed("sql", "-t", command.images, "--format", "json", QUERY).out)

    assert [row["id"] for row in rows] == list(range(6))
    assert rows[4]["detections"] == [None]
    assert rows[3]["tags"] is None
    none = f"SELECT * FROM ({QUERY}) AS q WHERE id < 0"
    assert json.loads(command("sql", "-t", command.images, "--format", "json", none).out) == []


def test_values_that_json_has_no_form_of(command: Command) -> None:
    query = (
        "SELECT 'NaN'::double AS n, [1.5, 'inf'::double] AS l, DATE '2024-02-29' AS d, "
        "X'00ff' AS b, 1.10::decimal(4, 2) AS m"
    )

    (row,) = json.loads(command.succeed("sql", "--format", "json", query).out)

    assert row == {"n": None, "l": [1.5, None], "d": "2024-02-29", "b": "00ff", "m": "1.10"}


def test_parquet(command: Command, tmp_path: Path) -> None:
    output = tmp_path / "x.parquet"

    command.succeed("sql", "-t", command.images, "--format", "parquet", "-o", output, QUERY)

    assert pyarrow.parquet.read_table(output).column("id").to_pylist() == list(range(6))


def test_a_file_is_there_only_when_it_is_whole(command: Command, tmp_path: Path) -> None:
    output = tmp_path / "x.csv"
    query = "SELECT 1 / (id - 5) FROM images"

    result = command("sql", "-t", command.images, "--format", "csv", "-o", output, query)

    assert (result.code, result.out) == (1, "")
    assert "divide by zero" in result.err.lower()
    assert [path.name for path in tmp_path.iterdir()] == ["images.lance"]


def test_several_statements(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT ';' AS a; -- one; more\nSELECT 2 AS b;"
    expected = ['"a"', '";"', '"b"', "2"]

    assert command.succeed("sql", "--format", "csv", text).lines == expected
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert command.succeed("sql", "--format", "csv").lines == expected
    assert command("sql", "-o", "x", text).code == 2


def test_statements_on_indexes(command: Command) -> None:
    create = "CREATE INDEX ON images USING list_element (detections.label)"

    assert command.succeed("sql", "-t", command.images, create).out == ""

    shown = command.succeed("sql", "-t", command.images, "--format", "csv", "SHOW INDEXES")
    assert shown.lines[1].startswith('"images","detections_idx","ListElement"')


@pytest.mark.parametrize("given", ["photos={}", 'public."photos"={}', "PHOTOS={}/"])
def test_tables_have_names(command: Command, given: str) -> None:
    table = given.format(command.images)

    assert "6" in command.succeed("sql", "-t", table, "SELECT count(*) FROM photos").out


def test_a_path_with_an_equals_sign_is_a_path(command: Command) -> None:
    other = command.images.parent / "year=2024" / "my images.lance"
    other.parent.mkdir()
    command.images.rename(other)

    assert "6" in command.succeed("sql", "-t", other, 'SELECT count(*) FROM "my images"').out


def test_explain_names_the_indexes(command: Command) -> None:
    command.succeed("create-index", command.images, "tags")
    scans = "IndexScan: table=images, index=tags_idx, kind=LabelList"

    plan = command.succeed("explain", "-t", command.images, NIGHTS)

    assert plan.lines[0] == "logical_plan:"
    assert scans in plan.out
    measured = command.succeed("explain", "-t", command.images, "--analyze", NIGHTS)
    assert "rows_found=2" in measured.out or "found" in measured.out
    tree = command.succeed("explain", "-t", command.images, "--format", "tree", NIGHTS)
    assert "IndexScan" in tree.out
    without = command.succeed("explain", "-t", command.images, "--no-indexes", NIGHTS)
    assert "IndexScan" not in without.out
    as_rows = command.succeed("sql", "-t", command.images, f"EXPLAIN {NIGHTS}")
    assert all(line[0] in "|+" for line in as_rows.lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sql", "SELECT nope"], "error: Schema error: No field named nope"),
        (["sql", "SELEC 1"], "error: SQL error"),
        (["sql", "-t", "nope.lance", "SELECT 1"], "error: path_or_dataset: got 'nope.lance'"),
        (["explain", "SELECT nope"], "error: Schema error: No field named nope"),
    ],
)
def test_errors(command: Command, arguments: list[str], message: str) -> None:
    result = command(*arguments)

    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(message)
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["sql", "--format", "xml", "SELECT 1"],
        ["sql", "--rows", "-1", "SELECT 1"],
        ["sql", "--storage-option", "x", "SELECT 1"],
        ["sql", "-t", "/", "SELECT 1"],
        ["explain"],
    ],
)
def test_wrong_usage(command: Command, arguments: list[str]) -> None:
    result = command(*arguments)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"usage: datafusion-lance {' '.join(arguments[:0])}")
    assert "error: " in result.err


@pytest.mark.parametrize(
    "name",
    [
        "",
        "sql",
        "explain",
        "indexes",
        "create-index",
        "drop-index",
        "optimize",
        "check",
        "inspect",
    ],
)
def test_help_has_examples(command: Command, name: str) -> None:
    result = command.succeed(*([name] if name else []), "--help")

    assert f"  datafusion-lance {name}" in result.out.partition("examples:")[2]
