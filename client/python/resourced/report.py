"""A report of how long targets were in each state (`resource.report`, docs/history.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from resourced._json import entries, member

#: What a report has groups for.
ReportGroups: TypeAlias = Literal["host", "reason", "property", "month"]


@dataclass(frozen=True)
class Cause:
    """Why targets were unavailable."""

    #: "drain", "offline", "torpid", or "other" for drains with further reasons, where there are too many.
    cause: str
    #: The reason of a drain.
    reason: str | None
    seconds: float
    outages: int


@dataclass(frozen=True)
class Use:
    """Times in seconds, of all targets of the group together: eight targets that are up for an hour are up for eight
    hours."""

    #: Name of the host or property, the month in UTC ("2026-11"), the reason, or its cause if there is none. "" for the
    #: total.
    name: str
    #: The cause, see Cause; only in groups by reason.
    cause: str | None
    #: Time in which the targets were in the inventory. The states overlap.
    time: float
    up: float
    allocated: float
    drained: float
    offline: float
    excluded: float
    #: Time in which targets were drained, offline or torpid, and not excluded.
    unavailable: float
    #: How often an available target became unavailable.
    outages: int
    #: Time up, and time unavailable, for each outage; None without outages.
    mtbf: float | None
    mttr: float | None
    #: The five reasons with the longest time.
    reasons: list[Cause]


@dataclass(frozen=True)
class Report:
    #: The time that was counted, in seconds since 1970. It may be shorter or longer than the one that was asked for.
    since: float
    until: float
    total: Use
    #: The groups; empty without `by`.
    groups: list[Use]
    #: Number of groups beyond the limit.
    left_out: int
    #: Seconds of which nothing is known, because a part of the log is damaged.
    missing: float


def read_report(payload: Mapping[str, Any]) -> Report:
    """Reads a report. Raises ValueError for an invalid one."""
    return Report(
        member(payload, "since", float),
        member(payload, "until", float),
        _read_use(payload.get("total")),
        [_read_use(group) for group in entries(payload, "groups")],
        _count(payload, "left-out") if "left-out" in payload else 0,
        member(payload, "missing", float) if "missing" in payload else 0.0,
    )


def _read_use(group: Any) -> Use:
    if not isinstance(group, dict):
        raise ValueError("a group is not an object")
    time, up, allocated, drained, offline, excluded, unavailable = (
        member(group, key, float)
        for key in ("time", "up", "allocated", "drained", "offline", "excluded", "unavailable")
    )
    return Use(
        name=member(group, "name", str) if "name" in group else "",
        cause=member(group, "cause", str) if "cause" in group else None,
        time=time,
        up=up,
        allocated=allocated,
        drained=drained,
        offline=offline,
        excluded=excluded,
        unavailable=unavailable,
        outages=_count(group, "outages"),
        mtbf=_seconds_or_null(group, "mtbf"),
        mttr=_seconds_or_null(group, "mttr"),
        reasons=[_read_cause(one) for one in member(group, "reasons", list)],
    )


def _seconds_or_null(group: Mapping[str, Any], key: str) -> float | None:
    return None if key in group and group[key] is None else member(group, key, float)


def _read_cause(one: Any) -> Cause:
    cause, seconds, outages = member(one, "cause", str), member(one, "time", float), _count(one, "outages")
    return Cause(cause, member(one, "reason", str) if "reason" in one else None, seconds, outages)


def _count(payload: Any, key: str) -> int:
    value: int = member(payload, key, int)
    if isinstance(value, bool) or value < 0:
        raise ValueError(f"{key}: is not a count")
    return value
