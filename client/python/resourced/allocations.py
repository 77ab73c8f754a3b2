"""Allocations of the daemon's ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

from resourced._json import member
from resourced.idset import IDset
from resourced.resource_set import ResourceSet


@dataclass(frozen=True)
class Freed:
    """An allocation that is to be freed, or was freed by somebody else; with `ranks` only its part on these targets.
    `partition` is the one in which it was made; without it, a connection with one acquisition means its own partition,
    and one with several gets EINVAL."""

    id: str
    ranks: IDset | str | None = None
    partition: str | None = None

    def payload(self) -> dict[str, Any]:
        optional = {"ranks": None if self.ranks is None else str(IDset(self.ranks)), "partition": self.partition}
        return {"id": self.id} | {key: value for key, value in optional.items() if value is not None}

    @classmethod
    def read(cls, value: Any) -> Self:
        """Reads an entry of a response. Raises ValueError for an invalid one."""
        if not isinstance(value, Mapping):
            raise ValueError("freed: an entry is not an object")
        ranks = IDset(member(value, "ranks", str)) if "ranks" in value else None
        return cls(member(value, "id", str), ranks, member(value, "partition", str))


@dataclass(frozen=True)
class Allocation:
    """An allocation, whose id has 1 to 64 printable characters. Each partition has ids of its own."""

    id: str
    #: The targets by rank and host, with the cores and gpus that are allocated of each.
    resources: ResourceSet
    #: The time by which the allocation should be freed, in seconds since 1970.
    expiration: float | None = None
    #: A note for people, at most 1024 bytes.
    note: str | None = None

    # The following are set in an allocation that the daemon lists, and not sent.

    #: The partition in which the allocation was made; "" outside of all partitions.
    partition: str = ""
    #: Hosts of allocated targets that are not in the inventory now, and not in `resources`.
    absent: str = ""
    expired: bool = False

    def without(self, ranks: IDset) -> Self:
        """This allocation without these targets."""
        resources = self.resources.copy()
        resources.remove_ranks(ranks & resources.ranks)
        return replace(self, resources=resources)

    def payload(self) -> dict[str, Any]:
        optional = {"expiration": self.expiration, "note": self.note}
        given = {key: value for key, value in optional.items() if value is not None}
        return {"id": self.id, "R": self.resources.to_dict(), **given}

    @classmethod
    def read(cls, value: Any) -> Allocation:
        """Reads an allocation. Raises ValueError for an invalid one."""
        if not isinstance(value, Mapping) or not isinstance(value.get("id"), str):
            raise ValueError("an allocation has no id")
        expiration = value.get("expiration")
        texts = [value.get(key) for key in ("note", "partition", "absent")]
        if not isinstance(expiration, int | float | None) or not all(isinstance(text, str | None) for text in texts):
            raise ValueError(f"allocation {value['id']!r}: a key has the wrong type")
        note, partition, absent = texts
        expired = value.get("expired", False) is True
        return cls(value["id"], ResourceSet(value.get("R", {})), expiration, note, partition or "", absent or "", expired)


#: The allocations that others have freed, those that they have changed after that, and the partitions and ids of those
#: that have expired.
News: TypeAlias = tuple[list[Freed], list[Allocation], list[tuple[str, str]]]


def merged_news(first: News, later: News) -> News:
    """Returns the news with the effect of both, one after the other."""
    changed = {(one.partition, one.id): one for one in first[1]}
    expired = set(first[2])
    # At most two for each name: its end, and then a part of the next allocation with this name.
    freed: dict[tuple[str, str, bool], Freed] = {}
    for one in (*first[0], *later[0]):
        key = one.partition or "", one.id, one.ranks is not None
        before = freed.get(key)
        ranks = IDset(one.ranks or "") | IDset(before.ranks or "" if before else "") if key[2] else None
        freed[key] = Freed(one.id, ranks, one.partition)
    for one in later[0]:
        name = one.partition or "", one.id
        if one.ranks is None:
            expired.discard(name)
        if (allocation := changed.pop(name, None)) and one.ranks is not None:
            changed[name] = allocation.without(IDset(one.ranks))
    for allocation in later[1]:
        changed[allocation.partition, allocation.id] = allocation
        expired.discard((allocation.partition, allocation.id))
    in_order = sorted(freed.values(), key=lambda one: one.ranks is not None)
    return in_order, list(changed.values()), sorted(expired | set(later[2]))
