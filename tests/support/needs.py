"""What a test lacks: one line for each, `skipped: needs WHAT`, from which tests/support/skipped makes the last line of
./test. WHAT is Debian packages, or what else is missing."""

import shutil
import sys
import unittest


def skip(*what):
    """Ends a test that cannot run, with the lines about what it lacks."""
    print(f"skipped: needs {' '.join(what)}", flush=True)
    sys.exit(77)


def needs(program, package, condition=True):
    """A decorator for cases that start this program of a package."""
    if shutil.which(program) and condition:
        return lambda case: case
    why = f"needs {package}"
    print(f"skipped: {why}", flush=True)
    return unittest.skip(why)
