"""The names of hosts, and expressions for several of them (RFC 29)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resourced._quote import quoted

#: Maximum number of hosts of one expression in brackets, and of a list that sort() and uniq() accept.
MAX_EXPANSION = 1 << 20
#: Maximum number of characters of a host name.
MAX_HOST_NAME = 1024
#: Maximum number of digits of a number in a name; more digits before them count as text.
MAX_DIGITS = 18

_WORD = re.compile(r"[!-+\--Z\\^-~]*", re.ASCII)
_DIGITS = re.compile(r"[0-9]*", re.ASCII)
LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)", re.ASCII)
_PARTS = re.compile(r"[0-9]+|[^0-9]", re.ASCII)


def written_width(digits: str) -> int:
    return len(digits) if len(digits) > 1 and digits[0] == "0" else 1


def least_width(number: int, width: int) -> int:
    """Returns the least width that writes a number as this width does."""
    return width if width > 1 and number < 10 ** (width - 1) else min(width, 1)


def number_between(name: str, prefix: str, suffix: str) -> tuple[int, int] | None:
    """Returns the number, and the width with which it is written, if the name is the prefix, a number and the
    suffix."""
    digits = name[len(prefix) : len(name) - len(suffix)]
    if not 0 < len(digits) <= MAX_DIGITS or not name.startswith(prefix) or not name.endswith(suffix):
        return None
    return (int(digits), written_width(digits)) if _DIGITS.fullmatch(digits) else None


def single_difference(a: str, b: str) -> tuple[str, str] | None:
    """Returns the text before and after the only number in which two names differ, if that is the only difference."""
    begin = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    while begin > 0 and "0" <= a[begin - 1] <= "9":
        begin -= 1
    digits_a, digits_b = _DIGITS.match(a, begin), _DIGITS.match(b, begin)
    assert digits_a and digits_b  # it matches no digits, too
    suffix = a[digits_a.end() :]
    longest = max(len(digits_a[0]), len(digits_b[0]))
    if not digits_a[0] or not digits_b[0] or longest > MAX_DIGITS or suffix != b[digits_b.end() :]:
        return None
    return a[:begin], suffix


def order(name: str) -> list[tuple[int, str | int, int]]:
    """Returns a sort key: texts before numbers, numbers by value and then by their leading zeros; a number comes before
    more text."""
    return [
        (0, int(part), len(part)) if "0" <= part[0] <= "9" else (1, part, 0) for part in _PARTS.findall(name)
    ]


def expressions(text: str) -> Iterator[tuple[str, list[tuple[int, int]] | None, int, str]]:
    """Yields prefix, ranges as (first, count) or None without brackets, width and suffix of each expression."""
    at = 0

    def fail(reason: str, place: int | None = None) -> ValueError:
        place = at if place is None else place
        return ValueError(f"{quoted(text)} is not a hostlist: {reason} at character {place + 1}")

    def unexpected() -> ValueError:
        return fail(f"{quoted(text[at])} is not expected")

    def match(pattern: re.Pattern[str]) -> str:
        nonlocal at
        found = pattern.match(text, at)
        assert found  # the patterns match nothing, too
        at = found.end()
        return found[0]

    def take(character: str) -> bool:
        nonlocal at
        found = text.startswith(character, at)
        at += found
        return found

    def digits() -> str:
        found = match(_DIGITS)
        if not found:
            raise fail(f"{quoted(text[at])} is not a number" if at < len(text) else "a number is missing")
        return found

    def value(word: str) -> int:
        if len(word.lstrip("0")) > MAX_DIGITS:
            raise fail("the number is too large", at - len(word))
        return int(word.lstrip("0") or "0")

    def numbers() -> tuple[list[tuple[int, int]], int]:
        ranges: list[tuple[int, int]] = []
        room, width = MAX_EXPANSION, 1
        while True:
            place = at
            word = digits()
            first = value(word)
            last = value(digits()) if take("-") else first
            if not ranges and word[0] == "0":
                width = len(word)
            if last < first:
                raise fail("the range runs backwards", place)
            if last - first >= room:
                raise fail(f"there are more than {MAX_EXPANSION} hosts in one expression", place)
            room -= last - first + 1
            ranges.append((first, last - first + 1))
            if not take(","):
                return ranges, width

    more = False
    while at < len(text) or more:
        begin = at
        prefix, suffix, width, ranges = match(_WORD), "", 1, None
        if take("["):
            ranges, width = numbers()
            if not take("]"):
                raise unexpected() if at < len(text) else fail("the bracket is not closed")
            begin = at
            suffix = match(_WORD)
        elif not prefix:
            raise unexpected() if at < len(text) and text[at] != "," else fail("a host is missing")
        numbers_length = max(width, MAX_DIGITS) if ranges else 0
        if len(prefix) + numbers_length + len(suffix) > MAX_HOST_NAME:
            raise fail("the name is too long", begin)
        more = take(",")
        if not more and at < len(text):
            raise unexpected()
        yield prefix, ranges, width, suffix
