"""Building a list element index beside pylance's BTREE over the same bytes.

    python benchmarks/list_element_build.py [--rows N] [--runs N] [--tables FOLDER] [--json FILE]

pylance's table has one row for each element, with the encoded key as a Binary value, so that its
BTREE stores and sorts what the list element index does; reading the lists and encoding the keys is
ours alone. Both take turns. The memory is the most that a process of its own took for one build,
beyond what it had when it began.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa

from datafusion_lance.engine import LanceSessionContext
from datafusion_lance.indexes.list_element.key_encoding import encode_tuples, key_codec
from measure import Timing, command_line, interleaved, print_ratios, print_versions, write_report
from memory import most_memory
from tables import FOLDER, images

OURS, THEIRS = "list element index", "pylance BTREE"


def binary_values(path: Path) -> Path:
    """A table beside the one at `path`: the encoded (label, confidence) of each element."""
    target = path.with_suffix(".keys.lance")
    if not target.exists():
        codecs = [codec for kind in ("string", "float") if (codec := key_codec(kind)) is not None]
        batches = lance.dataset(path).scanner(columns=["detections"]).to_batches()
        columns = (batch["detections"].flatten().flatten()[:2] for batch in batches)
        schema = pa.schema({"value": pa.binary()})
        encoded = (
            pa.RecordBatch.from_arrays([encode_tuples(codecs, column)], schema=schema)
            for column in columns
        )
        lance.write_dataset(encoded, target, schema=schema, max_rows_per_file=1_000_000)
    return target


def builds(path: Path) -> dict[str, Callable[[], None]]:
    """By name, what builds the index and puts it in the place of the one before."""
    session = LanceSessionContext()
    session.register_lance("images", path)
    values = lance.dataset(binary_values(path))

    def ours() -> None:
        keys = ["label", "confidence"]
        session.create_lance_index(
            "images", "detections", "LIST_ELEMENT", keys=keys, replace=True, progress=False
        )

    def theirs() -> None:
        values.create_scalar_index("value", "BTREE", replace=True)

    return {OURS: ours, THEIRS: theirs}


def build(path: Path, name: str) -> Callable[[], None]:
    """One of `builds`."""
    return builds(path)[name]


def run(path: Path, runs: int) -> dict[str, dict[str, Timing]]:
    """Timings by case and contender; prints the memory."""
    elements = lance.dataset(binary_values(path)).count_rows()
    title = f"building an index over {elements:,} elements"
    timings = {title: interleaved(builds(path), runs, seconds_each=120)}
    print_ratios(title, timings[title], OURS)
    for name in (OURS, THEIRS):
        print(f"  {name}: {most_memory(build, path, name) / 2**20:,.0f} MiB at most")
    return timings


def main() -> None:
    arguments = command_line("building a list element index", runs=8)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--tables", type=Path, default=FOLDER, help="where tables are kept")
    given = arguments.parse_args()
    print_versions()
    timings = run(images(given.rows, given.tables), given.runs)
    write_report(given.json, timings)


if __name__ == "__main__":
    main()
