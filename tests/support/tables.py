"""The commands in the tables of docs/coming-from.md: what operators type elsewhere, and what it is here."""

import re
import subprocess

from programs import PATIENCE

PAGE = "docs/coming-from.md"
LEAST = 10  # rows of the table of a system


def commands(cell):
    return re.findall(r"`([^`]+)`", cell)


def rows_below(text, header):
    """Returns the pairs (there, here) of the cells in the rows of the tables with this header, which is a pattern."""
    rows = []
    for table in re.findall(rf"^{header}\n\|[-|]+\n((?:\|.*\n)*)", text, re.MULTILINE):
        rows += [tuple(cell.strip() for cell in row.split("|")[-3:-1]) for row in table.splitlines()]
    return rows


def systems(page):
    """Returns the rows of the table of each system, as pairs of lists of commands."""
    found = {}
    for section in page.split("\n## ")[1:]:
        name = section.split("\n")[0]
        cells = rows_below(section, rf"\| to \| {name} \| here \|")
        rows = [(commands(there), commands(here)) for there, here in cells]
        if not rows:
            continue
        if len(rows) < LEAST or not all(there and here for there, here in rows):
            raise ValueError(f"{PAGE}: {name}: fewer than {LEAST} rows, or a row without a command")
        found[name] = rows
    return found


def procedures(page):
    """Returns the commands here of each procedure, by its title."""
    found = {}
    for text in page.split("\n## Procedures of sites\n")[1].split("\n**")[1:]:
        title = text.split("**")[0]
        rows = [commands(here) for _, here in rows_below(text, r"\| there \([^|]*\) \| here \|")]
        if not rows or not all(rows) or not re.search(r"\]\(https://", text):
            raise ValueError(f"{PAGE}: {title} lacks a table, a command in a row, or its source")
        found[title] = [command for row in rows for command in row]
    return found


def run(case, lines, environment, directory):
    """Runs the commands one after the other in a directory; each must succeed."""
    for line in lines:
        with case.subTest(line):
            done = subprocess.run(["bash", "-c", line], env=environment, cwd=directory, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=4 * PATIENCE)
            case.assertEqual(done.returncode, 0, done.stdout + done.stderr)
