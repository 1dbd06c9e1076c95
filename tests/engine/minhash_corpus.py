"""A table of texts with planted near-duplicates, and what pylance's own search finds in it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from datafusion import SessionContext
from lance.indices import IndexConfig
from lance.query import MinHashQuery

from datafusion_lance.engine import LanceSessionContext

_WORDS = [f"{head}{tail}" for head in "bcdfghklmnprst" for tail in ("a", "e", "i", "ob", "ur")]
_LANGUAGES = ("de", "en", "fr", None)


@dataclass(frozen=True)
class Corpus:
    """Texts of which every third one is its own; the others are one of 300 with words changed."""

    seed: int = 1

    def rows(self, start: int, stop: int) -> pa.Table:
        texts = [self.text(at) for at in range(start, stop)]
        return pa.table(
            {
                "id": pa.array(range(start, stop), pa.int64()),
                "lang": pa.array([_LANGUAGES[at % 4] for at in range(start, stop)]),
                "tags": [[f"t{at % 10}"] for at in range(start, stop)],
                "text": pa.array(texts, pa.string()),
            }
        )

    def text(self, at: int) -> str | None:
        """NULL for a few, without tokens for a few."""
        if at % 97 == 5:
            return None
        if at % 97 == 6:
            return " \n"
        chosen = random.Random(f"{self.seed} {at}")
        if at % 3 == 0:
            # Short ones too: near-duplicates of them differ much.
            return " ".join(chosen.choices(_WORDS, k=chosen.choice((2, 8, 20, 40))))
        words = (self.text(3 * chosen.randrange(300)) or "").split() or ["nothing"]
        for _ in range(chosen.randrange(3)):
            place = chosen.randrange(len(words))
            words[place : place + chosen.randrange(2)] = [chosen.choice(_WORDS)]
        return " ".join(words)


def create_index(path: Path, **parameters: Any) -> None:
    lance.dataset(path).create_scalar_index(
        "text", IndexConfig("minhashlsh", parameters=parameters), name="text_idx"
    )


def found_by_pylance(
    dataset: lance.LanceDataset,
    text: str,
    limit: int,
    filter: str | None = None,
    *,
    indexed: bool = False,
) -> list[tuple[int, float]]:
    """Ids and distances."""
    scanner = dataset.scanner(
        nearest=MinHashQuery(text, "text"),
        columns=["id", "_distance"],
        limit=limit,
        filter=filter,
        prefilter=filter is not None,
        fast_search=indexed,
    )
    found = scanner.to_table().to_pydict()
    return list(zip(found["id"], found["_distance"], strict=True))


QUERY = "bob dob fob kob lob mob nob pob rob sob tob bur cur dur fur hur"


def copies() -> pa.Table:
    """Copies of the query in which more and more words are other ones, then unlike texts."""
    words = QUERY.split()
    texts: list[str | None] = [
        " ".join([*words[: len(words) - other], *["zz"] * other]) for other in range(len(words))
    ]
    texts += [None, " ", *(f"unlike {at}" for at in range(80))]
    ids = range(len(texts))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "lang": [("de", "en")[at % 2] for at in ids],
            "tags": [[f"t{at % 3}"] for at in ids],
            "d": [[{"k": at % 4, "v": at}] for at in ids],
            "text": pa.array(texts, pa.string()),
            "plain": pa.array(texts, pa.large_string()),
        }
    )


def write_copies(path: Path) -> Path:
    """A table of the copies; its index has bands of two values, so that even distant texts share
    one."""
    lance.write_dataset(copies(), path, max_rows_per_file=40)
    create_index(path, num_bands=64)
    return path


def session_of(path: Path, **options: Any) -> LanceSessionContext:
    session = LanceSessionContext(**options)
    session.register_lance("docs", path)
    return session


def search(limit: object, *rest: str, column: str = "text", text: str = f"'{QUERY}'") -> str:
    arguments = ["'docs'", f"'{column}'", text, str(limit), *rest]
    return f"minhash_search({', '.join(arguments)})"


def select(limit: object, *rest: str, **named: str) -> str:
    return f"SELECT id FROM {search(limit, *rest, **named)}"


def ids(context: SessionContext, sql: str) -> list[int]:
    return context.sql(sql).to_pydict()["id"]
