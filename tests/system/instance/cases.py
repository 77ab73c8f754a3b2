"""Shared by the checks of an instance's module: resources, events, and a case with a broker."""

import json
import os
import pathlib
import unittest

from broker import Broker

PERM, NOENT, BUSY, EXIST, INVAL, NOSYS, NODATA, EPROTO = 1, 2, 16, 17, 22, 38, 61, 71
OVERFLOW, MSGSIZE, HOSTUNREACH, CANCELED = 75, 90, 113, 125
HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parents[1] / "vectors/flux_instance"
CONFIGURED = {"resource": {"noverify": True, "config": [{"hosts": "n[0-3]", "cores": "0-3", "properties": ["fast"]}]}}
UNKNOWN = "error preparing response: No such file or directory"
OWNERS_ONLY = "Request requires owner credentials"
NOT_FOR_YOU = "Request rejected due to insufficient privilege"

# The paths of the programs, which the main program sets.
keeper = service = None


def resources(ranks, hosts, cores="0-3", expiration=0.0):
    execution = {"R_lite": [{"rank": ranks, "children": {"core": cores}}], "nodelist": [hosts]}
    return {"version": 1, "execution": execution | {"starttime": 0.0, "expiration": expiration}}


def ranks(r):
    return ",".join(entry["rank"] for entry in r["execution"]["R_lite"])


def event(timestamp, name, **context):
    return json.dumps({"timestamp": timestamp, "name": name, "context": context}) + "\n"


def without_actor(event):
    """An event of the journal as the KVS stores it, without its actor."""
    return event | {"context": {key: value for key, value in event["context"].items() if key != "by"}}


def names(events):
    return [event["name"] for event in events]


def memory_of(broker):
    """The memory of the keeper and of its service, in bytes."""
    keeping = pathlib.Path(f"/proc/{broker.keeper.pid}")
    (serving,) = (keeping / f"task/{broker.keeper.pid}/children").read_text().split()
    found = {}
    for name, process in (("keeper", keeping), ("service", keeping.parent / serving)):
        lines = (process / "smaps_rollup").read_text().splitlines()
        found[name] = sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_Dirty:"))
    return found


def expand(idset):
    """The ranks of an idset."""
    found = set()
    for part in idset.split(",") if idset else ():
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class Case(unittest.TestCase):
    def module(self, conf=CONFIGURED, **options):
        """A module that starts, by default in an instance of four ranks, each on a host of its own."""
        os.environ["HWLOC_SYNTHETIC"] = "core:4 pu:1"
        broker = Broker(keeper, service, conf=conf, **options)
        self.addCleanup(broker.end)
        return broker

    def running(self, **options):
        return self.module(**options).expect_running()

    def refused(self, response, errnum, text=None):
        self.assertEqual((response.errnum, response.text if text is not None else None), (errnum, text))

    def quiet(self, broker, *requests):
        """Checks that no responses to these requests have come, and that none is on its way."""
        broker.fence()
        for request in requests:
            self.assertEqual(request.responses, [])

    def journal(self, broker, origin="reader"):
        """Requests a journal; returns the request and the events so far, which end with a message without any."""
        request = broker.client(origin).stream("journal", {})
        events = []
        while more := request.next().value["events"]:
            events += more
        return request, events

    def acquired(self, broker, origin="scheduler"):
        request = broker.client(origin).stream("acquire")
        return request, request.next().value
