"""Builds with setuptools in a temporary copy of the sources, because it leaves `build` and `*.egg-info` where it builds."""

import contextlib
import importlib.util
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import build_editable as build_editable  # built in place, as it refers to the sources


@contextlib.contextmanager
def _in_a_copy() -> Iterator[None]:
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    with tempfile.TemporaryDirectory(prefix="resourced-build-") as directory:
        with contextlib.chdir(shutil.copytree(".", pathlib.Path(directory, "resourced"), ignore=ignored)):
            yield


def build_wheel(directory: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    target = os.path.abspath(directory)
    with _in_a_copy():
        return str(build_meta.build_wheel(target, settings, metadata))


def build_sdist(directory: str, settings: dict[str, Any] | None = None) -> str:
    target = os.path.abspath(directory)
    with _in_a_copy():
        pathlib.Path("MANIFEST.in").write_text("include build_backend.py\n", encoding="utf-8")
        return str(build_meta.build_sdist(target, settings))


# Python has written the bytecode of this module beside it before it runs it.
_bytecode = pathlib.Path(importlib.util.cache_from_source(__file__))
with contextlib.suppress(OSError):
    _bytecode.unlink()
    _bytecode.parent.rmdir()
