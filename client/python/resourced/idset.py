"""Sets of ranks and of other small numbers, and their text (RFC 22), with the names of flux.idset.

A set is kept as ranges of consecutive ids, so that "0-4294967294" costs no more than "0".
"""

from __future__ import annotations

import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, SupportsIndex, TypeAlias

from resourced._quote import quoted

#: The largest possible id in a set.
MAX_ID = 4294967294
#: Returned by first(), last() and next() where there is no such id.
IDSET_INVALID_ID = 4294967295
IDSET_FLAG_BRACKETS = 2
IDSET_FLAG_RANGE = 4

Run: TypeAlias = tuple[int, int]
#: Types that functions accept as a set of ids.
IdsLike: TypeAlias = "IDset | str | int | Iterable[int]"

_NUMBER = re.compile(r"[0-9]*", re.ASCII)


class IDset:
    """A set of ids from 0 to MAX_ID.

    `arg` is RFC 22 text, an id, or anything that iterates over ids. Raises ValueError for text that is not an idset.
    Methods that take a set take any of these.
    """

    __slots__ = ("_runs", "_flags")
    __hash__ = None  # type: ignore[assignment]  # instances are mutable

    def __init__(self, arg: IdsLike = "", flags: int = IDSET_FLAG_RANGE) -> None:
        self._flags = flags
        self._runs: list[Run]
        if isinstance(arg, IDset):
            self._runs = arg._runs.copy()
        elif isinstance(arg, str):
            self._runs = _parse(arg)
        elif isinstance(arg, Iterable):
            self._runs = _from_ids(arg)
        else:
            self._runs = _from_ids([arg])

    @classmethod
    def of_ranges(cls, ranges: Iterable[Run]) -> IDset:
        """Makes a set of ranges that ascend and do not overlap, each with its first and last id."""
        result = cls()
        for first, last in ranges:
            if result._runs and result._runs[-1][1] + 1 == first:
                result._runs[-1] = result._runs[-1][0], last
            else:
                result._runs.append((first, last))
        return result

    # Text

    def encode(self, flags: int | None = None) -> str:
        """Returns RFC 22 text; with IDSET_FLAG_BRACKETS in brackets if there are several ids, without IDSET_FLAG_RANGE
        each id by itself."""
        flags = self._flags if flags is None else flags
        if flags & IDSET_FLAG_RANGE:
            text = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self._runs)
        else:
            text = ",".join(map(str, self))
        return f"[{text}]" if flags & IDSET_FLAG_BRACKETS and self.count() > 1 else text

    def set_flags(self, flags: int) -> None:
        """Sets the default flags of encode()."""
        self._flags = flags

    def __str__(self) -> str:
        return self.encode()

    def __repr__(self) -> str:
        return f"IDset('{self.encode(IDSET_FLAG_RANGE)}')"

    # Members

    def count(self) -> int:
        return sum(last - first + 1 for first, last in self._runs)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __iter__(self) -> Iterator[int]:
        for first, last in self._runs:
            yield from range(first, last + 1)

    def expand(self) -> list[int]:
        return list(self)

    def ranges(self) -> list[Run]:
        """Returns the first and the last id of each maximal range of consecutive ids."""
        return self._runs.copy()

    def test(self, i: SupportsIndex) -> bool:
        i = _index(i, "test")
        at = self._at(i)
        return at >= 0 and i <= self._runs[at][1]

    def __contains__(self, i: SupportsIndex) -> bool:
        return self.test(i)

    def __getitem__(self, i: SupportsIndex) -> bool:
        return self.test(i)

    def __setitem__(self, i: SupportsIndex, value: bool) -> None:
        if value not in (0, 1):
            raise TypeError(f"a member of an IDset is set to True or False, not to {value!r}")
        self.set(i) if value else self.clear(i)

    def first(self) -> int:
        return self._runs[0][0] if self._runs else IDSET_INVALID_ID

    def last(self) -> int:
        return self._runs[-1][1] if self._runs else IDSET_INVALID_ID

    def next(self, i: SupportsIndex) -> int:
        """Returns the smallest id above i."""
        above = _index(i, "next") + 1
        at = self._at(above)
        if at >= 0 and above <= self._runs[at][1]:
            return above
        return self._runs[at + 1][0] if at + 1 < len(self._runs) else IDSET_INVALID_ID

    def _at(self, i: int) -> int:
        """Returns the index of the last range that begins at or below an id, or -1."""
        return bisect_right(self._runs, (i, IDSET_INVALID_ID)) - 1

    # Changes

    def set(self, start: SupportsIndex, end: SupportsIndex | None = None) -> IDset:
        """Adds an id, or all ids from start to end."""
        first, last = _bounds(start, end, "set")
        if last > MAX_ID:
            raise ValueError(f"an IDset has no id above {MAX_ID}")
        self._replace(first, last, True)
        return self

    def clear(self, start: SupportsIndex, end: SupportsIndex | None = None) -> IDset:
        """Removes an id, or all ids from start to end."""
        self._replace(*_bounds(start, end, "clear"), False)
        return self

    def _replace(self, first: int, last: int, value: bool) -> None:
        # The ranges that meet this one or, if it is added, touch it.
        touch = 1 if value else 0
        begin = self._at(first)
        if begin < 0 or self._runs[begin][1] + touch < first:
            begin += 1
        end = self._at(last + touch) + 1
        new: list[Run] = []
        if begin < end:
            low, high = self._runs[begin][0], self._runs[end - 1][1]
            if value:
                first, last = min(first, low), max(last, high)
            else:
                new = [(a, b) for a, b in ((low, first - 1), (last + 1, high)) if a <= b]
        self._runs[begin:end] = [(first, last)] if value else new

    def add(self, arg: IdsLike) -> IDset:
        self._runs = _merged([*self._runs, *_ids(arg)._runs])
        return self

    def subtract(self, arg: IdsLike) -> IDset:
        self._runs = _combine(self._runs, _ids(arg)._runs, lambda a, b: a and not b)
        return self

    def copy(self) -> IDset:
        return IDset(self, self._flags)

    # Set operations

    def union(self, *args: IdsLike) -> IDset:
        # Unite all sets at once: one after the other, many sets would cost the square of their number.
        result = self.copy()
        result._runs = _merged([*self._runs, *(run for arg in args for run in _ids(arg)._runs)])
        return result

    def intersect(self, *args: IdsLike) -> IDset:
        result = self.copy()
        for arg in args:
            result._runs = _combine(result._runs, _ids(arg)._runs, operator.and_)
        return result

    def difference(self, *args: IdsLike) -> IDset:
        result = self.copy()
        for arg in args:
            result.subtract(arg)
        return result

    def includes(self, arg: IdsLike) -> bool:
        """Whether each id of the other set is in this one."""
        return not _ids(arg).difference(self)

    def equal(self, idset: IDset) -> bool:
        if not isinstance(idset, IDset):
            raise TypeError(f"an IDset is compared with an IDset, not with {type(idset).__name__}")
        return self._runs == idset._runs

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IDset):
            return NotImplemented
        return self._runs == other._runs

    def __or__(self, arg: IdsLike) -> IDset:
        return self.union(arg)

    def __add__(self, arg: IdsLike) -> IDset:
        return self.union(arg)

    def __and__(self, arg: IdsLike) -> IDset:
        return self.intersect(arg)

    def __sub__(self, arg: IdsLike) -> IDset:
        return self.difference(arg)

    def __iadd__(self, arg: IdsLike) -> IDset:
        return self.add(arg)

    def __ior__(self, arg: IdsLike) -> IDset:
        return self.add(arg)

    def __isub__(self, arg: IdsLike) -> IDset:
        return self.subtract(arg)


def decode(string: str) -> IDset:
    """Reads RFC 22 text."""
    return IDset(string)


def _ids(arg: IdsLike) -> IDset:
    return arg if isinstance(arg, IDset) else IDset(arg)


def _index(i: SupportsIndex, function: str) -> int:
    try:
        value = operator.index(i)
    except TypeError:
        raise TypeError(f"IDset.{function} takes integers, not {type(i).__name__}") from None
    if value < 0:
        raise ValueError(f"IDset.{function} takes no negative id: {value}")
    return value


def _bounds(start: SupportsIndex, end: SupportsIndex | None, function: str) -> Run:
    first = _index(start, function)
    last = first if end is None else _index(end, function)
    if last < first:
        raise ValueError(f"the range {first}-{last} runs backwards")
    return first, last


def _from_ids(ids: Iterable[Any]) -> list[Run]:
    runs: list[Run] = []
    for i in sorted(_index(one, "__init__") for one in ids):
        if i > MAX_ID:
            raise ValueError(f"an IDset has no id above {MAX_ID}")
        if runs and i <= runs[-1][1] + 1:
            runs[-1] = runs[-1][0], i
        else:
            runs.append((i, i))
    return runs


def _merged(runs: list[Run]) -> list[Run]:
    """Returns the ids of ranges in any order, which may overlap."""
    merged: list[Run] = []
    for first, last in sorted(runs):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def _combine(a: list[Run], b: list[Run], keep: Callable[[bool, bool], bool]) -> list[Run]:
    """Returns the ids for which keep(whether a has it, whether b has it). An id that is in neither is not kept."""
    runs: list[Run] = []
    at_a = at_b = 0
    for begin, end in pairwise(sorted({bound for first, last in (*a, *b) for bound in (first, last + 1)})):
        while at_a < len(a) and a[at_a][1] < begin:
            at_a += 1
        while at_b < len(b) and b[at_b][1] < begin:
            at_b += 1
        if not keep(at_a < len(a) and a[at_a][0] <= begin, at_b < len(b) and b[at_b][0] <= begin):
            continue
        if runs and runs[-1][1] + 1 == begin:
            runs[-1] = runs[-1][0], end - 1
        else:
            runs.append((begin, end - 1))
    return runs


def _parse(text: str) -> list[Run]:
    def fail(reason: str) -> ValueError:
        return ValueError(f"{quoted(text)} is not an idset: {reason}")

    at, end = 0, len(text)
    if text.startswith("["):
        if not text.endswith("]"):
            raise fail("the bracket is not closed")
        at, end = 1, end - 1

    def number() -> int:
        nonlocal at
        digits = _NUMBER.match(text, at, end)
        assert digits is not None  # it matches no digits, too
        word = digits[0]
        if at >= end:
            raise fail("a number is missing at the end")
        if not word:
            raise fail(f"{quoted(text[at:end])} is not a number")
        if len(word) > 1 and word[0] == "0":
            raise fail(f"{quoted(word)} has a leading zero")
        if len(word) > 10 or int(word) > MAX_ID:
            raise fail(f"{quoted(word)} is above {MAX_ID}")
        at = digits.end()
        return int(word)

    runs: list[Run] = []
    after = 0
    while at < end or after:
        first = last = number()
        if text.startswith("-", at, end):
            at += 1
            last = number()
            if last < first:
                raise fail(f"the range {first}-{last} runs backwards")
        if first < after:
            raise fail(f"{first} comes after {after - 1}, ids must ascend")
        if runs and runs[-1][1] + 1 == first:
            runs[-1] = runs[-1][0], last
        else:
            runs.append((first, last))
        after = last + 1
        if at == end:
            break
        if not text.startswith(",", at, end):
            raise fail(f"{quoted(text[at:end])} is not expected")
        at += 1
    return runs
