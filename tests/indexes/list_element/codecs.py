"""Codecs by the logical types that have one."""

from __future__ import annotations

from datafusion_lance.indexes.list_element.key_encoding import KeyCodec, key_codec


def codec_of(kind: str) -> KeyCodec:
    """The codec of a logical type; an error in the test where it has none."""
    codec = key_codec(kind)
    assert codec is not None
    return codec
