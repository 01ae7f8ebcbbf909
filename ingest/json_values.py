"""Cuts bytes into JSON values: one a line, several a line, or one over many lines as kubectl prints them.

A value begins where a line begins with `{`, and ends with its last brace. What breaks off is given up where
the next one begins: a line that begins with `{` at its very start is the next one, since printers indent what
is inside. Pure. Always holds: no more than `MAX_VALUE` bytes are kept, and every byte is accounted for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

MAX_VALUE = 16 * 1024 * 1024
"""Bytes: ten times what etcd takes of an object, for its spaces when printed."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|"')
"""What counts for depth: brackets outside strings. A bare quote begins a string that does not end."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Cut:
    """A value, or why there is none, and the line at which it begins."""

    line: int
    value: Any = None
    problem: str = ""


class ValueCutter:
    """Takes chunks as they come; `close` when there are no more."""

    def __init__(self) -> None:
        self._rest = b""
        """The line whose end has not come yet."""
        self._is_cut_off = False
        """Whether the beginning of that line was too long to keep."""
        self._line = 0
        self._lines: list[bytes] = []
        """Of the value that has begun and not ended."""
        self._size = self._depth = self._begins = 0
        self._is_indented = False
        """Whether it was printed with what is inside further right than its own braces."""

    def feed(self, chunk: bytes) -> Iterator[Cut]:
        """What ends in this chunk."""
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._line += 1
            yield from self._take(self._rest + line)
            self._rest, self._is_cut_off = b"", False
        self._rest = b"" if self._is_cut_off else self._rest + rest
        if len(self._rest) > MAX_VALUE:
            yield Cut(self._line + 1, problem=f"longer than {MAX_VALUE} bytes")
            self._rest, self._is_cut_off = b"", True

    def close(self) -> Iterator[Cut]:
        """What was left without an end."""
        self._line += 1
        yield from self._take(self._rest)
        self._rest = b""
        yield from self._give_up("it breaks off at the end")

    def _take(self, line: bytes) -> Iterator[Cut]:
        if self._is_cut_off:
            return
        if self._line == 1:
            line = line.removeprefix(_BOM)
        if self._lines and line.startswith(b"{"):
            yield from self._give_up(f"it breaks off before line {self._line}")
        if not self._lines and (found := _value_of(line)) is not None:
            yield Cut(self._line, found)
            return
        while line.strip():
            if not self._lines:
                self._begins, self._is_indented = self._line, line.rstrip() == b"{"
                line = line.lstrip()
                if not line.startswith(b"{"):
                    yield self._cut_of(line)
                    return
            end = self._end_in(line)
            if end < 0:
                yield from self._keep(line)
                return
            yield self._cut_of(b"\n".join([*self._lines, line[:end]]))
            self._forget()
            line = line[end:]

    def _keep(self, line: bytes) -> Iterator[Cut]:
        self._lines.append(line)
        self._size += len(line) + 1
        if self._depth < 0:
            yield from self._give_up(f"line {self._line} ends within a string")
        elif self._size > MAX_VALUE:
            yield from self._give_up(f"longer than {MAX_VALUE} bytes")

    def _end_in(self, line: bytes) -> int:
        """Where the value ends in this line, or -1; the depth is negative when it cannot go on.

        Where printers indent, the brace that closes is at the very start of its line, as that which opens is.
        """
        if self._is_indented:
            return 1 if self._lines and line.startswith(b"}") else -1
        for token in _TOKEN.finditer(line):
            match token[0]:
                case b"{" | b"[":
                    self._depth += 1
                case b"}" | b"]":
                    self._depth -= 1
                    if self._depth <= 0:
                        return token.end()
                case b'"':
                    self._depth = -1
                    return -1
        return -1

    def _give_up(self, problem: str) -> Iterator[Cut]:
        if self._lines:
            yield Cut(self._begins, problem=f"no JSON: {problem}")
        self._forget()

    def _forget(self) -> None:
        self._lines.clear()
        self._size = self._depth = 0

    def _cut_of(self, text: bytes) -> Cut:
        try:
            return Cut(self._begins, orjson.loads(text))
        except orjson.JSONDecodeError as error:
            return Cut(self._begins, problem=f"no JSON: {error.msg}")


def _value_of(line: bytes) -> Any:
    """Of a line that is one value, which most are; None for any other."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
