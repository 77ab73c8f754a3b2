"""The resource set R (RFC 20), with the names of flux.resource.ResourceSet: which cores and gpus each rank has, the host
of each rank, properties and times."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from resourced._document import (
    Document,
    check_property,
    checked_slots,
    checked_times,
    copied,
    parse_document,
    read_document,
)
from resourced._groups import Group, entry_of, pairs, ranks_of, split
from resourced._json import read_json
from resourced._quote import quoted
from resourced.hostlist import Hostlist, HostsLike
from resourced.idset import IDset, IdsLike

#: Types that functions accept as a resource set: also an R as JSON text or as a mapping.
ResourcesLike: TypeAlias = "ResourceSet | str | Mapping[str, Any]"


#: Combines the groups that ranks have in two sets; None for none.
Combine: TypeAlias = Callable[[Group | None, Group | None], Group | None]


class ResourceSet:
    """A resource set; empty without `arg`.

    `arg` is an R as JSON text or as a mapping. Raises ValueError, which names the JSON path, for one that is invalid.
    Methods that take a set take any of these, and those that take ranks all that IDset takes. Keys that RFC 20 does not
    define, and `scheduling`, are kept.
    """

    __hash__ = None  # type: ignore[assignment]  # instances are mutable

    def __init__(self, arg: ResourcesLike | None = None, version: int = 1) -> None:
        if version != 1:
            raise ValueError(f"version: is not the integer 1: {version}")
        #: A state for display, such as "up". No other method uses it.
        self.state: str | None = None
        self._groups: list[Group] = []
        self._hosts = Hostlist()
        self._properties: dict[str, IDset] = {}
        self._starttime = self._expiration = 0.0
        self._nslots: int | None = None
        #: Keys that RFC 20 does not define, of the document and of its execution section.
        self._document: dict[str, Any] = {}
        self._execution: dict[str, Any] = {}
        self._ranks = IDset()
        if isinstance(arg, ResourceSet):
            self._take(arg)
        elif isinstance(arg, str):
            self._hold(parse_document(arg))
        elif arg is not None:
            self._hold(read_document(arg))

    @classmethod
    def of(cls, ranks: IdsLike, cores: IdsLike, nodelist: HostsLike, gpus: IdsLike = "") -> ResourceSet:
        """Makes a set with the same cores and gpus on each of these ranks, whose hosts are `nodelist`, in the order of
        the ranks."""
        result = cls()
        hosts = Hostlist(nodelist)
        group = Group(IDset(ranks), IDset(cores), IDset(gpus))
        if group.ranks.count() != len(hosts):
            raise ValueError(f"{len(hosts)} hosts for {group.ranks.count()} ranks")
        if group.ranks:
            if not group.cores and not group.gpus:
                raise ValueError("a resource set has cores or gpus of each rank")
            result._set_groups([group])
        result._hosts = hosts
        return result

    # Text

    def encode(self) -> str:
        """Returns R as JSON text."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    def to_dict(self) -> dict[str, Any]:
        """Returns R as a JSON value that shares nothing with this set."""
        execution: dict[str, Any] = {"R_lite": [entry_of(group) for group in self._groups]}
        execution["nodelist"] = [str(self._hosts)] if self._hosts else []
        if self._nslots is not None:
            execution["nslots"] = self._nslots
        if any(self._properties.values()):
            execution["properties"] = self._property_texts()
        execution["starttime"] = self._starttime
        execution["expiration"] = self._expiration
        return {"version": 1, "execution": execution | copied(self._execution)} | copied(self._document)

    def dumps(self) -> str:
        """Returns a short text: `rank[0-1]/core[0-3],gpu0`."""
        brackets = 6  # the flags of brackets and ranges
        return " ".join(
            f"rank{group.ranks.encode(brackets)}/core{group.cores.encode(brackets)}"
            + (f",gpu{group.gpus.encode(brackets)}" if group.gpus else "")
            for group in self._groups
        )

    @property
    def rlist(self) -> str:
        return self.dumps()

    def __str__(self) -> str:
        return self.dumps()

    def __repr__(self) -> str:
        return f"<ResourceSet {self.dumps()}>"

    # Contents

    @property
    def version(self) -> int:
        return 1

    @property
    def ranks(self) -> IDset:
        return self._ranks.copy()

    @property
    def nodelist(self) -> Hostlist:
        """The hosts in the order of their ranks."""
        return self._hosts.copy()

    @property
    def groups(self) -> list[Group]:
        """The ranks by their cores and gpus, ordered by the first rank."""
        return [Group(g.ranks.copy(), g.cores.copy(), g.gpus.copy(), g.extra) for g in self._groups]

    @property
    def nnodes(self) -> int:
        return self._ranks.count()

    @property
    def ncores(self) -> int:
        return self.count("core")

    @property
    def ngpus(self) -> int:
        return self.count("gpu")

    def count(self, name: str) -> int:
        """Returns the number of all `core` or `gpu`; 0 for other names."""
        if name == "core":
            return sum(group.ranks.count() * group.cores.count() for group in self._groups)
        if name == "gpu":
            return sum(group.ranks.count() * group.gpus.count() for group in self._groups)
        return 0

    def cores(self, rank: int) -> IDset:
        """Returns the cores of a rank; none if the set lacks the rank."""
        return next((group.cores.copy() for group in self._groups if rank in group.ranks), IDset())

    def gpus(self, rank: int) -> IDset:
        return next((group.gpus.copy() for group in self._groups if rank in group.ranks), IDset())

    def host(self, rank: int) -> str:
        if rank not in self._ranks:
            raise ValueError(f"rank {rank} is not in the resource set")
        return _HostsOf(self).of(IDset(rank))[0]

    def host_ranks(self, hosts: HostsLike, ignore_nomatch: bool = False) -> list[int]:
        """Returns the ranks of these hosts, in their order. Raises FileNotFoundError for hosts that the set lacks."""
        ranks = list(self._ranks)
        return [ranks[position] for position in self._hosts.index(hosts, ignore_nomatch=ignore_nomatch)]

    def __bool__(self) -> bool:
        return bool(self._ranks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResourceSet):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    # Properties

    @property
    def properties(self) -> str:
        """The names of the properties, separated by commas."""
        return ",".join(self._property_texts())

    def get_properties(self) -> str:
        """Returns the properties as JSON text `{NAME: IDSET}`."""
        return json.dumps(self._property_texts())

    def property_ranks(self, name: str) -> IDset:
        """Returns the ranks with a property; none if the set lacks it."""
        return self._properties.get(name, IDset()).copy()

    def set_property(self, name: str, ranks: IdsLike | None = None) -> ResourceSet:
        """Gives the ranks, or all, a property. Raises ValueError for an invalid name, and for ranks that the set
        lacks."""
        check_property(name)
        chosen = self._ranks if ranks is None else self._own(ranks)
        if chosen:
            self._properties[name] = self._properties.get(name, IDset()).union(chosen)
        return self

    def remove_property(self, name: str, ranks: IdsLike | None = None) -> ResourceSet:
        """Removes a property from the ranks, or from all. Raises ValueError for ranks that the set lacks."""
        left = self._properties.pop(name, IDset()).difference(self._ranks if ranks is None else self._own(ranks))
        if left:
            self._properties[name] = left
        return self

    def _own(self, ranks: IdsLike) -> IDset:
        chosen = IDset(ranks)
        if not self._ranks.includes(chosen):
            raise ValueError(f"ranks {chosen - self._ranks} are not in the resource set")
        return chosen

    def _property_texts(self) -> dict[str, str]:
        return {name: str(ranks) for name, ranks in sorted(self._properties.items()) if ranks}

    # Times and slots. A time is in seconds since 1970, 0 for none.

    @property
    def starttime(self) -> float:
        return self._starttime

    @starttime.setter
    def starttime(self, time: float) -> None:
        self._starttime, self._expiration = checked_times(time, self._expiration)

    @property
    def expiration(self) -> float:
        return self._expiration

    @expiration.setter
    def expiration(self, time: float) -> None:
        self._starttime, self._expiration = checked_times(self._starttime, time)

    @property
    def nslots(self) -> int | None:
        """The number of slots of an allocation."""
        return self._nslots

    @nslots.setter
    def nslots(self, slots: int | None) -> None:
        self._nslots = None if slots is None else checked_slots(slots)

    @property
    def scheduling(self) -> Any:
        """The value of the key `scheduling`, or None."""
        return self._document.get("scheduling")

    # Ranks

    def copy(self) -> ResourceSet:
        result = ResourceSet(self)
        result.state = self.state
        return result

    def copy_ranks(self, ranks: IdsLike) -> ResourceSet:
        """Returns a copy with only these ranks. Ranks that the set lacks are ignored."""
        chosen = self._ranks & ranks
        result = self.copy()
        if chosen != self._ranks:
            result._hosts = _HostsOf(self).of(chosen)
            result._set_groups([group.same_as(group.ranks & chosen) for group in self._groups])
            result._properties = {name: left for name, own in self._properties.items() if (left := own & chosen)}
            result._nslots = None
        return result

    def remove_ranks(self, ranks: IdsLike) -> ResourceSet:
        """Removes ranks, with their hosts and properties."""
        self._take(self.copy_ranks(self._ranks - ranks))
        return self

    def copy_constraint(self, constraint: str | Mapping[str, Any]) -> ResourceSet:
        """Returns a copy with only the ranks that match an RFC 31 constraint. Raises ValueError for an invalid one."""
        value = read_json(constraint) if isinstance(constraint, str) else constraint
        try:
            return self.copy_ranks(self._matching(value))
        except RecursionError:
            raise ValueError("the constraint nests too deeply") from None

    def _matching(self, constraint: Any) -> IDset:
        if not isinstance(constraint, Mapping) or len(constraint) > 1:
            raise ValueError("a constraint is not an object with one operator")
        if not constraint:
            return self.ranks
        [(operation, values)] = constraint.items()
        if not isinstance(values, list | tuple):
            raise ValueError(f"the values of the operator {quoted(str(operation))} are not an array")
        if operation in ("and", "or", "not"):
            every, some = self.ranks, IDset()
            for value in values:
                match = self._matching(value)
                every, some = every & match, some | match
            return some if operation == "or" else every if operation == "and" else self._ranks - every
        if not all(isinstance(value, str) for value in values):
            raise ValueError(f"the values of the operator {quoted(str(operation))} are not strings")
        if operation == "properties":
            found = self.ranks
            for name in values:
                own = self.property_ranks(name.removeprefix("^"))
                found = found - own if name.startswith("^") else found & own
            return found
        if operation == "hostlist":
            names = list(self._hosts)
            hosts = Hostlist(values).first_positions(names)
            return IDset(rank for rank, host in zip(self._ranks, names) if host in hosts)
        if operation == "ranks":
            return self._ranks & IDset().union(*values)
        raise ValueError(f"unknown operator {quoted(str(operation))} in a constraint")

    # Set operations work on single cores and gpus. They raise ValueError if a rank has different hosts in the sets.

    def union(self, *args: ResourcesLike) -> ResourceSet:
        """Returns the resources that are in this set or in one of the others."""
        return self.copy().append(*args)

    def append(self, *args: ResourcesLike) -> ResourceSet:
        """Adds the resources of others, with their properties."""
        for arg in args:
            other = _resources(arg)
            self._join(other, other._ranks)
        return self

    def add(self, *args: ResourcesLike) -> ResourceSet:
        """Adds the resources of others, with their properties for ranks that this set lacked."""
        for arg in args:
            other = _resources(arg)
            self._join(other, other._ranks - self._ranks)
        return self

    def _join(self, other: ResourceSet, with_properties: IDset) -> None:
        def joined(a: Group | None, b: Group | None) -> Group | None:
            if not a or not b:
                return a or b
            return Group(a.ranks, a.cores | b.cores, a.gpus | b.gpus, a.extra or b.extra)

        groups = self._combined(other, joined)
        hosts, mine, others = Hostlist(), _HostsOf(self), _HostsOf(other)
        for first, last in split(self._ranks, other._ranks):
            hosts.append((mine if first in self._ranks else others).of(IDset().set(first, last)))
        for name, ranks in other._properties.items():
            own = self._properties.get(name, IDset()) | (ranks & with_properties)
            if own:
                self._properties[name] = own
        self._hosts = hosts
        self._nslots = None
        self._set_groups(groups)

    def diff(self, *args: ResourcesLike) -> ResourceSet:
        """Returns the resources that are in this set and in none of the others, without ranks that have none left."""
        return self._reduced(
            args,
            lambda a, b: a._replace(cores=a.cores - b.cores, gpus=a.gpus - b.gpus) if a and b else a,
        )

    def intersect(self, *args: ResourcesLike) -> ResourceSet:
        """Returns the resources that are in this set and in all others, with the properties of this one."""
        return self._reduced(
            args,
            lambda a, b: a._replace(cores=a.cores & b.cores, gpus=a.gpus & b.gpus) if a and b else None,
        )

    def _reduced(self, args: tuple[ResourcesLike, ...], combine: Combine) -> ResourceSet:
        result = self.copy()
        for arg in args:
            groups = [g for g in result._combined(_resources(arg), combine) if g.cores or g.gpus]
            result = result.copy_ranks(ranks_of(groups))
            result._set_groups(groups)
            result._nslots = None
        return result

    def _combined(self, other: ResourceSet, combine: Combine) -> list[Group]:
        """Returns the results of combine() for the groups of each rank in this set and in the other one."""
        shared = self._ranks & other._ranks
        for rank, host, other_host in zip(shared, _HostsOf(self).of(shared), _HostsOf(other).of(shared)):
            if host != other_host:
                raise ValueError(f"rank {rank} is {host} in one resource set and {other_host} in the other")
        groups = []
        for mine, theirs, ranks in pairs(self._groups, other._groups):
            a = None if mine is None else self._groups[mine].same_as(ranks)
            b = None if theirs is None else other._groups[theirs].same_as(ranks)
            if group := combine(a, b):
                groups.append(group)
        return groups

    def __or__(self, arg: ResourcesLike) -> ResourceSet:
        return self.union(arg)

    def __and__(self, arg: ResourcesLike) -> ResourceSet:
        return self.intersect(arg)

    def __sub__(self, arg: ResourcesLike) -> ResourceSet:
        return self.diff(arg)

    # Implementation

    def _take(self, other: ResourceSet) -> None:
        hosts = other._hosts.copy()
        properties = {name: ranks.copy() for name, ranks in other._properties.items()}
        times = other._starttime, other._expiration
        keys = copied(other._document), copied(other._execution)
        self._hold(Document(other._groups, hosts, properties, *times, other._nslots, *keys))

    def _hold(self, document: Document) -> None:
        self._hosts, self._properties, self._nslots = document.hosts, document.properties, document.nslots
        self._starttime, self._expiration = document.starttime, document.expiration
        self._document, self._execution = document.more, document.more_execution
        self._set_groups(document.groups)

    def _set_groups(self, groups: Iterable[Group]) -> None:
        """Merges groups with the same resources, and orders them. No rank is in two of them."""
        merged: dict[tuple[str, str, str], list[Group]] = {}
        for group in groups:
            if group.ranks:
                merged.setdefault((group.cores.encode(), group.gpus.encode(), group.extra), []).append(group)
        joined = (same[0].same_as(ranks_of(same)) for same in merged.values())
        self._groups = sorted(joined, key=lambda group: group.ranks.first())
        self._ranks = ranks_of(self._groups)


class _HostsOf:
    """The hosts of a set by rank."""

    def __init__(self, resources: ResourceSet) -> None:
        self._hosts = resources._hosts
        self._firsts: list[int] = []
        self._positions: list[int] = []
        position = 0
        for first, last in resources._ranks.ranges():
            self._firsts.append(first)
            self._positions.append(position)
            position += last - first + 1

    def of(self, ranks: IDset) -> Hostlist:
        """Returns the hosts of ranks, which must be in the set."""
        chosen = Hostlist()
        for first, last in ranks.ranges():
            at = bisect_right(self._firsts, first) - 1
            chosen._append_part(self._hosts, self._positions[at] + first - self._firsts[at], last - first + 1)
        return chosen


def _resources(arg: ResourcesLike) -> ResourceSet:
    return arg if isinstance(arg, ResourceSet) else ResourceSet(arg)
