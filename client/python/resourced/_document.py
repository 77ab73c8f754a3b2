"""Reads the document R (RFC 20), and checks it."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from resourced._groups import Group, disjoint, ranks_of, read_entry, read_ids, required, under
from resourced._json import KEY_DEPTH_MAX, is_nested_at_most, read_json
from resourced._quote import printable_line, quoted
from resourced.hostlist import Hostlist
from resourced.idset import IDset

_FORBIDDEN = frozenset("!&'\"^`|()")
_MAX_PROPERTY_NAME = 255
_OWN_KEYS = ("R_lite", "nodelist", "nslots", "properties", "starttime", "expiration")


@dataclass
class Document:
    """The parts of an R. No rank is in two groups."""

    groups: list[Group] = field(default_factory=list)
    #: The hosts in the order of their ranks.
    hosts: Hostlist = field(default_factory=Hostlist)
    properties: dict[str, IDset] = field(default_factory=dict)
    #: Times are in seconds since 1970, 0 for none.
    starttime: float = 0.0
    expiration: float = 0.0
    nslots: int | None = None
    #: Keys that RFC 20 does not define, and `scheduling` and `attributes`.
    more: dict[str, Any] = field(default_factory=dict)
    more_execution: dict[str, Any] = field(default_factory=dict)


def parse_document(text: str) -> Document:
    """Reads JSON text. Raises ValueError, which names the JSON path."""
    try:
        value = read_json(text)
    except ValueError as error:
        raise ValueError(f"R is {error}") from None
    return read_document(value)


def read_document(value: Any) -> Document:
    """Reads a JSON value. Raises ValueError, which names the JSON path."""
    if not isinstance(value, Mapping):
        raise ValueError("R is not an object")
    if required(value, "version", int, "the integer 1") != 1:
        raise ValueError("version: is not the integer 1")
    execution = required(value, "execution", Mapping, "an object")
    entries = required(execution, "R_lite", list, "an array", "execution.")
    result = Document(disjoint([read_entry(entry, i) for i, entry in enumerate(entries)]))
    ranks = ranks_of(result.groups)
    result.hosts = _read_hosts(required(execution, "nodelist", list, "an array", "execution."), ranks.count())
    if "nslots" in execution:
        result.nslots = under("execution", lambda: checked_slots(execution["nslots"]))
    for name, text in required(execution, "properties", Mapping, "an object", "execution.", {}).items():
        path = f"execution.properties.{name if name and all(c.isalnum() or c in '_-' for c in name) else quoted(name)}"
        ids = read_ids(text, path)
        under(path, lambda: check_property(name), ": ")
        if not ranks.includes(ids):
            raise ValueError(f"{path}: rank {(ids - ranks).first()} is not in R_lite")
        if ids:
            result.properties[name] = ids
    start, expiration = execution.get("starttime", 0.0), execution.get("expiration", 0.0)
    result.starttime, result.expiration = under("execution", lambda: checked_times(start, expiration))
    scheduling = required(value, "scheduling", Mapping, "an object", "", {})
    required(scheduling, "writer", str, "a string", "scheduling.", "")
    attributes = required(value, "attributes", Mapping, "an object", "", {})
    system = required(attributes, "system", Mapping, "an object", "attributes.", {})
    required(system, "scheduler", Mapping, "an object", "attributes.system.", {})
    result.more = _carried({key: member for key, member in value.items() if key not in ("version", "execution")}, "")
    result.more_execution = _carried({key: one for key, one in execution.items() if key not in _OWN_KEYS}, "execution.")
    return result


def _carried(members: dict[str, Any], path: str) -> dict[str, Any]:
    for key, member in members.items():
        if not is_nested_at_most(member, KEY_DEPTH_MAX):
            raise ValueError(f"{path}{printable_line(key)}: is nested deeper than {KEY_DEPTH_MAX} levels")
    return copied(members)


def _read_hosts(texts: list[Any], count: int) -> Hostlist:
    hosts = Hostlist()
    for i, text in enumerate(texts):
        path = f"execution.nodelist[{i}]"
        if not isinstance(text, str):
            raise ValueError(f"{path}: is not a string")
        under(path, lambda: hosts.append(text), ": ")
    if hosts.count() != count:
        raise ValueError(f"execution.nodelist: has {hosts.count()} hosts for {count} ranks")
    return hosts


def check_property(name: str) -> None:
    if not name:
        raise ValueError("a property name is empty")
    for character in name:
        if character in _FORBIDDEN:
            raise ValueError(f"a property name cannot have {character}")
    if any(unicodedata.category(character) == "Cc" for character in name):
        raise ValueError("a property name cannot have control characters")
    if len(name.encode(errors="surrogatepass")) > _MAX_PROPERTY_NAME:
        raise ValueError(f"a property name has at most {_MAX_PROPERTY_NAME} bytes")


def checked_slots(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("nslots: is not an integer")
    if value < 1:
        raise ValueError("nslots: is less than 1")
    return value


def checked_times(starttime: Any, expiration: Any) -> tuple[float, float]:
    start, end = _checked_time(starttime, "starttime"), _checked_time(expiration, "expiration")
    if start and end and end <= start:
        raise ValueError("expiration: is not after starttime")
    return start, end


def _checked_time(value: Any, name: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{name}: is not a number")
    try:
        time = float(value)
    except OverflowError:
        time = math.inf
    if not math.isfinite(time) or time < 0:
        raise ValueError(f"{name}: is not a time")
    return time


def copied(value: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(value))
    return result
