"""The one error of the client, and the check of times that callers give."""

from __future__ import annotations

import errno as _errno
import numbers
import os
from typing import Any

from resourced._quote import printable_line


class ResourcedError(OSError):
    """The failure of a request or of a connection. `errno` and `text`, one line, are those of the daemon, unless `local`
    is true: then this side found the failure (the daemon cannot be reached, the connection is lost, no answer in time),
    and it is unknown whether a request was carried out."""

    def __init__(self, errnum: int, text: str = "", *, local: bool = False) -> None:
        super().__init__(errnum, printable_line(text) or os.strerror(errnum))
        self.local = local

    @property
    def text(self) -> str:
        return str(self.strerror)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        name = _errno.errorcode.get(self.errno or 0, str(self.errno))
        return f"{type(self).__name__}({name}, {self.text!r})"


def check_time(name: str, seconds: Any, *, least: float | None = None) -> None:
    """Raises ResourcedError EINVAL if this is no number of seconds, or less than `least`; without that, if it is not
    positive."""
    is_number = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    if not is_number or not (seconds > 0 if least is None else seconds >= least):  # nan is neither
        raise ResourcedError(_errno.EINVAL, f"{name}: {seconds!r} is no such time", local=True)
