"""Folds a log of events into states: a second, simple implementation to compare the daemons with."""


def ranks(idset):
    result = set()
    for item in filter(None, idset.split(",")):
        first, _, last = item.partition("-")
        result.update(range(int(first), int(last or first) + 1))
    return result


class Fold:
    def __init__(self):
        #: The reason of each drained rank.
        self.drained = {}
        self.online = set()
        self.torpid = set()
        #: The ranks of each allocation.
        self.allocations = {}

    def apply(self, name, context):
        targets = ranks(context.get("idset", ""))
        match name:
            case "restart":
                self.online, self.torpid = ranks(context["online"]), set()
            case "drain":
                for rank in targets:
                    self.drained[rank] = context.get("reason", "")
            case "undrain":
                for rank in targets:
                    self.drained.pop(rank, None)
            case "online":
                self.online |= targets
            case "offline":
                self.online -= targets
                self.torpid -= targets
            case "torpid":
                self.torpid |= targets
            case "lively":
                self.torpid -= targets
            case "alloc":
                for one in context["allocations"]:
                    self.allocations[one["id"]] = {
                        rank for entry in one["R"]["execution"]["R_lite"] for rank in ranks(entry["rank"])}
            case "free":
                for id in context["ids"]:
                    self.allocations.pop(id, None)
            case "resource-define":
                pass
            case _:
                raise ValueError(f"an event {name}, which nothing in this test causes")

    def states(self):
        allocated = set().union(*self.allocations.values())
        return {"drain": dict(self.drained), "online": set(self.online), "torpid": set(self.torpid), "allocated": allocated}

    def up(self):
        """The targets that schedulers may use."""
        return self.online - self.drained.keys() - self.torpid


def states_of(status):
    """The same states, from the status of a daemon."""
    drained = {}
    for idset, drain in status["drain"].items():
        drained |= dict.fromkeys(ranks(idset), drain["reason"])
    return {"drain": drained, **{key: ranks(status[key]) for key in ("online", "torpid", "allocated")}}


def up_of(status, targets):
    """The targets of these that a scheduler may use, by a status."""
    states = states_of(status)
    return sorted((set(targets) & states["online"]) - states["drain"].keys() - states["torpid"] - ranks(status["exclude"]))
