"""Plays the broker's part of a recorded conversation (conversation.py): each of its frames is sent when the module's
frames before it in the record have come, and these must be those of the record.

Frames of the module between two of the broker may come in another order. The matchtags of its requests are its own
affair, and the end of a stream that its client cancels and then leaves may be sent or not.
"""

import difflib
import json

from broker import DEADLINE, start_module
from conversation import describe, message_of, untimed
from frames import decode, read_frame

NODATA = 61


def comparable(told):
    """The parts of a message of the module that must be as recorded."""
    told = json.loads(untimed(json.dumps(told)))
    if told["type"] == "request":
        told["matchtag"] = "matchtag" in told
    return told


def lines(told):
    return json.dumps(told, indent=1, sort_keys=True).splitlines()


class Replay:
    def __init__(self, socket, record):
        self.socket = socket
        self.record = record
        self.matchtags = {}
        self.cancelled = {told["routes"][-1] for _, told in record if told["topic"].endswith("-cancel")}
        self.expected = [
            number
            for number, (direction, told) in enumerate(record)
            if direction == ">" and not self.ends_a_cancelled_stream(told)
        ]

    def run(self):
        for number, (direction, told) in enumerate(self.record):
            if direction == "<":
                self.receive_until(number)
                self.send(told)
        self.receive_until(len(self.record))

    def ends_a_cancelled_stream(self, told):
        return told.get("errnum") == NODATA and told["routes"][-1] in self.cancelled

    def send(self, told):
        message = message_of(told)
        if told["type"] == "response":
            message.matchtag = self.matchtags[message.matchtag]
        self.socket.sendall(message.encode())

    def receive_until(self, number):
        while self.expected and self.expected[0] < number:
            self.match(describe(decode(read_frame(self.socket))))

    def match(self, told):
        for number in self.expected:
            recorded = self.record[number][1]
            if comparable(recorded) == comparable(told):
                if told["type"] == "request" and "matchtag" in told:
                    self.matchtags[recorded["matchtag"]] = told["matchtag"]
                self.expected.remove(number)
                return
        if self.ends_a_cancelled_stream(told):
            return
        wanted = self.record[self.expected[0]][1]
        both = (lines(comparable(wanted)), lines(comparable(told)))
        difference = difflib.unified_diff(*both, "record", "module", lineterm="")
        raise AssertionError(f"line {self.expected[0] + 2} of the record:\n" + "\n".join(difference))


def replay(keeper, service, path):
    first, *rest = path.read_text().splitlines()
    socket, process = start_module(keeper, service, json.loads(first.removeprefix("= ")))
    try:
        socket.settimeout(DEADLINE)
        Replay(socket, [(line[0], json.loads(line[2:])) for line in rest]).run()
        assert process.wait(DEADLINE) == 0
    finally:
        socket.close()
        process.kill()
        process.wait()
