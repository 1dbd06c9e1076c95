"""The readers' cache keeps to its limits, from any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from datafusion_lance.indexes.cache import ReaderCache


def test_a_value_is_loaded_once() -> None:
    cache = ReaderCache(100)
    loads: list[str] = []

    def load() -> tuple[str, int]:
        loads.append("x")
        return "value", 10

    assert cache.get("k", load) == cache.get("k", load) == "value"
    assert loads == ["x"]
    assert cache.nbytes == 10


def test_the_least_recently_used_goes_first() -> None:
    cache = ReaderCache(20)
    for key in "ab":
        cache.put(key, key, 10)
    cache.peek("a")
    cache.put("c", "c", 10)
    assert (cache.peek("a"), cache.peek("b"), cache.peek("c")) == ("a", None, "c")


def test_a_value_beyond_the_limit_is_handed_out_and_not_kept() -> None:
    cache = ReaderCache(10)
    cache.put("small", 1, 5)
    assert cache.get("k", lambda: ("large", 11)) == "large"
    assert cache.peek("k") is None
    assert cache.peek("small") == 1


def test_open_files_have_a_limit_of_their_own() -> None:
    cache = ReaderCache(1000, open_file_limit=2)
    cache.put("bytes", 0, 10)
    for file in range(4):
        cache.get(file, lambda: ("file", 1), handles=1)
    assert cache.open_files == 2
    assert cache.peek("bytes") == 0
    assert [cache.peek(file) is not None for file in range(4)] == [False, False, True, True]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 30), st.integers(0, 2))))
def test_limits_hold_whatever_is_put(puts: list[tuple[int, int, int]]) -> None:
    cache = ReaderCache(50, open_file_limit=3)
    kept: dict[int, tuple[int, int]] = {}
    for key, nbytes, handles in puts:
        cache.put(key, key, nbytes, handles=handles)
        kept[key] = (nbytes, handles)
        kept = {k: sizes for k, sizes in kept.items() if cache.peek(k) is not None}
        assert cache.nbytes == sum(nbytes for nbytes, _ in kept.values()) <= 50
        assert cache.open_files == sum(handles for _, handles in kept.values()) <= 3


def test_threads() -> None:
    cache = ReaderCache(200)

    def work(seed: int) -> None:
        for i in range(500):
            key = (seed * 7 + i) % 40
            assert cache.get(key, lambda key=key: (key, 10)) == key

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert cache.nbytes <= 200
    assert len(cache) == cache.nbytes // 10
