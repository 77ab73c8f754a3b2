"""Messages of a channel as text, one a line: `>` for those of the module, `<` for those of the broker.

What differs from one run to the next is left out or replaced: times, pids, the topology of a node.
"""

import base64
import json
import re

from frames import NORESPONSE, REQUEST, RESPONSE, STREAMING, Message

TYPES = {REQUEST: "request", RESPONSE: "response", 4: "event", 8: "control"}
FLAGS = {NORESPONSE: "noresponse", STREAMING: "streaming", 16: "upstream", 32: "private", 128: "user1"}
ANY = 0xFFFFFFFF
TOPOLOGY = "(the topology of the node)"
TIME = re.compile(r'("(?:timestamp|starttime)": ?)\d{9,}(\.\d+)?')
LOG_LINE = re.compile(r"(<\d+>1) \S+ (\d+ resource) \d+ ")


def untimed(text):
    """The text with one value for all times. A real stays a real, and an integer an integer, which Flux refuses."""
    return TIME.sub(lambda match: match[1] + ("1000000000.0" if match[2] else "1000000000"), text)


def text_of(message):
    """The payload: text with readable values of the KVS, or else hex. None if there is no payload."""
    raw = message.payload
    if raw is None:
        return None
    if raw.startswith(b"<?xml"):
        return {"text": TOPOLOGY}
    ended = raw.endswith(b"\0")
    try:
        text = (raw[:-1] if ended else raw).decode()
    except UnicodeDecodeError:
        return {"hex": raw.hex()}
    if not ended:
        return {"text without NUL": LOG_LINE.sub(r"\1 TIME \2 PID ", text)}
    try:
        object = json.loads(text)
    except ValueError:
        return {"text": text}
    return {"json": with_values(object, lambda data: untimed(base64.b64decode(data).decode()), "data", "value")}


def with_values(object, change, old, new):
    """The object with each value of the KVS changed, under the key `new` instead of `old`."""
    if isinstance(object, dict):
        found = {}
        for key, item in object.items():
            if key == old and object.get("type") == "val":
                found[new] = change(item)
            else:
                found[key] = with_values(item, change, old, new)
        return found
    if isinstance(object, list):
        return [with_values(item, change, old, new) for item in object]
    return object


def describe(message):
    told = {"type": TYPES[message.type], "topic": message.topic}
    if flags := [name for bit, name in FLAGS.items() if message.flags & bit]:
        told["flags"] = flags
    if message.routes:
        told["routes"] = message.routes
    told["user"] = [message.userid if message.userid != ANY else "mine", message.rolemask]
    if message.aux:
        told["nodeid" if message.type == REQUEST else "errnum"] = "any" if message.aux == ANY else message.aux
    if message.matchtag:
        told["matchtag"] = message.matchtag
    body = text_of(message)
    return told | ({"payload": body} if body is not None else {})


def line_of(direction, message):
    return f"{direction} " + untimed(json.dumps(describe(message)))


def message_of(told):
    types = {name: number for number, name in TYPES.items()}
    bits = {name: bit for bit, name in FLAGS.items()}
    userid, rolemask = told["user"]
    aux = told.get("nodeid", told.get("errnum", 0))
    body = told.get("payload")
    raw = None
    if body is not None:
        ((form, content),) = body.items()
        if form == "json":
            encode = lambda text: base64.b64encode(text.encode()).decode()
            raw = json.dumps(with_values(content, encode, "value", "data")).encode() + b"\0"
        elif form == "hex":
            raw = bytes.fromhex(content)
        else:
            raw = content.encode() + (b"\0" if form == "text" else b"")
    return Message(
        types[told["type"]],
        told["topic"],
        sum(bits[name] for name in told.get("flags", [])),
        raw,
        told.get("routes", []),
        ANY if userid == "mine" else userid,
        rolemask,
        ANY if aux == "any" else aux,
        told.get("matchtag", 0),
    )
