"""The command line, `datafusion-lance`."""

from __future__ import annotations

import os

# pylance warns on stderr of each index type that it does not know, whenever it opens a table. It
# reads this once, when it is first imported.
os.environ.setdefault("LANCE_LOG", "error")
