"""The Debian package catalogue as a table, where the system has one: a list column from life."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import lance
import pyarrow as pa

from tables import FOLDER

_FIELD = re.compile(
    r"^(Package|Version|Section|Description|Tag):\s*((?:.*\n?)(?:[ \t].*\n?)*)", re.MULTILINE
)


def catalogue(folder: Path = FOLDER) -> Path | None:
    """The path of a table of packages with `id`, `name`, `version`, `section`, `description` and
    `tags`, NULL where a package has none, and a label list index on them. None without
    `apt-cache` or with an empty catalogue.
    """
    path = folder / "packages.lance"
    if path.exists():
        return path
    if shutil.which("apt-cache") is None:
        return None
    said = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=False)
    rows = [dict(_FIELD.findall(stanza)) for stanza in said.stdout.split("\n\n") if stanza.strip()]
    if not rows:
        return None
    folder.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    dataset = lance.write_dataset(table_of(rows), unfinished)
    dataset.create_scalar_index("tags", "LABEL_LIST")
    unfinished.rename(path)
    return path


def table_of(rows: list[dict[str, str]]) -> pa.Table:
    """A row for each package, numbered from 0."""
    columns: dict[str, pa.Array] = {"id": pa.array(range(len(rows)), pa.int64())}
    for field, name in (("Package", "name"), *((f, f.lower()) for f in _TEXTS)):
        columns[name] = pa.array([row.get(field, "").strip() or None for row in rows], pa.string())
    tags = [re.split(r",\s*", row["Tag"].strip()) if "Tag" in row else None for row in rows]
    columns["tags"] = pa.array(tags, pa.list_(pa.string()))
    return pa.table(columns)


_TEXTS = ("Version", "Section", "Description")
