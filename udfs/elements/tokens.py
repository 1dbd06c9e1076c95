"""SQL text as tokens, each with the place where it stands.

Only as much is told apart as it takes to find calls and columns: what is inside strings, quoted
names and comments is not searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise


class Kind(Enum):
    """What a token is. OTHER_STRING are literals whose text is not their value: E'..', X'..'."""

    WORD = auto()
    QUOTED_NAME = auto()
    STRING = auto()
    OTHER_STRING = auto()
    NUMBER = auto()
    PLACEHOLDER = auto()
    SYMBOL = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token, `source`, at `start` of its text.

    `value` is what it says: a string's or a quoted name's content, anything else as it stands.
    """

    kind: Kind
    value: str
    source: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.source)

    def is_word(self, word: str) -> bool:
        """Whether it is the given keyword or unquoted name, in any case."""
        return self.kind is Kind.WORD and self.value.lower() == word

    def is_symbol(self, symbol: str) -> bool:
        return self.kind is Kind.SYMBOL and self.value == symbol


def named(token: Token, normalize: bool) -> str | None:
    """What a token names, if it is a name; with `normalize`, without quotes in lower case."""
    if token.kind is Kind.QUOTED_NAME:
        return token.value
    if token.kind is not Kind.WORD:
        return None
    # As DataFusion does it: letters beyond ASCII keep their case.
    return (
        "".join(c.lower() if c.isascii() else c for c in token.value) if normalize else token.value
    )


class UnreadableTextError(ValueError):
    """A string, a quoted name or a comment that does not end, or brackets that do not match."""


_TOKEN = re.compile(
    r"""
      (?P<space>\s+ | --[^\n]* )
    | (?P<comment>/\*)
    | (?P<escaped>[eE]'(?:[^'\\]|''|\\.)*')
    | (?P<prefixed>[bBnNxXrR]'(?:[^']|'')*' | [uU]&'(?:[^']|'')*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<backquoted>`(?:[^`]|``)*`)
    | \$(?P<tag>[^\W\d]\w*|)\$ (?P<dollar>.*?) \$(?P=tag)\$
    | (?P<placeholder>\$\w+ | \?)
    | (?P<number>(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<symbol>[^'"`])
    """,
    re.VERBOSE | re.DOTALL,
)

_COMMENT_EDGE = re.compile(r"/\*|\*/")


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, without white space and comments.

    Raises UnreadableTextError where a string, quoted name or comment does not end.

    >>> [token.value for token in tokenize("label = 'it''s' -- a comment")]
    ['label', '=', "it's"]
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnreadableTextError(f"no end of what begins at character {position}")
        start, position = position, match.end()
        group = match.lastgroup
        content = match.group(group) if group else ""
        if group == "space":
            continue
        if group == "comment":
            position = _comment_end(text, position)
            continue
        kind, value = _KINDS[group or "symbol"], content
        if group in ("string", "quoted", "backquoted"):
            value = content[1:-1].replace(content[0] * 2, content[0])
        tokens.append(Token(kind, value, match.group(), start))
    return tokens


_KINDS = {
    "escaped": Kind.OTHER_STRING,
    "prefixed": Kind.OTHER_STRING,
    "string": Kind.STRING,
    "dollar": Kind.STRING,
    "quoted": Kind.QUOTED_NAME,
    "backquoted": Kind.QUOTED_NAME,
    "placeholder": Kind.PLACEHOLDER,
    "number": Kind.NUMBER,
    "word": Kind.WORD,
    "symbol": Kind.SYMBOL,
}


def _comment_end(text: str, position: int) -> int:
    """The end of a block comment, which may hold others, from behind its opening on."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, position):
        depth += 1 if edge.group() == "/*" else -1
        if not depth:
            return edge.end()
    raise UnreadableTextError("a comment that does not end")


def joined(tokens: Iterable[Token]) -> str:
    """The tokens' text, with a space where there was anything between two of them.

    >>> joined(tokenize("a.b/**/>=   1 -- a comment"))
    'a.b >= 1'
    """
    parts: list[str] = []
    end = None
    for token in tokens:
        if end is not None and token.start > end:
            parts.append(" ")
        parts.append(token.source)
        end = token.end
    return "".join(parts)


_PLAIN_SYMBOLS = frozenset("=<>!+-*/%.,();[]{}:|")
_DIALECTS_WORDS = frozenset({"struct", "lambda"})


def reads_plainly(tokens: Sequence[Token]) -> bool:
    """Whether DataFusion's default dialect and DuckDB's make the same of a text.

    False where it holds something that one of them reads in a way of its own.
    """
    for index, token in enumerate(tokens):
        match token.kind:
            case Kind.OTHER_STRING | Kind.PLACEHOLDER:
                return False
            case Kind.STRING | Kind.QUOTED_NAME if token.source[0] not in "'\"":
                return False
            case Kind.WORD if token.value.lower() in _DIALECTS_WORDS or not token.value.isascii():
                return False
            case Kind.SYMBOL if token.value not in _PLAIN_SYMBOLS:
                return False
            case Kind.SYMBOL if token.value == "-" and tokens[index + 1 : index + 2]:
                if tokens[index + 1].is_symbol(">"):
                    return False
            case _:
                pass
    return True


_BEFORE_BRACKETS = frozenset({"and", "between", "cast", "in", "not", "or"})


def calls_functions(tokens: Sequence[Token]) -> bool:
    """Whether functions may be called in a text by their names.

    >>> calls_functions(tokenize("NOT (a IN (1, 2))")), calls_functions(tokenize("lower(a) = 'b'"))
    (False, True)
    """
    return any(
        following.is_symbol("(")
        and token.kind in (Kind.WORD, Kind.QUOTED_NAME)
        and not (token.kind is Kind.WORD and token.value.lower() in _BEFORE_BRACKETS)
        for token, following in pairwise(tokens)
    )


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def closing(tokens: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes the one at `opening`.

    Raises UnreadableTextError where there is none.
    """
    expected: list[str] = []
    for index in range(opening, len(tokens)):
        token = tokens[index]
        if token.kind is not Kind.SYMBOL:
            continue
        if token.value in _CLOSING:
            expected.append(_CLOSING[token.value])
        elif token.value in _CLOSING.values():
            if token.value != expected.pop():
                break
            if not expected:
                return index
    raise UnreadableTextError(f"no bracket closes the one at character {tokens[opening].start}")


def split_arguments(tokens: Sequence[Token], opening: int, end: int) -> list[range]:
    """The tokens between two brackets, cut at the commas that are in no bracket of their own."""
    arguments: list[range] = []
    begin = index = opening + 1
    while index < end:
        token = tokens[index]
        if token.kind is Kind.SYMBOL and token.value in _CLOSING:
            index = closing(tokens, index)
        elif token.is_symbol(","):
            arguments.append(range(begin, index))
            begin = index + 1
        index += 1
    if begin < end or arguments:
        arguments.append(range(begin, end))
    return arguments


_QUERY_WORDS = ("select", "with", "from", "values")
_SET_OPERATORS = ("union", "intersect", "except")


def query_blocks(tokens: Sequence[Token]) -> list[int]:
    """For each token a number of the SELECT, and no other one, that it stands in.

    The words that begin one may also say something else: then it has two numbers.

    >>> query_blocks(tokenize("SELECT (a) UNION SELECT (SELECT b), c"))
    [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 1, 1]
    """
    blocks: list[int] = []
    open_ones, last = [0], 0
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.is_symbol("("):
            queries = following is not None and any(map(following.is_word, _QUERY_WORDS))
            last += queries
            open_ones.append(last if queries else open_ones[-1])
        elif any(map(token.is_word, _SET_OPERATORS)):
            last += 1
            open_ones[-1] = last
        blocks.append(open_ones[-1])
        if token.is_symbol(")") and len(open_ones) > 1:
            open_ones.pop()
    return blocks
