"""Runs the cases of a test script in several processes at the same time: for cases that mostly wait, each with its own
daemon."""

import subprocess
import sys
import tempfile
import unittest


def names_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from names_of(test)
        else:
            yield test.id().removeprefix("__main__.")


def main(arguments, count=8):
    """Runs all cases, or those that the command line names after `arguments` words, which run in this process."""
    before, wanted = sys.argv[1:1 + arguments], sys.argv[1 + arguments:]
    if wanted:
        unittest.main(argv=[sys.argv[0], *wanted])
    names = sorted(names_of(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])))
    failed = 0
    with tempfile.TemporaryFile("w+") as output:
        parts = [subprocess.Popen([sys.executable, sys.argv[0], *before, *names[i::count]], stdout=output, stderr=output)
                 for i in range(min(count, len(names)))]
        for part in parts:
            failed += part.wait() != 0
        output.seek(0)
        sys.stdout.write(output.read())
    sys.exit(1 if failed else 0)
