"""The NULL section of the label list index's specification, against pylance and DataFusion.

For each rule three answers stand side by side: pylance with the index, pylance without it, and
plain DataFusion. The session's is DataFusion's. Where pylance's is another one, or none, the
test says so and DataFusion wins.
"""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from datafusion import SessionContext

from datafusion_lance.engine import LanceSessionContext

from .oracle_rows import TwiceStored, index_scans, memory_context, store_twice

LISTS: tuple[list[str | None] | None, ...] = (
    None,
    [],
    [None],
    ["foo"],
    ["foo", None],
    ["bar"],
    ["bar", None],
    ["foo", "bar"],
    ["foo", "foo"],
    ["foo", "bar", None],
    [""],
)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> TwiceStored:
    """Every kind of list, in fragments with and without index; `key` 3 is deleted."""
    rows = pa.table(
        {
            "key": pa.array(range(len(LISTS)), pa.int64()),
            "labels": pa.array(LISTS, pa.list_(pa.string())),
            "moments": pa.array([None, [0], [0, None], []] * 2 + [[None]] * 3)
            .cast(pa.list_(pa.int64()))
            .cast(pa.list_(pa.timestamp("us"))),
        }
    )
    return store_twice(
        tmp_path_factory.mktemp("semantics"),
        "t",
        rows,
        key="key",
        rows_per_fragment=6,
        indexed=("labels", "moments"),
        deleted_after=(3,),
        appended=rows.set_column(0, "key", pa.array(range(20, 20 + len(LISTS)), pa.int64())),
    )


class Answers:
    """The keys for which a predicate is TRUE, from each of the three."""

    def __init__(self, table: TwiceStored) -> None:
        self.lists = dict(
            zip(table.rows["key"].to_pylist(), table.rows["labels"].to_pylist(), strict=True)
        )
        self._dataset = lance.dataset(table.path)
        self._memory: SessionContext = memory_context([table])
        self._session = LanceSessionContext()
        self._session.register_lance(table.name, str(table.path))

    def datafusion(self, predicate: str) -> list[int]:
        return self._keys(self._memory, predicate)

    def session(self, predicate: str) -> list[int]:
        return self._keys(self._session, predicate)

    def served(self, predicate: str) -> bool:
        frame = self._session.sql(f"SELECT key FROM t WHERE {predicate}")
        return bool(index_scans(frame))

    def pylance(self, predicate: str, *, use_index: bool = True) -> list[int]:
        scanner = self._dataset.scanner(
            columns=["key"], filter=predicate, use_scalar_index=use_index
        )
        return sorted(scanner.to_table()["key"].to_pylist())

    def pylance_uses_index(self, predicate: str) -> bool:
        plan = self._dataset.scanner(columns=["key"], filter=predicate).explain_plan()
        return "ScalarIndexQuery" in plan

    def _keys(self, context: SessionContext, predicate: str) -> list[int]:
        frame = context.sql(f"SELECT key FROM t WHERE {predicate}")
        return sorted(frame.to_pydict()["key"])

    def where(self, *lists: list[str | None] | None) -> list[int]:
        return [key for key, value in self.lists.items() if value in lists]


@pytest.fixture(scope="module")
def answers(labelled: TwiceStored) -> Answers:
    return Answers(labelled)


FORMS = ("{}", "NOT {}", "({}) IS NULL", "({}) IS NOT TRUE", "({}) IS FALSE")

AGREED = (
    "array_has(labels, 'foo')",
    "array_contains(labels, 'foo')",
    "array_has_any(labels, ['foo'])",
    "array_has_any(labels, ['foo', 'bar'])",
    "array_has_all(labels, ['foo', 'bar'])",
    "array_has(labels, 'no such label')",
    "array_has(labels, '')",
    "array_has(labels, NULL)",
    "array_has_any(labels, [])",
    "array_has_all(labels, [])",
    "array_has_any(labels, [NULL])",
    "array_has_all(labels, [NULL])",
    "array_has_any(labels, ['foo', NULL])",
    "array_has_all(labels, ['foo', NULL])",
    "array_has_any(labels, ['no such label', NULL])",
    "array_has_any(['foo'], labels)",
)


@pytest.mark.parametrize("predicate", AGREED)
@pytest.mark.parametrize("form", FORMS)
def test_pylance_datafusion_and_the_session_agree(
    predicate: str, form: str, answers: Answers
) -> None:
    asked = form.format(predicate)
    expected = answers.datafusion(asked)
    assert answers.session(asked) == expected
    assert answers.pylance(asked) == expected
    assert answers.pylance(asked, use_index=False) == expected


@pytest.mark.parametrize("function", ["array_has", "array_has_any", "array_has_all"])
def test_null_list_gives_null(function: str, answers: Answers) -> None:
    needle = "'foo'" if function == "array_has" else "['foo']"
    predicate = f"{function}(labels, {needle})"
    assert answers.session(f"{predicate} IS NULL") == answers.where(None)
    assert not set(answers.where(None)) & set(answers.session(predicate))
    assert not set(answers.where(None)) & set(answers.session(f"NOT {predicate}"))


@pytest.mark.parametrize("function", ["array_has", "array_has_any", "array_has_all"])
def test_null_element_makes_no_answer_unknown(function: str, answers: Answers) -> None:
    needle = "'foo'" if function == "array_has" else "['foo']"
    predicate = f"NOT {function}(labels, {needle})"
    assert answers.served(predicate)
    assert answers.session(predicate) == answers.where([], [None], ["bar"], ["bar", None], [""])


def test_empty_list_holds_nothing(answers: Answers) -> None:
    for predicate in ("array_has(labels, '')", "array_has_any(labels, ['', NULL])"):
        assert not set(answers.where([])) & set(answers.session(predicate))
        assert set(answers.where([])) <= set(answers.session(f"NOT {predicate}"))


def test_null_needle_of_array_has_is_null_everywhere(answers: Answers) -> None:
    assert answers.session("array_has(labels, NULL)") == []
    assert answers.session("array_has(labels, NULL) IS NULL") == sorted(answers.lists)
    assert not answers.pylance_uses_index("array_has(labels, NULL)")


def test_null_among_the_needles_matches_null_elements(answers: Answers) -> None:
    """The specification's "a NULL element never matches" holds without such a needle only."""
    predicate = "array_has_any(labels, ['no such label', NULL])"
    with_null = answers.where([None], ["foo", None], ["bar", None], ["foo", "bar", None])
    assert answers.served(predicate)
    assert answers.session(predicate) == with_null
    assert answers.pylance_uses_index(predicate)
    assert answers.pylance(predicate) == with_null
    both = answers.where(["foo", None], ["foo", "bar", None])
    assert answers.session("array_has_all(labels, ['foo', NULL])") == both


def test_no_needles_at_all(answers: Answers) -> None:
    """No NULL comes out, not even of a NULL list; pylance scans for these."""
    assert answers.session("array_has_any(labels, [])") == []
    assert answers.session("NOT array_has_any(labels, [])") == sorted(answers.lists)
    assert answers.session("array_has_all(labels, [])") == sorted(answers.lists)
    assert answers.session("NOT array_has_all(labels, [])") == []
    assert not answers.pylance_uses_index("array_has_any(labels, [])")


def test_null_tests_are_served_here_and_scanned_by_pylance(answers: Answers) -> None:
    predicate = "array_has(labels, 'foo') IS NULL"
    assert answers.served(predicate)
    assert not answers.pylance_uses_index(predicate)


@pytest.mark.parametrize(
    "predicate",
    [
        "'foo' = ANY(labels)",
        "labels @> ['foo']",
        "array_has(moments, TIMESTAMP '1970-01-01 00:00:00')",
    ],
)
def test_pylance_refuses_what_datafusion_answers(predicate: str, answers: Answers) -> None:
    with pytest.raises(ValueError, match="Invalid user input"):
        answers.pylance(predicate)
    for form in ("{}", "NOT ({})", "({}) IS NULL"):
        asked = form.format(predicate)
        assert answers.session(asked) == answers.datafusion(asked)
    assert answers.served(predicate)


def lists_without_elements(tmp_path: Path) -> TwiceStored:
    """Two fragments: a NULL and an empty list in the first, one with an element beside in the
    second."""
    rows = pa.table(
        {
            "key": pa.array(range(4), pa.int64()),
            "labels": pa.array([None, [], None, ["foo"]], pa.list_(pa.string())),
        }
    )
    return store_twice(tmp_path, "t", rows, key="key", rows_per_fragment=2, indexed=("labels",))


def test_datafusion_asks_the_other_question_batch_by_batch(tmp_path: Path) -> None:
    """`array_has_all(['foo'], labels)` asks whether 'foo' covers the list; no index answers it.

    DataFusion 55 gives TRUE instead of NULL for a NULL list where all lists of its batch are NULL
    or empty. So the answer depends on how the rows are cut into batches: in memory it is one
    batch, and pylance and the session read one from each fragment.
    """
    table = lists_without_elements(tmp_path)
    answers = Answers(table)
    predicate = "array_has_all(['foo'], labels)"
    assert answers.datafusion(predicate) == [1, 3]
    assert answers.pylance(predicate) == [0, 1, 3]
    halves = [
        pa.RecordBatch.from_pylist(table.rows.to_pylist()[i : i + 2], table.rows.schema)
        for i in (0, 2)
    ]
    cut = SessionContext()
    cut.register_record_batches("t", [halves])
    keys = cut.sql(f"SELECT key FROM t WHERE {predicate} ORDER BY key").to_pydict()["key"]
    assert keys == [0, 1, 3]
    assert set(answers.session(predicate)) - {0} == {1, 3}
    assert not answers.served(predicate)
    sound = f"labels IS NOT NULL AND {predicate}"
    assert answers.session(sound) == answers.datafusion(sound) == [1, 3]


@pytest.mark.xfail(reason="pylance carries the old postings over to the compacted fragment")
def test_compaction_of_a_fragment_whose_indexed_column_was_rewritten_in_place(
    tmp_path: Path,
) -> None:
    """`update_columns` of a list column leaves pylance's index claiming the fragment.

    Until the fragment is compacted the session sees that its column's file is a newer one, and
    scans it. After that nothing in the table's metadata tells.
    """
    rows = pa.table(
        {
            "key": pa.array(range(4), pa.int64()),
            "labels": pa.array([["old"]] * 4, pa.list_(pa.string())),
        }
    )
    table = store_twice(tmp_path, "t", rows, key="key", rows_per_fragment=2, indexed=("labels",))
    dataset = lance.dataset(table.path)
    changes = rows.slice(0, 1).set_column(1, "labels", pa.array([["new"]], pa.list_(pa.string())))
    fragment, fields = dataset.get_fragments()[0].update_columns(changes, left_on="key")
    operation = lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    lance.LanceDataset.commit(table.path, operation, read_version=dataset.version)
    assert Answers(table).session("array_has(labels, 'new')") == [0]
    lance.dataset(table.path).optimize.compact_files()
    assert Answers(table).pylance("array_has(labels, 'new')") == []
    assert Answers(table).session("array_has(labels, 'new')") == [0]
