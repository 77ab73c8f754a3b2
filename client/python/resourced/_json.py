"""Reads JSON text from outside: bounded, and strict where Python's reader is not."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from resourced._quote import printable_line

#: Maximum number of characters of a text.
JSON_TEXT_MAX = 1 << 28
#: Maximum nesting of objects and arrays: of a message, and of the keys of an R in it, such as `scheduling`.
JSON_DEPTH_MAX, KEY_DEPTH_MAX = 80, 64

_BRACKETS_AND_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(text: str) -> Any:
    """Returns the value of a JSON text. Raises ValueError with one line."""
    if len(text) > JSON_TEXT_MAX:
        raise ValueError(f"JSON text of {len(text)} characters, more than {JSON_TEXT_MAX}")
    depth = 0
    for token in _BRACKETS_AND_STRINGS.finditer(text) if text.count("{") + text.count("[") > JSON_DEPTH_MAX else ():
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth > JSON_DEPTH_MAX:
            raise ValueError("JSON text nests too deeply")
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        if _HALF.search(text) or (_ESCAPED_HALF.search(text) and _HALF.search(json.dumps(value, ensure_ascii=False))):
            raise ValueError("a string has half of a surrogate pair")
    except ValueError as error:
        raise ValueError(f"not JSON: {printable_line(str(error))}") from None
    return value


def is_nested_at_most(value: Any, levels: int) -> bool:
    if not isinstance(value, (Mapping, list, tuple)):
        return True
    parts = value.values() if isinstance(value, Mapping) else value
    return levels > 0 and all(is_nested_at_most(part, levels - 1) for part in parts)


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number of JSON")


def member(payload: Any, key: str, kind: type[Any]) -> Any:
    """Returns a member of an object. Raises ValueError if it is missing or has another type."""
    value = payload.get(key) if isinstance(payload, dict) else None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{key}: is too large a number") from None
    if not isinstance(value, kind):
        raise ValueError(f"{key}: is missing or has the wrong type")
    return value


def entries(payload: Mapping[str, Any], key: str) -> list[Any]:
    """Returns an array that is left out where it is empty. Raises ValueError if it has another type."""
    found: list[Any] = member(payload, key, list) if key in payload else []
    return found
