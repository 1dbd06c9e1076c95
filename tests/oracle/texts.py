"""Columns of near-duplicate texts, distances between them and a text, and predicates on those."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from datafusion_lance.udfs.minhash.definitions import function_of

from .kinds import text_literal

Signing: TypeAlias = tuple[int, int, int]
"""The number of hashes, that of bands, and the size of shingles."""

DEFAULT: Final[Signing] = (128, 16, 3)
SIGNINGS: Final[tuple[Signing, ...]] = (
    *(DEFAULT, DEFAULT, DEFAULT, (64, 8, 3), (60, 12, 2), (128, 64, 2), (32, 32, 1)),
    *((16, 1, 3), (96, 6, 9), (256, 64, 3)),
)
_OTHER_BANDS: Final[dict[Signing, Signing]] = {DEFAULT: (128, 8, 3), (60, 12, 2): (60, 20, 2)}
"""What makes the same signatures, and so the same distances."""

GIVEN: Final[tuple[tuple[int, ...], ...]] = (
    *dict.fromkeys((*SIGNINGS, *_OTHER_BANDS.values())),
    *((64,), (128,), (128, 16), (64, 8)),
)
"""All parameters that calls are drawn with."""

_WORDS: Final = (
    *("the", "a", "red", "car", "dog", "sleeps", "under", "rain", "it's", "naïve", "2024", "Ärger"),
    *(f"w{n}" for n in range(12)),
)
_EDITS: Final = ("owl", "pig", "Owl", "the")
_NOTHING: Final = ("", " . ", "…!", "  ")
"""Texts without a token."""

_DIFFERENT: Final = 120
"""So many different texts there are at most in what is drawn at once."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of copies of `bases`, most of them edited; its indexes sign as `signings` say."""

    name: str
    large: bool
    bases: tuple[str, ...]
    signings: tuple[Signing, ...]

    @property
    def type(self) -> pa.DataType:
        return pa.large_string() if self.large else pa.string()

    def draw(self, random: np.random.Generator, rows: int) -> pa.Array:
        different = min(rows, _DIFFERENT)
        made = [self._text(random) for _ in range(different)]
        # The first ones are as many as all others: identical texts are near duplicates, too.
        places = (different * random.random(rows) ** 1.5).astype(np.int64)
        return pa.array(made, self.type).take(pa.array(places))

    def _text(self, random: np.random.Generator) -> str | None:
        if random.random() < 0.12:
            return (None, None, *_NOTHING)[random.integers(2 + len(_NOTHING))]
        words = self.bases[random.integers(len(self.bases))].split()
        for _ in range(random.integers(0, 4)):
            # An edit near an end changes few shingles.
            at = (0, -1, 1, int(random.integers(len(words))))[random.integers(4)]
            words[at] = str(random.choice(_EDITS))
        if random.random() < 0.2:
            words = [*words, "owl", "owl"][random.integers(0, 3) :]
        return random.choice([" ", " ", ", "]).join(words)


def draw_texts(random: np.random.Generator, name: str) -> Texts:
    bases = tuple(
        " ".join(random.choice(_WORDS, random.integers(6, 26)))
        for _ in range(random.integers(1, 5))
    )
    count = int(random.choice([1, 1, 2]))
    signings = tuple(SIGNINGS[n] for n in random.integers(0, len(SIGNINGS), count))
    return Texts(name, bool(random.random() < 0.2), bases, tuple(dict.fromkeys(signings)))


@dataclass(frozen=True, slots=True)
class Distance:
    """A distance or similarity of a column's texts and one text, which is SQL, too.

    `form` is what is made of the call `{call}`: it is ordered by from the nearest on in the
    `direction`. `given` are the parameters in the call; plain DataFusion, which has no functions
    with parameters, gets them by the name that this package has for each.
    """

    function: str
    column: str
    text: str
    given: tuple[int, ...]
    flipped: bool = False
    form: str = "{call}"
    direction: str = "ASC"

    def sql(self, prefix: str, *, in_memory: bool) -> str:
        name = function_of(self.function, self.given).name if in_memory else self.function
        texts = [f"{prefix}{self.column}", self.text.replace("@", prefix)]
        arguments = [*(reversed(texts) if self.flipped else texts), *map(str, self.given)]
        return self.form.replace("{call}", f"{name}({', '.join(arguments)})")

    @property
    def parts(self) -> dict[str, str]:
        """What a table function, and what stands for it in plain DataFusion, is called with."""
        hashes, bands, *_ = (*self.given, *DEFAULT[len(self.given) :])
        return {
            "column": self.column,
            "text": self.text,
            "bands": repr(bands / hashes),
            "below": repr((bands - 1) / hashes),
            "function": function_of(self.function, self.given).name,
            "given": "".join(f", {number}" for number in self.given),
        }

    @property
    def num_hashes(self) -> int:
        return (*self.given, DEFAULT[0])[0]

    def smaller(self) -> Iterator[Distance]:
        if self.form != "{call}" or self.function != "minhash_distance" or self.flipped:
            yield Distance("minhash_distance", self.column, self.text, self.given)
        if self.given:
            yield replace(self, given=())


_FORMS: Final = (
    *(("minhash_distance", "{call}", "ASC"),) * 6,
    *(("minhash_similarity", "{call}", "DESC"),) * 3,
    ("minhash_similarity", "1 - {call}", "ASC"),
    ("minhash_distance", "CAST({call} AS FLOAT)", "ASC"),
    ("minhash_distance", "({call} * 3 + 0.5)", "ASC"),
)


def draw_distance(draw: random.Random, column: Texts) -> Distance:
    function, form, direction = draw.choice(_FORMS)
    given = _draw_given(draw, column)
    flipped = draw.random() < 0.15
    return Distance(function, column.name, _query(draw, column), given, flipped, form, direction)


def draw_order(draw: random.Random, column: Texts) -> Distance:
    """A distance to order by: mostly from the nearest on, and to a literal."""
    one = draw_distance(draw, column)
    turned = {"ASC": "DESC", "DESC": "ASC"}
    direction = turned[one.direction] if draw.random() < 0.06 else one.direction
    if draw.random() < 0.05:
        one = replace(one, form="round({call}, 1)")
    nulls = draw.choices(("", " NULLS LAST", " NULLS FIRST"), (6, 2, 2))[0]
    return replace(one, direction=direction + nulls)


def draw_plain_distance(draw: random.Random, column: Texts, signing: Signing) -> Distance:
    """A distance that a table function finds, of an index with that signing."""
    return Distance("minhash_distance", column.name, _query(draw, column), signing)


def draw_bound(draw: random.Random, column: Texts) -> tuple[str, Distance]:
    """A predicate as a form in which `{d}` is the distance, and `@name` a column.

    Most of them compare with a literal that lies among the distances.
    """
    distance = draw_distance(draw, column)
    count = distance.num_hashes
    # Both below and above what buckets prove; where a bound lies on a step, so does a distance.
    steps = draw.choices((0, count // 16, count // 8, count // 4, count // 2, count), k=2)
    near = sorted(min(count, step + draw.choice((0, 0, 1))) for step in steps)
    low, high = (_bound(draw, distance, step / count) for step in near)
    if distance.direction == "DESC" or distance.form.startswith("(1 -"):
        low, high = high, low
    at_most = "<" if distance.direction == "ASC" else ">"
    match draw.random():
        case x if x < 0.5:
            operator = draw.choice((at_most, f"{at_most}="))
            return f"{{d}} {operator} {draw.choice((low, high))}", distance
        case x if x < 0.62:
            return f"{{d}} BETWEEN {low} AND {high}", distance
        case x if x < 0.7:
            return f"{low} {draw.choice(('<', '>=', '<>', '='))} {{d}}", distance
        case x if x < 0.78:
            return "{d} IS NULL", distance
        case x if x < 0.84:
            word = draw.choice(("IN", "NOT IN"))
            return f"{{d}} {word} ({_listed(draw, distance)})", distance
        case x if x < 0.88:
            word = draw.choice(("IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
            return f"({{d}} {word} {low})", distance
        case x if x < 0.92:
            return f"({{d}} >= {low} AND {{d}} <> {high})", distance
        case x if x < 0.95:
            return "{d} <= {d}" if draw.random() < 0.3 else "{d} < @x", distance
        case x if x < 0.975:
            return f"round({{d}}, 1) <= {high}", distance
        case _:
            return f"{{d}} <= {high}", replace(distance, text="@s")


def _bound(draw: random.Random, distance: Distance, share: float) -> str:
    """The value of the distance's form at a share of different positions, or a round number."""
    value = 1 - share if distance.function == "minhash_similarity" else share
    if draw.random() < 0.4:
        value = round(value, 1)
    if distance.form.startswith("1 -"):
        value = 1 - value
    if "* 3" in distance.form:
        value = value * 3 + 0.5
    return repr(value)


def _listed(draw: random.Random, distance: Distance) -> str:
    """Items of an IN. No zero: DataFusion compares floats by their bits where there are many."""
    count = distance.num_hashes
    many = draw.random() < 0.25
    steps = range(1, count, 2) if many else draw.sample(range(1, count + 1), min(count, 3))
    items = [_bound_at(distance, step / count) for step in steps]
    return ", ".join([*items, "NULL"] if draw.random() < 0.1 else items)


def _bound_at(distance: Distance, share: float) -> str:
    value = 1 - share if distance.form.startswith("1 -") else share
    return repr(value * 3 + 0.5 if "* 3" in distance.form else value)


def _draw_given(draw: random.Random, column: Texts) -> tuple[int, ...]:
    """The parameters of one of the column's indexes, most of the time."""
    signing = draw.choice(column.signings if draw.random() < 0.93 else SIGNINGS)
    if draw.random() < 0.1:
        signing = _OTHER_BANDS.get(signing, signing)
    if signing == DEFAULT and draw.random() < 0.9:
        return ()
    if signing[1:] == DEFAULT[1:] and draw.random() < 0.5:
        return signing[:1]
    if signing == (64, 8, 3) and draw.random() < 0.5:
        return signing[:2]
    return signing


def _query(draw: random.Random, column: Texts) -> str:
    """A literal of a text: a base, an edited one, or one that is near to nothing."""
    match draw.random():
        case x if x < 0.06:
            return draw.choice(("'owl'", "' . '", "''", "'nothing of all that is here'"))
        case x if x < 0.5:
            return text_literal(draw.choice(column.bases))
        case _:
            words = draw.choice(column.bases).split()
            words[draw.choice((0, -1, draw.randrange(len(words))))] = draw.choice(_EDITS)
            return text_literal(" ".join(words))
