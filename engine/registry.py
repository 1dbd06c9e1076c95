"""Lance tables in a DataFusion catalog.

The catalog itself is the only record of what is registered: a table carries the terms it was
registered on, and is found again by asking the catalog for its name. So tables may come and go
by any of DataFusion's ways (SQL, catalogs, other contexts) and nothing is out of step.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
from datafusion import SessionContext
from lance import LanceDataset

from ..indexes.cache import ReaderCache
from ..indexes.cancellation import uninterrupted
from ..indexes.errors import InvalidArgumentError
from ..indexes.snapshot import Snapshot
from .lance_table import LanceTable, PartitionScan
from .pushed_filter import PushedFilter
from .scan_identity import fragments_asked, scanner_asked, touched, watch


@dataclass(frozen=True, slots=True)
class Terms:
    """What a table was registered as.

    `version` is the number or tag that was asked for; None follows the current version.
    """

    source: str | LanceDataset
    version: int | str | None = None
    storage_options: Mapping[str, str] | None = None
    row_id: bool = False

    def open(self) -> LanceDataset:
        """The dataset at the version asked for, which is the newest one for None."""
        if isinstance(self.source, LanceDataset):
            dataset = self.source
        else:
            options = None if self.storage_options is None else dict(self.storage_options)
            try:
                dataset = lance.dataset(self.source, storage_options=options)
            except Exception as error:
                raise InvalidArgumentError(
                    "path_or_dataset",
                    self.source,
                    f"the path or URL of a Lance dataset{_not_opened(self.source, error)}",
                ) from error
        return _at_version(dataset, self.version)


def _not_opened(source: str, error: Exception) -> str:
    """Why there is no dataset, as the end of a message."""
    if "://" not in source:
        with suppress(OSError, RuntimeError):  # where it cannot be told, the cause stands alone
            path = Path(source).expanduser()
            if not path.exists():
                return "; there is nothing at this path"
            if not (path / "_versions").exists():
                return "; what is at this path is none"
    cause = str(error).partition("\n")[0].split(", /")[0]  # without places in Lance's source
    return f" ({cause})"


def _at_version(dataset: LanceDataset, version: int | str | None) -> LanceDataset:
    if version is None:
        return dataset.checkout_version(dataset.latest_version)
    if isinstance(version, bool) or not isinstance(version, int | str):
        raise InvalidArgumentError("version", version, "a version number or a tag")
    try:
        return dataset.checkout_version(version)
    except Exception as error:
        tags = ", ".join(repr(tag) for tag in sorted(dataset.tags.list())) or "there are none"
        raise InvalidArgumentError(
            "version",
            version,
            f"a version number, at most {dataset.latest_version}, or a tag ({tags})",
        ) from error


class RegisteredTable(LanceTable):
    """A Lance table under the terms it was registered on; `name` is the name that was given."""

    def __init__(self, name: str, dataset: LanceDataset, terms: Terms, cache: ReaderCache) -> None:
        super().__init__(dataset, row_id=terms.row_id)
        self.name = name
        self.terms = terms
        # A registered table always has one.
        self.snapshot: Snapshot = Snapshot(dataset, cache)  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def bare_name(self) -> str:
        """The name without catalog, schema and quotes, as DataFusion prints it."""
        quoted = re.search(r'"((?:[^"]|"")*)"$', self.name)
        if quoted is not None:
            return quoted[1].replace('""', '"')
        return self.name.rpartition(".")[2].lower()

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: PushedFilter = None,
        batch_size: int | None = None,
        **_ignored: Any,
    ) -> PartitionScan:
        scanner_asked(self, columns)
        return super().scanner(columns, filter, batch_size)

    def get_fragments(self, filter: PushedFilter = None) -> list[Any]:
        """The partitions: its own, or those of what stands in for it on this thread."""
        other = fragments_asked(self, filter)
        return super().get_fragments(filter) if other is None else other.get_fragments(filter)

    def _touched(self) -> None:
        touched(self)


def open_table(name: str, terms: Terms, cache: ReaderCache) -> RegisteredTable:
    """A table for a first registration; a dataset object without version is taken as it is."""
    if isinstance(terms.source, LanceDataset) and terms.version is None:
        return RegisteredTable(name, terms.source, terms, cache)
    return RegisteredTable(name, terms.open(), terms, cache)


def find_table(context: SessionContext, name: str) -> RegisteredTable | None:
    """The Lance table that `name` stands for in the context; None for other tables.

    A catalog gives no Python object back, but the table in it answers for its schema.
    """
    # DataFusion makes a panic of a KeyboardInterrupt in what it calls.
    with uninterrupted(), watch(RegisteredTable) as asked:
        try:
            provider = context.table_provider(name)
        except KeyError:
            return None
        provider.schema  # noqa: B018 - asking is the point
    return next((table for table in asked if isinstance(table, RegisteredTable)), None)


def source_of(path_or_dataset: Any) -> str | LanceDataset:
    """The argument as a dataset or a path in text."""
    if isinstance(path_or_dataset, LanceDataset | str):
        return path_or_dataset
    if isinstance(path_or_dataset, os.PathLike):
        return os.fspath(Path(path_or_dataset))
    raise InvalidArgumentError(
        "path_or_dataset", path_or_dataset, "the path or URL of a Lance dataset, or a LanceDataset"
    )
