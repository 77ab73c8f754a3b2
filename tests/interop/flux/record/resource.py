"""The resource module of a Flux instance with its channel recorded: the file named by RESOURCED_RECORD gets each frame.

Between the broker and resourced's own entry, which is loaded from RESOURCED_RECORD_MODULE: where that would become
resourced-keeper, this process starts it, and relays its bytes.
"""

import importlib.util
import json
import os
import select
import socket
import subprocess
import sys

sys.path[:0] = [os.environ["RESOURCED_RECORD_TESTS"] + folder for folder in ("/support", "/system/instance")]
from conversation import line_of
from frames import decode

# The other attributes describe the machine, and the module does not read them.
ATTRIBUTES = ("rank", "size", "hostlist", "hostname", "security.owner")


def option(words, name):
    (found,) = (word.partition("=")[2] for word in words if word.startswith(f"--{name}="))
    return int(found)


def contents(descriptor):
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0)


class Side:
    """The frames that one side has sent, for the record."""

    def __init__(self, direction, record):
        self.direction, self.record, self.bytes = direction, record, b""

    def note(self, more):
        self.bytes += more
        while len(self.bytes) >= 8:
            size = 8 + int.from_bytes(self.bytes[4:8], "big")
            if len(self.bytes) < size:
                return
            frame, self.bytes = self.bytes[:size], self.bytes[size:]
            print(line_of(self.direction, decode(frame)), file=self.record, flush=True)


def relay(words):
    broker = socket.socket(fileno=option(words, "channel"))
    broker.setblocking(True)
    ours, theirs = socket.socketpair()
    words = [f"--channel={theirs.fileno()}" if word.startswith("--channel=") else word for word in words]
    passed = [theirs.fileno(), option(words, "queued"), option(words, "welcome")]
    with open(os.environ["RESOURCED_RECORD"], "w") as record:
        welcome = json.loads(contents(passed[2]))
        welcome["attrs"] = {name: text for name, text in welcome["attrs"].items() if name in ATTRIBUTES}
        welcome["conf"] = {name: table for name, table in (welcome["conf"] or {}).items() if name == "resource"}
        print("= " + json.dumps(welcome), file=record)
        from_broker, from_module = Side("<", record), Side(">", record)
        from_broker.note(contents(passed[1]))
        keeper = subprocess.Popen(words, pass_fds=passed)
        theirs.close()
        while True:
            readable, _, _ = select.select([broker, ours], [], [])
            # The module's messages are recorded before the answers to them.
            for source, sink, side in ((ours, broker, from_module), (broker, ours, from_broker)):
                if source not in readable:
                    continue
                try:
                    more = source.recv(1 << 16)
                except ConnectionResetError:
                    more = b""
                if not more:
                    ours.close()
                    os._exit(keeper.wait())
                side.note(more)
                try:
                    sink.sendall(more)
                except BrokenPipeError:
                    pass


def mod_main(h, *args):
    place = os.path.join(os.environ["RESOURCED_RECORD_MODULE"], "resource.py")
    specification = importlib.util.spec_from_file_location("resourced_resource", place)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    if h.attr_get("rank") == "0":
        os.execv = lambda program, words: relay(words)
    module.mod_main(h, *args)
