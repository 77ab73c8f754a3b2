"""Text from outside in errors and logs: always one line of bounded length."""

import unicodedata

MAX_QUOTED = 60
MAX_LINE = 1024


def quoted(text: str) -> str:
    """Returns the text in quotes, cut after MAX_QUOTED bytes, with escapes for all but printable ASCII."""
    data = text[: MAX_QUOTED + 1].encode("utf-8", "surrogatepass")
    out = []
    for byte in data[:MAX_QUOTED]:
        if byte in b'"\\':
            out.append("\\" + chr(byte))
        elif 0x20 <= byte < 0x7F:
            out.append(chr(byte))
        else:
            out.append(f"\\x{byte:02x}")
    return '"' + "".join(out) + ('..."' if len(data) > MAX_QUOTED else '"')


def printable_line(text: str) -> str:
    """Returns the text as one line without control characters, cut to MAX_LINE characters."""
    out = []
    for character in text[: MAX_LINE + 1].rstrip("\r\n"):
        if character in "\r\n":
            out.append(" ")
        elif unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            out.append(f"\\u{ord(character):04x}")
        else:
            out.append(character)
    line = "".join(out)
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "..."
