"""The one error of the client."""

from __future__ import annotations

import errno as _errno
import os

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
