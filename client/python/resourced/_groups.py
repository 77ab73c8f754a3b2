"""Ranks with the same resources: the entries of R_lite (RFC 20)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from resourced._quote import quoted
from resourced.idset import IDset

#: Maximum number of ranks of a set.
MAX_RANKS = 1 << 24
#: Maximum number of steps to read entries that share ranks.
MAX_OVERLAP = 1 << 20
#: Maximum number of ranges of cores and gpus that are added up for them, and of characters of their further keys.
MAX_ADDED, MAX_EXTRA = 1 << 18, 1 << 22


class Group(NamedTuple):
    """Ranks with the same cores and gpus."""

    ranks: IDset
    cores: IDset
    gpus: IDset
    #: Further keys of the entry and of its children, as canonical JSON; "" for none.
    extra: str = ""

    def same_as(self, ranks: IDset) -> Group:
        return self._replace(ranks=ranks)


def ranks_of(groups: list[Group]) -> IDset:
    """Returns all ranks of groups that have no common ranks."""
    return IDset.of_ranges(sorted(run for group in groups for run in group.ranks.ranges()))


def pairs(a: list[Group], b: list[Group]) -> Iterator[tuple[int | None, int | None, IDset]]:
    """Yields, for each pair of groups that ranks have in both lists, the positions of the two groups, and these ranks.
    No rank is in two groups of one list."""
    sides = [sorted((*run, i) for i, group in enumerate(groups) for run in group.ranks.ranges()) for groups in (a, b)]
    points = sorted({bound for side in sides for first, last, _ in side for bound in (first, last + 1)})
    found: dict[tuple[int | None, int | None], list[tuple[int, int]]] = {}
    at = [0, 0]
    for begin, end in pairwise(points):
        owners: list[int | None] = []
        for k, side in enumerate(sides):
            while at[k] < len(side) and side[at[k]][1] < begin:
                at[k] += 1
            owners.append(side[at[k]][2] if at[k] < len(side) and side[at[k]][0] <= begin else None)
        if owners != [None, None]:
            found.setdefault((owners[0], owners[1]), []).append((begin, end - 1))
    for (mine, theirs), runs in found.items():
        yield mine, theirs, IDset.of_ranges(runs)


def split(a: IDset, b: IDset) -> Iterator[tuple[int, int]]:
    """Yields the ids of both sets in ascending ranges, each of which is in a as a whole or not at all."""
    points = sorted({bound for first, last in a.ranges() + b.ranges() for bound in (first, last + 1)})
    for begin, end in pairwise(points):
        if begin in a or begin in b:
            yield begin, end - 1


def under(path: str, function: Callable[[], Any], between: str = ".") -> Any:
    """Calls the function, with the path in front of the text of its ValueError."""
    try:
        return function()
    except ValueError as error:
        raise ValueError(f"{path}{between}{error}") from None


def required(container: Mapping[str, Any], key: str, kind: Any, name: str, path: str = "", missing: Any = None) -> Any:
    if key not in container:
        if missing is not None:
            return missing
        raise ValueError(f"{path}{key}: is missing")
    value = container[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{path}{key}: is not {name}")
    return value


def read_ids(value: Any, path: str) -> IDset:
    if not isinstance(value, str):
        raise ValueError(f"{path}: is not a string")
    ids: IDset = under(path, lambda: IDset(value), ": ")
    return ids


def read_entry(entry: Any, i: int) -> Group:
    path = f"execution.R_lite[{i}]"
    if not isinstance(entry, Mapping):
        raise ValueError(f"{path}: is not an object")
    ranks = read_ids(required(entry, "rank", str, "a string", f"{path}."), f"{path}.rank")
    if not ranks:
        raise ValueError(f"{path}.rank: is empty")
    children = required(entry, "children", Mapping, "an object", f"{path}.")
    cores = read_ids(required(children, "core", str, "a string", f"{path}.children."), f"{path}.children.core")
    if not cores:
        raise ValueError(f"{path}.children.core: is empty")
    gpus = IDset()
    if "gpu" in children:
        gpus = read_ids(children["gpu"], f"{path}.children.gpu")
        if not gpus:
            raise ValueError(f"{path}.children.gpu: is empty")
    extra = {
        "entry": {key: value for key, value in entry.items() if key not in ("rank", "children")},
        "children": {key: value for key, value in children.items() if key not in ("core", "gpu")},
    }
    return Group(ranks, cores, gpus, json.dumps(extra, sort_keys=True) if any(extra.values()) else "")


def entry_of(group: Group) -> dict[str, Any]:
    extra = json.loads(group.extra) if group.extra else {"entry": {}, "children": {}}
    if not group.cores:
        raise ValueError(f"rank {group.ranks.first()} has gpus but no cores: an R has a core for each rank (RFC 20)")
    children: dict[str, Any] = {"core": group.cores.encode()} | ({"gpu": group.gpus.encode()} if group.gpus else {})
    return {"rank": group.ranks.encode(), "children": children | extra["children"], **extra["entry"]}


def disjoint(groups: list[Group]) -> list[Group]:
    """Returns entries of R_lite, in their order, as groups without common ranks: the resources that several entries
    give a rank add up."""
    begins = sorted((first, i) for i, group in enumerate(groups) for first, _ in group.ranks.ranges())
    ends = sorted((last + 1, i) for i, group in enumerate(groups) for _, last in group.ranks.ranges())
    points = sorted({point for point, _ in begins + ends})
    result: list[Group] = []
    here: set[int] = set()
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    begin = end = steps = ranks = 0
    for point, after in pairwise(points):
        while begin < len(begins) and begins[begin][0] == point:
            here.add(begins[begin][1])
            begin += 1
        while end < len(ends) and ends[end][0] == point:
            here.discard(ends[end][1])
            end += 1
        steps += len(here)
        ranks += after - point if here else 0
        if steps > MAX_OVERLAP:
            raise ValueError("execution.R_lite: too many entries share ranks")
        if ranks > MAX_RANKS:
            raise ValueError(f"execution.R_lite: has more than {MAX_RANKS} ranks")
        if here:
            found.setdefault(tuple(sorted(here)), []).append((point, after - 1))
    added = copied = 0
    sum_of_extra = sum(len(group.extra) for group in groups)
    for members, runs in found.items():
        cores, gpus = IDset(), IDset()
        extra: dict[str, dict[str, Any]] = {"entry": {}, "children": {}}
        for i in members:
            where = f"execution.R_lite[{i}].rank: rank {runs[0][0]} has"
            for name, ids, more in (("core", cores, groups[i].cores), ("gpu", gpus, groups[i].gpus)):
                if ids & more:
                    raise ValueError(f"{where} {name} {ids & more} twice")
                ids.add(more)
                added += len(ids.ranges()) if len(members) > 1 else 0
            copied += len(groups[i].extra)
            if added > MAX_ADDED or copied > MAX_EXTRA + sum_of_extra:
                raise ValueError("execution.R_lite: too many entries share ranks")
            for place, values in (json.loads(groups[i].extra) if groups[i].extra else {}).items():
                for key in values:
                    if extra[place].setdefault(key, values[key]) != values[key]:
                        raise ValueError(f"{where} two values for {quoted(key)}")
        text = json.dumps(extra, sort_keys=True) if any(extra.values()) else ""
        result.append(Group(IDset.of_ranges(runs), cores, gpus, text))
    return result
