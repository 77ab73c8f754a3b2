"""Lists of hosts and their text (RFC 29), with the names of flux.hostlist.

A list is kept as runs of consecutive numbers, so that its cost follows the text instead of the number of hosts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias, overload

from resourced._host_names import (
    LAST_NUMBER,
    MAX_DIGITS,
    MAX_EXPANSION,
    expressions,
    least_width,
    number_between,
    order,
    single_difference,
    written_width,
)
from resourced._quote import quoted

#: Maximum number of hosts of a list.
MAX_SIZE = 4294967295
#: Types that functions accept as a list of hosts.
HostsLike: TypeAlias = "Hostlist | str | Iterable[str]"


class _Run(NamedTuple):
    """Hosts `prefix NUMBER suffix` with consecutive numbers. `width` is the number of digits of the first number if it
    has leading zeros, otherwise 1, and 0 for a single host without a number."""

    prefix: str
    suffix: str
    first: int
    size: int
    width: int

    def name(self, offset: int) -> str:
        return f"{self.prefix}{self.first + offset:0{self.width}}{self.suffix}" if self.width else self.prefix

    def part(self, skip: int, count: int) -> _Run:
        first = self.first + skip
        return self._replace(first=first, size=count, width=least_width(first, self.width))


class Hostlist:
    """A list of hosts, in order, with repeats.

    `arg` is RFC 29 text or anything that iterates over such texts. Raises ValueError for text that is not a hostlist.
    """

    __slots__ = ("_runs", "_starts", "_size")
    __hash__ = None  # type: ignore[assignment]  # instances are mutable

    def __init__(self, arg: HostsLike = "") -> None:
        self._runs: list[_Run] = []
        #: The position of the first host of each run.
        self._starts: list[int] = []
        self._size = 0
        if isinstance(arg, str):
            self._read(arg)
        else:
            self.append(*_each(arg))

    # Text

    def encode(self) -> str:
        """Returns RFC 29 text; neighbours are compressed, and the order is kept."""
        out: list[str] = []
        numbers: list[str] = []
        group: tuple[str, str] | None = None
        width = hosts = 0

        def close() -> None:
            nonlocal group
            if group is not None:
                text = ",".join(numbers)
                out.append(f"{group[0]}[{text}]{group[1]}" if hosts > 1 else "".join((group[0], text, group[1])))
            group = None

        for run in self._runs:
            if run.width == 0:
                close()
                out.append(run.prefix)
                continue
            done = 0
            while done < run.size:
                first = run.first + done
                # The first number in the brackets tells how all of them are written.
                if (
                    group != (run.prefix, run.suffix)
                    or hosts == MAX_EXPANSION
                    or least_width(first, width) != least_width(first, run.width)
                ):
                    close()
                    group, hosts, width = (run.prefix, run.suffix), 0, least_width(first, run.width)
                    numbers.clear()
                count = min(run.size - done, MAX_EXPANSION - hosts)
                numbers.append(f"{first:0{width}}" + (f"-{first + count - 1:0{width}}" if count > 1 else ""))
                done += count
                hosts += count
        close()
        return ",".join(out)

    def __str__(self) -> str:
        return self.encode()

    def __repr__(self) -> str:
        return f"Hostlist('{self}')"

    # Members

    def count(self) -> int:
        return self._size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        for run in self._runs:
            for offset in range(run.size):
                yield run.name(offset)

    def expand(self) -> list[str]:
        return list(self)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice | Iterable[int]) -> Hostlist: ...
    def __getitem__(self, index: int | slice | Iterable[int]) -> str | Hostlist:
        """Returns a host by its position, or a new list with those of a slice or of several positions."""
        if isinstance(index, int):
            position = index + self._size if index < 0 else index
            if not 0 <= position < self._size:
                raise IndexError(f"position {index} in a Hostlist of {self._size}")
            at = bisect_right(self._starts, position) - 1
            return self._runs[at].name(position - self._starts[at])
        result = Hostlist()
        if isinstance(index, slice):
            start, stop, step = index.indices(self._size)
            if step == 1:
                result._append_part(self, start, max(0, stop - start))
                return result
            index = range(start, stop, step)
        for one in index:
            if not isinstance(one, int):
                raise TypeError(f"a position in a Hostlist is an integer, not {type(one).__name__}")
            result._append_name(self[one])
        return result

    def find(self, host: str) -> int:
        """Returns the first position of a host. Raises FileNotFoundError if the list lacks it."""
        position = self._find(host)
        if position is None:
            raise FileNotFoundError(f"host {quoted(host)} not found")
        return position

    def _find(self, host: str) -> int | None:
        for run, start in zip(self._runs, self._starts):
            if run.width == 0:
                if run.prefix == host:
                    return start
                continue
            number = number_between(host, run.prefix, run.suffix)
            if number and 0 <= number[0] - run.first < run.size and least_width(number[0], run.width) == number[1]:
                return start + number[0] - run.first
        return None

    def first_positions(self, hosts: Collection[str]) -> dict[str, int]:
        """Returns the first positions of those of these hosts that are in the list. Raises ValueError if that takes too
        long."""
        found: dict[str, int] = {}
        if len(hosts) * len(self._runs) > min(self._size, MAX_EXPANSION):
            every: dict[str, int] = {}
            for position, host in enumerate(self._expanded()):
                every.setdefault(host, position)
            return {host: every[host] for host in hosts if host in every}
        for host in hosts:
            if (first := self._find(host)) is not None:
                found[host] = first
        return found

    def __contains__(self, host: str) -> bool:
        return self._find(host) is not None

    def index(self, hosts: HostsLike, ignore_nomatch: bool = False) -> list[int]:
        """Returns the first positions of several hosts. Raises FileNotFoundError with those that the list lacks."""
        positions: list[int] = []
        missing = Hostlist()
        wanted = _hosts(hosts)._expanded()
        found = self.first_positions(wanted)
        for host in wanted:
            position = found.get(host)
            if position is not None:
                positions.append(position)
            else:
                missing._append_name(host)
        if missing and not ignore_nomatch:
            raise FileNotFoundError(f"host{'s' if len(missing) > 1 else ''} {quoted(str(missing))} not found")
        return positions

    def __eq__(self, other: object) -> bool:
        """Whether both lists have the same hosts in the same order."""
        if not isinstance(other, Hostlist):
            return NotImplemented
        if self._size != other._size:
            return False
        rest = self._runs[::-1], other._runs[::-1]
        while rest[0]:
            a, b = (runs.pop() for runs in rest)
            # Numbers at the same place in the names are compared as ranges, others name by name.
            same_place = (a.prefix, a.suffix) == (b.prefix, b.suffix)
            count = min(a.size, b.size) if same_place else 1
            if (a.part(0, count) != b.part(0, count)) if same_place else (a.name(0) != b.name(0)):
                return False
            for run, runs in zip((a, b), rest):
                if count < run.size:
                    runs.append(run.part(count, run.size - count))
        return True

    # Changes

    def append(self, *args: HostsLike) -> int:
        """Adds hosts at the end, and returns their number."""
        before = self._size
        for arg in args:
            other = _hosts(arg)
            self._append_part(other, 0, other._size)
        return self._size - before

    def delete(self, hosts: HostsLike) -> int:
        """Removes the first occurrence of each of these hosts, and returns how many were removed."""
        counts = Counter(_hosts(hosts)._expanded())
        gone = sorted(self.first_positions(counts).values())
        if any(count > 1 for count in counts.values()):
            gone = []
            for position, host in enumerate(self._expanded()):
                if counts[host] > 0:
                    counts[host] -= 1
                    gone.append(position)
        rest, start = Hostlist(), 0
        for position in [*gone, self._size]:
            if position > start:
                rest._append_part(self, start, position - start)
            start = position + 1
        self._take(rest)
        return len(gone)

    def sort(self) -> Hostlist:
        """Orders by the text before a number, then by the number: foo2 before foo10. Raises ValueError for more than
        MAX_EXPANSION hosts, as uniq() does."""
        return self._reorder(self._expanded())

    def uniq(self) -> Hostlist:
        """Orders the hosts, and removes repeats."""
        return self._reorder(set(self._expanded()))

    def copy(self) -> Hostlist:
        result = Hostlist()
        result._append_part(self, 0, self._size)
        return result

    def _expanded(self) -> list[str]:
        if self._size > MAX_EXPANSION:
            raise ValueError(f"{self._size} hosts are too many for this, more than {MAX_EXPANSION}")
        return list(self)

    def _reorder(self, names: Iterable[str]) -> Hostlist:
        result = Hostlist()
        for name in sorted(names, key=order):
            result._append_name(name)
        self._take(result)
        return self

    def _take(self, other: Hostlist) -> None:
        self._runs, self._starts, self._size = other._runs, other._starts, other._size

    # Runs

    def _append_part(self, other: Hostlist, start: int, count: int) -> None:
        """Adds the hosts at `count` positions of another list, from `start` on."""
        at = bisect_right(other._starts, start) - 1
        runs, starts = (other._runs.copy(), other._starts.copy()) if other is self else (other._runs, other._starts)
        while count > 0:
            skip = start - starts[at]
            taken = min(count, runs[at].size - skip)
            run = runs[at].part(skip, taken)
            if run.width == 0 or taken == 1:
                self._append_name(run.name(0))
            else:
                self._append_range(run)
            start, count, at = start + taken, count - taken, at + 1

    def _append_name(self, host: str) -> None:
        """Adds one host. If its name has several numbers, the one counts by which it continues the host before it."""
        last = self._runs[-1] if self._runs else None
        if last and last.width:
            number = number_between(host, last.prefix, last.suffix)
            if number:
                self._append_run(_Run(last.prefix, last.suffix, number[0], 1, number[1]))
                return
            around = single_difference(last.name(0), host) if last.size == 1 else None
            if around and self._split_last_at(*around):
                number = number_between(host, *around)
                assert number
                self._append_run(_Run(*around, number[0], 1, number[1]))
                return
        parts = LAST_NUMBER.fullmatch(host)
        if not parts:
            self._append_run(_Run(host, "", 0, 1, 0))
        else:
            self._append_run(_Run(parts[1], parts[3], int(parts[2]), 1, written_width(parts[2])))

    def _append_range(self, run: _Run) -> None:
        if run.size > 1:
            self._split_last_at(run.prefix, run.suffix)
        self._append_run(run)

    def _split_last_at(self, prefix: str, suffix: str) -> bool:
        """Takes another number in the name of the last host as its number, so that the next host can continue it."""
        if not self._runs or self._runs[-1].size != 1:
            return False
        number = number_between(self._runs[-1].name(0), prefix, suffix)
        if number:
            self._runs[-1] = _Run(prefix, suffix, number[0], 1, number[1])
        return bool(number)

    def _append_run(self, run: _Run) -> None:
        if run.size > MAX_SIZE - self._size:
            raise ValueError(f"a Hostlist has at most {MAX_SIZE} hosts")
        last = self._runs[-1] if self._runs else None
        if (
            last
            and run.width
            and last.width
            and (last.prefix, last.suffix, last.first + last.size) == (run.prefix, run.suffix, run.first)
            and least_width(run.first, last.width) == run.width
        ):
            self._runs[-1] = last._replace(size=last.size + run.size)
        else:
            self._runs.append(run)
            self._starts.append(self._size)
        self._size += run.size

    def _read(self, text: str) -> None:
        for prefix, ranges, width, suffix in expressions(text):
            if ranges is None:
                self._append_name(prefix)
                continue
            # Leading zeros beyond MAX_DIGITS belong to the prefix.
            prefix += "0" * (width - MAX_DIGITS)
            width = min(width, MAX_DIGITS)
            for first, count in ranges:
                self._append_numbers(prefix, suffix, first, count, width)

    def _append_numbers(self, prefix: str, suffix: str, first: int, count: int, width: int) -> None:
        """Adds numbered hosts. Digits at the end of the prefix become part of the numbers, as they would for single
        hosts."""
        parts = LAST_NUMBER.fullmatch(prefix)
        digits = parts[2] if parts and not parts[3] else ""
        if count == 1 and (digits or any("0" <= c <= "9" for c in suffix)):
            self._append_name(f"{prefix}{first:0{width}}{suffix}")
            return
        while count > 0:
            # Add together the numbers that are written with as many digits as the first.
            length = max(len(str(first)), width)
            same = min(count, 10**length - first) if digits else count
            joined = min(len(digits), MAX_DIGITS - length)
            word = f"{digits[len(digits) - joined:]}{first:0{width}}"
            self._append_range(_Run(prefix[: len(prefix) - joined], suffix, int(word), same, written_width(word)))
            first, count = first + same, count - same


def decode(arg: HostsLike) -> Hostlist:
    """Reads RFC 29 text, or several of them."""
    return Hostlist(arg)


def _hosts(arg: HostsLike) -> Hostlist:
    return arg if isinstance(arg, Hostlist) else Hostlist(arg)


def _each(texts: Iterable[str]) -> Iterator[HostsLike]:
    if isinstance(texts, Hostlist):
        yield texts
        return
    if not isinstance(texts, Iterable):
        raise TypeError(f"a Hostlist is made of text or of several texts, not of {type(texts).__name__}")
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"a Hostlist is made of text or of several texts, not of {type(text).__name__}")
        yield text
