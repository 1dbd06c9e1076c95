"""`any_element` on arrays, for a function that DataFusion calls while it runs a query."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import pyarrow as pa
from datafusion.expr import Expr

from ...indexes.errors import InvalidArgumentError
from .expressions import LambdaBodies
from .memory import Memory
from .planning import Readers
from .predicate import lambda_body


class Evaluation:
    """Evaluates predicates on lists of one type, with the same plans as everywhere else.

    Threads may share it.
    """

    def __init__(self, readers: Readers, list_type: pa.DataType, element: pa.DataType) -> None:
        self._readers = readers
        self._list_type = list_type
        self._element = element
        self._bodies = LambdaBodies(readers.lambdas, element)
        self._lock = Lock()
        self._matches = Memory[str, Expr]()
        # A thread that runs a query cannot run another one inside of it.
        self._threads = ThreadPoolExecutor(thread_name_prefix="any_element")

    def any_element(self, lists: pa.Array, predicates: pa.Array) -> pa.Array:
        """The answer for each list; raises InvalidArgumentError where the predicates differ."""
        given = predicates.unique().to_pylist()
        if not len(lists):
            return pa.array([], pa.bool_())
        if len(given) != 1 or given[0] is None:
            raise InvalidArgumentError("predicate", given, "a string literal")
        return self._threads.submit(self._evaluate, lists, given[0]).result()

    def _evaluate(self, lists: pa.Array, predicate: str) -> pa.Array:
        with self._lock:
            match = self._matches.get(predicate)
            if match is None:
                body = lambda_body(predicate, self._element, self._readers)
                match = self._bodies.match(body)
                self._matches.put(predicate, match)
        return self._bodies.evaluate(match, lists)
