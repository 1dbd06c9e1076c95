"""The session: a SessionContext whose Lance tables are read through their indexes."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from datafusion import (
    DataFrame,
    RuntimeEnvBuilder,
    SessionConfig,
    SessionContext,
    SQLOptions,
)
from datafusion.expr import Expr
from lance import LanceDataset

from ..indexes.cache import ReaderCache
from ..indexes.check_report import IndexCheck
from ..indexes.errors import InvalidArgumentError
from ..indexes.snapshot import Snapshot
from ..rewrites.plan_memory import PlanMemory
from ..udfs.elements.planning import Readers
from ..udfs.elements.statement import AnyElementStatements
from ..udfs.minhash.registration import register_minhash
from ..udfs.minhash.statement import MinHashStatements
from .adoption import Method, inherit
from .created_table import creation_of
from .dataframe import LanceDataFrame
from .environment import execution_of
from .execution import Execution, explains, is_query, writes
from .explain import explain_statement
from .explain_calls import calls_alone
from .filter_memory import FilterMemory
from .filter_pushdown import is_inexpressible, leaving_filters
from .function_scan import FunctionScan
from .index_check import check_index
from .index_creation import create_index
from .index_drop import drop_index
from .index_errors import own_errors
from .index_listing import listing
from .index_statement_run import run_index_statement
from .index_upkeep import optimize_index
from .registry import RegisteredTable, Terms, find_table, open_table, source_of
from .scan_identity import watch
from .session_state import SessionState, may_change
from .table_factory import LanceTableFactory, creates_external_table
from .table_functions import called_tables, calling, register_functions
from .text_expressions import parse_expression

CACHE_BYTES = 256 * 2**20
_CHECK_BYTES = 64 * 2**20

Result = TypeVar("Result")


def _reader_cache(cache_bytes: int) -> ReaderCache:
    if not isinstance(cache_bytes, int) or cache_bytes < 0:
        raise InvalidArgumentError("cache_bytes", cache_bytes, "a number of bytes, 0 or more")
    return ReaderCache(cache_bytes)


def _wrap(name: str, method: Method) -> Method:
    """The method as it is; a DataFrame or context that it returns becomes one of ours."""

    def adopting(self: LanceSessionContext, *args: Any, **kwargs: Any) -> Any:
        try:
            with self._planning():
                return self.adopt(method(self, *args, **kwargs))
        finally:
            self._changed()

    return adopting


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What serves as long as the session stays as it is: what was planned, and copies of it."""

    plans: PlanMemory
    filters: FilterMemory
    readers: Readers


@inherit(SessionContext, _wrap)
class LanceSessionContext(SessionContext):
    """A DataFusion session that answers predicates on Lance tables from their indexes.

    It takes SessionContext's own arguments and does everything that one does. Its DataFrames
    are LanceDataFrames: their plans are rewritten when they run. `use_indexes=False` turns that
    off. A session has the functions of `udfs` whose names it has for nothing else.
    `cache_bytes` limits the bytes that the session keeps in memory: of indexes, and of
    narrow columns that are read again and again.

    Threads may share a session.
    """

    def __init__(
        self,
        config: SessionConfig | None = None,
        runtime: RuntimeEnvBuilder | None = None,
        *,
        use_indexes: bool = True,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        super().__init__(config, runtime)
        self._begin(use_indexes, _reader_cache(cache_bytes), shared=False)

    @classmethod
    def wrap(
        cls,
        context: SessionContext,
        use_indexes: bool = True,
        *,
        cache_bytes: int = CACHE_BYTES,
    ) -> LanceSessionContext:
        """Adopts an existing context: the same catalog, functions and configuration.

        Both stay in use side by side; what one registers the other sees.
        """
        if not isinstance(context, SessionContext):
            raise InvalidArgumentError("context", context, "a SessionContext")
        if isinstance(context, LanceSessionContext):
            context._state.share()
        session = cls.__new__(cls)
        session.ctx = context.ctx
        session._begin(use_indexes, _reader_cache(cache_bytes), shared=True)
        return session

    @classmethod
    def global_ctx(cls) -> LanceSessionContext:
        """The context that everybody in the process shares, as a session."""
        return cls.wrap(SessionContext.global_ctx())

    def _begin(self, use_indexes: bool, cache: ReaderCache, *, shared: bool) -> None:
        self.use_indexes = use_indexes
        self._cache = cache
        # It must not hold the session itself, which would then outlive its last use.
        context = self.undisclosed
        self._state = SessionState(
            lambda: _Remembered(PlanMemory(), FilterMemory(), Readers(context)), shared=shared
        )
        self._any_element = AnyElementStatements()
        self._minhash = MinHashStatements()
        register_minhash(context)
        self._replacing = threading.Lock()
        self._replacements = 0
        register_functions(context, is_new=not shared)

    # Lance tables

    def register_lance(
        self,
        name: str,
        path_or_dataset: Any,
        version: int | str | None = None,
        storage_options: Mapping[str, str] | None = None,
        row_id: bool = False,
    ) -> None:
        """Registers a Lance dataset as a table.

        `name` is resolved as DataFusion does (`table`, `schema.table`, `catalog.schema.table`,
        quoted where case matters) and must be free. `version` is a number or a tag; without
        one the table is at the dataset's current version, which `refresh` moves on (a
        LanceDataset object: at the version it has). `storage_options` are Lance's, for object
        stores. `row_id` adds Lance's row ids as the column `_rowid`, uint64.

        Raises InvalidArgumentError for what is no Lance dataset, a version that does not
        exist, a name that is taken or whose schema does not exist.
        """
        self._check_free(name)
        terms = Terms(source_of(path_or_dataset), version, storage_options, row_id)
        table = open_table(name, terms, self._cache)
        with self._replacing:
            self._check_free(name)
            self.register_table(name, table)

    def refresh(self, name: str) -> int:
        """Moves a table to the newest version of its dataset, or of its tag; returns its number.

        Queries that were built before keep the version they were built on. A table that was
        registered at a version number stays there: that is an InvalidArgumentError.
        """
        table = self._lance_table("name", name)
        if isinstance(table.terms.version, int):
            raise InvalidArgumentError(
                "name",
                name,
                "a table that follows its dataset; this one was registered at "
                f"version {table.terms.version}",
            )
        dataset = table.terms.open()
        if dataset.version != table.lance_dataset.version:
            self._replace(name, table.terms, dataset)
        return dataset.version

    def create_lance_index(
        self,
        table: str,
        column: str,
        kind: str,
        *,
        name: str | None = None,
        replace: bool = False,
        **parameters: Any,
    ) -> None:
        """Builds an index on a column of a registered Lance table, which then uses it.

        `kind` is LABEL_LIST, or LIST_ELEMENT with `keys`, the names of one field or more of
        the structs in a list column, in key order; also with `fragment_ids`, the fragments to
        index (all), and `sort_memory`, the bytes that are sorted at once (256 MiB); or
        MINHASHLSH with `num_hashes` (128), `num_bands` (16), `shingle_size` (3) and `tokenizer`,
        Lance's settings such as `{"base_tokenizer": "icu"}`, see `indexes.minhash_lsh.builder`.
        All take `progress` (True), a bar on a terminal; pylance, which builds the first and the
        last kind, tells nothing of its steps, so that of these the time is shown. `name` is the
        index's, by default the column's with `_idx`; `replace` allows that it exists. The index
        is committed to the newest version of the dataset and the table moves there.

        Raises InvalidArgumentError for an unknown table, column, kind or parameter, a column
        that the kind does not take, a taken name, and a table fixed at a version.
        """
        registered = self._following_table(table)
        dataset = create_index(
            registered.terms.open(), column, kind, name=name, replace=replace, **parameters
        )
        self._replace(table, registered.terms, dataset)

    def drop_lance_index(self, table: str, name: str, if_exists: bool = False) -> None:
        """Takes an index of any kind, of all its segments, off a registered Lance table.

        It is dropped from the newest version of the dataset and the table moves there. Its
        files stay as long as earlier versions name them. With `if_exists` it may be missing.

        Raises InvalidArgumentError for an unknown table or index and a table fixed at a
        version, and LanceIndexError where other writers were faster every time.
        """
        registered = self._following_table(table)
        dataset = drop_index(registered.terms.open(), name, if_exists=if_exists)
        self._replace(table, registered.terms, dataset)

    def optimize_lance_index(
        self, table: str, name: str | None = None, *, progress: bool = True
    ) -> None:
        """Brings an index of a registered Lance table, or all of them, up to date with its rows.

        Fragments that an index does not cover are indexed, and what compaction, updates and
        deletes have left behind in it is taken out. A list element or MinHash LSH index gets a
        new segment; beyond 8 its segments are merged into one, from their entries and
        signatures. Label list indexes, and those of Lance's other kinds, are pylance's to
        optimize; a label list index whose column was rewritten in place is built again, which
        pylance would not do. Queries go on meanwhile. Each index is committed in one step to the
        newest version of the dataset, and the table moves there; an upkeep that ends before that
        leaves the table as it was. `progress` shows a bar on a terminal, and of what pylance does
        the time that it takes.

        Raises InvalidArgumentError for an unknown table or index and a table fixed at a
        version, UnusableIndexError for an index whose column or keys are gone,
        CorruptIndexError for one with a damaged file, and LanceIndexError where other writers
        were faster every time.
        """
        registered = self._following_table(table)
        dataset = optimize_index(registered.terms.open(), name, progress=progress)
        self._replace(table, registered.terms, dataset)

    def check_lance_index(self, table: str, name: str, *, progress: bool = True) -> IndexCheck:
        """Proves a list element, label list or MinHash LSH index against the rows of its table.

        All of the index and all of the column are read, past what the session has kept. Every
        live row of the fragments that the index covers must have just its own entries in it, its
        pages must be in order and as the page table says, its files as long as the table
        records, and its details must agree with the schema. The signatures of a MinHash LSH
        index are made again from the texts, without pylance's help. The result's `sound` says
        whether all of this is so, `differences` are the first that are not, by row, and `str` of
        it is a readable report. `progress` shows a bar on a terminal.

        Raises InvalidArgumentError for an unknown table and for a name that no index of these
        kinds has.
        """
        registered = self._lance_table("table", table)
        snapshot = Snapshot(registered.lance_dataset, ReaderCache(_CHECK_BYTES))
        return check_index(snapshot, name, progress=progress)

    def lance_indexes(self, table: str) -> DataFrame:
        """The indexes of a registered Lance table at its version, a row for each, of any kind.

        `table`, `name`, `kind` (as in EXPLAIN); `column`, NULL where it is gone; `keys` of a
        list element index, in order, else empty; `parameters` that it was built with; the
        number of its `segments`; how many fragments and live rows it answers for
        (`covered_fragments`, `covered_rows`) and how many are scanned beside it
        (`uncovered_fragments`, `uncovered_rows`); `bytes` of its files, NULL where the table
        does not say; and `unusable`, the reason why it answers nothing, NULL for a sound one.

        Raises InvalidArgumentError for an unknown table, and LanceIndexError where the table's
        indexes cannot be read.
        """
        rows = listing([(table, self._lance_table("table", table))])
        return self.adopt(self.undisclosed.read_batch(rows))

    def _following_table(self, name: str) -> RegisteredTable:
        """A table whose dataset may be written to."""
        registered = self._lance_table("table", name)
        if registered.terms.version is not None:
            raise InvalidArgumentError(
                "table",
                name,
                "a table at its dataset's current version; this one was registered at "
                f"version {registered.terms.version!r}",
            )
        return registered

    def _lance_table(self, argument: str, name: str) -> RegisteredTable:
        table = find_table(self.undisclosed, name) if isinstance(name, str) else None
        if table is None:
            raise InvalidArgumentError(
                argument, name, "the name of a table that register_lance registered"
            )
        return table

    def _check_free(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError("name", name, "a table name")
        try:
            taken = self.table_exist(name)
        except Exception as error:
            raise InvalidArgumentError(
                "name", name, f"a name in an existing schema ({error})"
            ) from error
        if taken:
            raise InvalidArgumentError(
                "name", name, "a name that is free; deregister_table frees one, refresh updates one"
            )

    def _replace(self, name: str, terms: Terms, dataset: LanceDataset) -> None:
        """Puts the dataset in the place of a table; see `_resolving` for those who look."""
        table = RegisteredTable(name, dataset, terms, self._cache)
        with self._replacing:
            self._replacements += 1
            try:
                self.deregister_table(name)
                self.register_table(name, table)
            finally:
                self._replacements += 1

    def _resolving(self, look: Callable[[], Result]) -> Result:
        """Looks names up, and again where a table was being replaced meanwhile.

        A catalog cannot replace a table in one step, so another thread may look while it is
        not there. A statement that fails to find a table has done nothing yet. The count of
        replacements is odd during one.
        """
        while True:
            before = self._replacements
            try:
                return look()
            except Exception as error:
                if "table" not in str(error).lower():
                    raise
                with self._replacing:
                    if self._replacements == before:
                        raise

    # What SessionContext has

    def sql(
        self,
        query: str,
        options: SQLOptions | None = None,
        param_values: dict[str, Any] | None = None,
        **named_params: Any,
    ) -> DataFrame:
        """SessionContext's `sql`; the plan is rewritten when the result runs.

        The query may call `any_element(list, 'predicate')`, `minhash_distance` and
        `minhash_similarity(text, query)`, and `minhash_signature(text)`, the last three also with
        `num_hashes`, `num_bands` and `shingle_size`. A DataFrame given for a placeholder is
        planned as a part of the query.

        Three functions in FROM take literals and are computed when the query runs. Only an
        ORDER BY keeps their order through what DataFusion does in parallel.

        - `minhash_search(table, column, text, limit[, filter[, mode]])`, all columns of a Lance
          table and `_distance` (Float32), has the near duplicates of a text, the closest first,
          rows at equal distance by row id. `filter` is a predicate on the table's columns, as
          text; only rows that pass count towards the limit. The mode 'approximate', the one
          that goes without saying, finds rows that share a band key with the text, as Lance's
          own search does; 'indexed' leaves rows out that the column's index does not cover;
          'exhaustive' ranks all rows, exactly.
        - `minhash_pairs(table, column, max_distance[, max_bucket])` has the near duplicates in
          the table as `left_rowid`, `right_rowid` and `_distance`,
        - `minhash_clusters(table, column, max_distance[, max_bucket])` as `row_id` and
          `cluster_id`; row ids are the column `_rowid` of a table registered with it.

        The parameters are those of the column's MinHash index. A column without one is signed
        with the defaults, and then, as with `use_indexes=False`, a search ranks all of the rows.

        CREATE INDEX, DROP INDEX and SHOW INDEXES on Lance tables, and CREATE EXTERNAL TABLE ...
        STORED AS LANCE, run at once, as DataFusion's DDL.
        """
        if may_change(query):
            done = run_index_statement(self, query, options)
            if done is not None:
                return done
        views: dict[str, DataFrame] = {}
        for placeholder, value in named_params.items():
            if isinstance(value, DataFrame):
                view = f"view_{uuid.uuid4().hex}"
                views[view] = value
                named_params[placeholder] = view
        try:
            for view, dataframe in views.items():
                self.register_view(view, dataframe)
            plan = partial(self._plan, query, options, param_values, named_params)
            if may_change(query) and creates_external_table(query):
                return LanceTableFactory(self._cache).serving(self.undisclosed, plan)
            return self._resolving(plan)
        finally:
            if may_change(query):
                self._changed()
            for view in views:
                self.deregister_table(view)

    def _plan(
        self,
        query: str,
        options: SQLOptions | None,
        param_values: dict[str, Any] | None,
        named_params: dict[str, Any],
    ) -> LanceDataFrame:
        remembered = self._state.remembered
        session = self.undisclosed

        def planned(context: SessionContext, text: str, texts: dict[str, Any]) -> DataFrame:
            present = remembered.readers if remembered and context is session else None
            calling = self._any_element.sql(context, text, options, param_values, texts, present)
            if calling is not None:
                return calling
            return context.sql(text, options, param_values, **texts)

        def plan(context: SessionContext, text: str, texts: dict[str, Any]) -> DataFrame:
            creation = creation_of(
                text,
                lambda statement: planned(context, statement, texts),
                session,
                use_indexes=self.use_indexes,
            )
            if creation is None:
                return planned(context, text, texts)
            try:
                with creation.activate():
                    return planned(context, text, texts)
            except Exception as error:
                if not is_inexpressible(error):
                    raise
                # Its query could not be planned, so there is no table yet.
                return planned(leaving_filters(context, text), text, texts)

        with self._planning(query):
            frame = self._minhash.sql(session, query, param_values, named_params, plan)
        return LanceDataFrame(frame.df, self)

    @contextmanager
    def _planning(self, query: str = "") -> Iterator[None]:
        """Calls of table functions in it are this session's, and raise their own errors."""
        tables = called_tables(query, self.undisclosed)
        remembered = self._state.remembered
        filters = None if remembered is None else remembered.filters
        with (
            calling(self.use_indexes, tables, filters),
            watch(FunctionScan) as run,
            own_errors(run),
        ):
            yield

    def _changed(self) -> None:
        """Forgets what may be otherwise from now on, and with it the tables that it holds."""
        self._state.change()
        self._any_element.forget()

    def table(self, name: str) -> DataFrame:
        """The registered table of that name."""
        return self.adopt(self._resolving(lambda: SessionContext.table(self, name)))

    # What LanceDataFrame asks

    @property
    def plain(self) -> SessionContext:
        """The same session without rewriting. Both stay in use side by side."""
        self._state.share()
        return self.undisclosed

    @property
    def undisclosed(self) -> SessionContext:
        """The same, for those who neither change it nor hand it on."""
        context = SessionContext.__new__(SessionContext)
        context.ctx = self.ctx
        return context

    def adopt(self, result: Any) -> Any:
        """DataFrames and contexts of DataFusion as this session's; anything else as it is."""
        if isinstance(result, SessionContext):
            # All but one of the methods that make a context let it share the session's state.
            self._state.share()
        if isinstance(result, LanceDataFrame | LanceSessionContext):
            if isinstance(result, LanceSessionContext) and "_cache" not in vars(result):
                result._begin(self.use_indexes, self._cache, shared=True)
            return result
        if isinstance(result, DataFrame):
            return LanceDataFrame(result.df, self)
        if isinstance(result, SessionContext):
            session = type(self).__new__(type(self))
            session.ctx = result.ctx
            session._begin(self.use_indexes, self._cache, shared=True)
            return session
        return result

    def parse(self, dataframe: DataFrame, text: str) -> Expr:
        """The text as an expression for the DataFrame; it may call this package's functions."""
        plain = DataFrame(dataframe.df)
        return parse_expression(plain, text, self.undisclosed, self._any_element, self._minhash)

    def reads_lance(self, dataframe: DataFrame) -> bool:
        """Whether a Lance table is read anywhere in the DataFrame's plan."""
        with watch(object) as asked:
            DataFrame(dataframe.df).optimized_logical_plan()
        return bool(asked)

    def execution(self, dataframe: DataFrame, *, runs_unchanged: bool = False) -> Execution:
        """What a terminal method of the DataFrame is to run.

        `runs_unchanged` says that the method plans just this DataFrame, and none built on it.
        """
        plain = DataFrame(dataframe.df)
        if not self.use_indexes:
            return Execution(plain)
        if calls_alone(plain):
            return Execution(plain)
        if explains(plain):
            return Execution(explain_statement(plain, self.undisclosed))
        if not (is_query(plain) or writes(plain)):
            return Execution(plain)
        remembered = self._state.remembered
        plans = None if remembered is None else remembered.plans
        return execution_of(plain, self.undisclosed, plans, runs_unchanged=runs_unchanged)
