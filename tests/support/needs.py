"""What a test lacks: one line for each, `skipped: needs WHAT`, from which tests/support/skipped makes the last line of
./test. WHAT is Debian packages, or what else is missing."""

import shutil
import sys
import unittest


def say_skipped(*what):
    """Names what a test or a case lacks. Returns that as the reason for unittest."""
    why = f"needs {' '.join(what)}"
    # unittest prints a dot for each case before, without the end of a line.
    print(f"\nskipped: {why}", flush=True)
    return why


def skip(*what):
    """Ends a test that cannot run, with the lines about what it lacks."""
    say_skipped(*what)
    sys.exit(77)


def needs_that(condition, what):
    """A decorator for cases that cannot run unless the condition holds."""
    return (lambda case: case) if condition else unittest.skip(say_skipped(what))


def needs(program, package, condition=True):
    """A decorator for cases that start this program of a package."""
    return needs_that(shutil.which(program) and condition, package)
