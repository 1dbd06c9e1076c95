"""What an EXPLAIN asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from datafusion.dataframe import ExplainAnalyzeLevel, ExplainFormat, ExplainMetricCategory
from datafusion.plan import LogicalPlan

_FORMATS = {"Indent": "indent", "Tree": "tree", "PostgresJSON": "pgjson", "Graphviz": "graphviz"}


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """`format` is DataFusion's name of it; `settings` are configuration keys and their values."""

    verbose: bool
    analyze: bool
    format: str
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, plan: LogicalPlan) -> ExplainOptions:
        """The options of an EXPLAIN's plan, which only its `repr` shows in full."""
        text = repr(plan)
        head = re.search(r"\{ verbose: (\w+), (?:explain_)?format: (\w+)", text)
        if head is None:
            raise ValueError(f"no EXPLAIN: {text[:80]}")
        tail = text[text.rfind("functional_dependencies") :]
        settings = []
        if found := re.search(r"show_statistics: Some\((\w+)\)", tail):
            settings.append(("show_statistics", found[1]))
        if found := re.search(r"analyze_level: Some\((\w+)\)", tail):
            settings.append(("analyze_level", found[1].lower()))
        if re.search(r"analyze_categories: Some\(All\)", tail):
            settings.append(("analyze_categories", "all"))
        if found := re.search(r"analyze_categories: Some\(Only\(\[(.*?)\]\)\)", tail):
            settings.append(("analyze_categories", _categories(found[1].lower().split(", "))))
        return cls(
            head[1] == "true", text.startswith("Analyze"), _FORMATS[head[2]], tuple(settings)
        )

    @classmethod
    def of_arguments(
        cls,
        verbose: bool,
        analyze: bool,
        format: ExplainFormat | None,
        show_statistics: bool | None,
        analyze_level: ExplainAnalyzeLevel | None,
        analyze_categories: Iterable[ExplainMetricCategory] | None,
    ) -> ExplainOptions:
        """The options of `DataFrame.explain`."""
        settings = []
        if show_statistics is not None:
            settings.append(("show_statistics", str(show_statistics).lower()))
        if analyze_level is not None:
            settings.append(("analyze_level", analyze_level.value))
        if analyze_categories is not None:
            names = [category.value for category in analyze_categories]
            settings.append(("analyze_categories", _categories(names)))
        name = "indent" if format is None else format.value
        return cls(verbose and name == "indent", analyze, name, tuple(settings))

    @property
    def measures(self) -> bool:
        """Whether the output says what ran, not only how it is planned."""
        return self.analyze and ("analyze_categories", "none") not in self.settings

    def statement(self, query: str) -> str:
        """The EXPLAIN of a query, without the settings."""
        words = ["EXPLAIN"]
        if self.analyze:
            words.append("ANALYZE")
        # VERBOSE takes no format in SQL; it is printed indented.
        words.append("VERBOSE" if self.verbose else f"FORMAT {self.format}")
        return " ".join([*words, query])


def _categories(names: Iterable[str]) -> str:
    return ",".join(name for name in names if name) or "none"
