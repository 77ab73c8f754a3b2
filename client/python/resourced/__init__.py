"""A client of resourced for asyncio. `resourced.sync` is the same for programs without asyncio.

    async with resourced.connect() as connection:
        async with connection.acquire(allocations=True) as acquisition:
            async for event in acquisition:
                match event:
                    case resourced.Acquired(): ...
                    case resourced.Update(): ...
                    case resourced.Lost(): ...
"""

from resourced.acquisition import Acquired, Acquisition, AcquisitionEvent, DownCause, Lost, ScheduledDrain, Update
from resourced.allocations import Allocation, Freed
from resourced.connection import Connection, Drain, DrainMode, Peer, Peers, SchedStatus, Status, WaitCondition, connect
from resourced.errors import ResourcedError
from resourced.hostlist import Hostlist
from resourced.idset import IDset
from resourced.journal import Event, Journal, JournalBatch
from resourced.ledger import Entry, Ledger
from resourced.report import Cause, Report, ReportGroups, Use
from resourced.resource_set import ResourceSet
from resourced.stream import Stream

__all__ = [
    "Acquired",
    "Acquisition",
    "AcquisitionEvent",
    "Allocation",
    "Cause",
    "Connection",
    "DownCause",
    "Drain",
    "DrainMode",
    "Entry",
    "Event",
    "Freed",
    "Hostlist",
    "IDset",
    "Journal",
    "JournalBatch",
    "Ledger",
    "Lost",
    "Peer",
    "Peers",
    "Report",
    "ReportGroups",
    "ResourceSet",
    "ResourcedError",
    "SchedStatus",
    "ScheduledDrain",
    "Status",
    "Stream",
    "Update",
    "Use",
    "WaitCondition",
    "connect",
]
