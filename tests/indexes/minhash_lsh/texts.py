"""Texts in many scripts, with what tokenizers stumble over."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = (
    *("the", "Fox's", "running", "café", "NAÏVE", "straße", "getHTTPResponse42", "foo_bar"),
    *(
        "Ελληνικά",
        "Быстрая",
        "лисица",
        "السريع",
        "हिन्दी",
        "ไทยภาษา",
        "한국어",
        "中文分词",
        "日本語の文",
    ),
    *(
        "東京",
        "e\u0301",
        "\u202e",
        "👩‍👩‍👧",
        "\U0001f1e9\U0001f1ea",
        "x" * 41,
        "a+=b",
        "->",
        "1_000.5",
    ),
    *("\x1f", "\x00", "\n", "\u3000", "...", "der", "und", "les", "ﬁ", "İ", "ǅ"),
)

texts = st.lists(
    st.one_of(
        st.sampled_from(WORDS), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    ),
    max_size=12,
).map(" ".join) | st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
"""Any text."""
