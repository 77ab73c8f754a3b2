"""The Python module by which a Flux broker loads resourced.

The broker's loader of Python modules opens the channel and reads the welcome before it calls mod_main, which executes
resourced-keeper in the same process. The keeper uses the channel without Flux's libraries.
"""

import json
import os
from pathlib import Path

from _flux._core import ffi, lib

HERE = Path(__file__).resolve().parent


def program(name):
    """Returns the path of a program of the same build, or of the same prefix."""
    for folder in (HERE.parent / "bin", HERE.parents[2] / "bin"):
        if (folder / name).is_file():
            return str(folder / name)
    raise FileNotFoundError(f"{name}: not found in the bin directory that belongs to {HERE}")


def attributes(handle):
    """Returns the attributes that the broker has sent, which never change."""
    found = {}
    name = lib.flux_attr_cache_first(handle)
    while name != ffi.NULL:
        value = lib.flux_attr_get(handle, name)
        if value != ffi.NULL:
            found[ffi.string(name).decode()] = ffi.string(value).decode()
        name = lib.flux_attr_cache_next(handle)
    return found


def read_already(handle):
    """Returns the messages that the handle has queued, as frames: requests that were received while the loader waited
    for a response."""
    everything = ffi.new("struct flux_match *", {"typemask": 0xFF, "matchtag": 0, "topic_glob": ffi.NULL})
    frames = b""
    while True:
        message = lib.flux_recv(handle, everything[0], lib.FLUX_O_NONBLOCK)
        if message == ffi.NULL:
            return frames
        size = lib.flux_msg_encode_size(message)
        frame = ffi.new("char[]", size)
        if lib.flux_msg_encode(message, frame, size) < 0:
            raise OSError(ffi.errno, "a message that came before the module was there cannot be kept")
        frames += bytes(ffi.buffer(frame, size))
        lib.flux_msg_destroy(message)


def kept(name, content):
    """Returns the descriptor of a file in memory, for resourced-keeper."""
    descriptor = os.memfd_create(name, 0)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor


def mod_main(h, *args):
    channel = int(os.environ["FLUX_MODULE_URI"].removeprefix("fd://"))
    known = attributes(h.handle)
    uuid = ffi.cast("char *", lib.flux_aux_get(h.handle, b"flux::uuid"))
    welcome = {
        "uuid": ffi.string(uuid).decode(),
        "args": list(args),
        "attrs": known,
        "conf": h.conf_get(),
    }
    os.set_inheritable(channel, True)
    keeper = program("resourced-keeper")
    socket = os.environ.get("RESOURCED_FLUX_SOCKET")
    if known.get("rank") != "0":
        service = ["--", program("resourced-follower")]
    elif socket and known.get("instance-level", "0") == "0":
        # Attach to a daemon that is already running. Jobs that are instances inherit the variable from this one's
        # environment, but have resources of their own.
        service = [f"--attach={socket}"]
    else:
        service = ["--", program("resourced"), "--instance"]
    os.execv(
        keeper,
        [
            keeper,
            f"--channel={channel}",
            f"--queued={kept('queued', read_already(h.handle))}",
            f"--welcome={kept('welcome', json.dumps(welcome).encode())}",
            f"--rank={known.get('rank', '0')}",
            *service,
        ],
    )
