"""Text in a picture: how wide it is, where it is broken into lines, and how it is escaped.

The widths are those of Helvetica, in thousandths of its size, as Adobe publishes them: the engine knows
them too. Only ASCII is drawn, so that no width is guessed anywhere.
"""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

_REGULAR = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 "
    "556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 "
    "667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 "
    "556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584"
)
_BOLD = (
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 "
    "556 556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 722 778 "
    "667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556 611 556 611 556 333 611 "
    "611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 280 389 584"
)
_WIDTHS = {
    bold: {chr(32 + place): int(width) for place, width in enumerate(widths.split())}
    for bold, widths in ((False, _REGULAR), (True, _BOLD))
}
_INSTEAD = str.maketrans({"“": '"', "”": '"', "’": "'", "…": "...", "–": "-", "—": "-", "→": "to"})


class Line(NamedTuple):
    """A line of a label: its text, its size in points, and whether it is bold."""

    text: str
    points: int = 14
    bold: bool = False


def drawn(text: str) -> str:
    """Return a text as it can be drawn: of printable ASCII, everything else written as its escape."""
    plain = text.translate(_INSTEAD)
    return "".join(c if c in _WIDTHS[False] else c.encode("unicode_escape").decode() for c in plain)


def width(text: str, points: float, bold: bool = False) -> float:
    """Return how wide a text is, in points."""
    return sum(_WIDTHS[bold][char] for char in drawn(text)) * points / 1000


def wrapped(text: str, points: float, limit: float, bold: bool = False) -> list[str]:
    """Break a text into lines no wider than a limit in points, between words where it can be."""
    lines: list[str] = []
    line = ""
    for word in drawn(text).split():
        for piece in _pieces(word, points, limit, bold):
            longer = f"{line} {piece}" if line else piece
            if line and width(longer, points, bold) > limit:
                lines.append(line)
                line = piece
            else:
                line = longer
    return [*lines, line] if line else lines


def balanced(text: str, points: float, limit: float, bold: bool = False) -> list[str]:
    """Break a text into as few lines as its limit allows, about equally long."""
    lines = wrapped(text, points, limit, bold)
    narrower = limit
    while len(lines) > 1 and len(tried := wrapped(text, points, narrower, bold)) == len(lines):
        lines, narrower = tried, narrower - 12
    return lines


def _pieces(word: str, points: float, limit: float, bold: bool) -> Iterable[str]:
    """Break a word that is too wide: after an underscore or a hyphen if it has one, else anywhere."""
    piece = ""
    for char in word:
        if piece and width(piece + char, points, bold) > limit:
            fits = max(piece.rfind("_"), piece.rfind("-")) + 1 or len(piece)
            yield piece[:fits]
            piece = piece[fits:]
        piece += char
    yield piece


def cut(text: str, length: int) -> str:
    """Return a text of at most so many characters."""
    return text if len(text) <= length else text[: length - 3] + "..."


def markup(lines: Iterable[Line]) -> str:
    """Return a label of lines in the engine's markup."""
    return f"<{'<br/>'.join(_line(*line) for line in lines)}>"


def small(text: str, points: int = 13) -> str:
    """Return text of a size, inside markup; a line break stays one."""
    lines = "<br/>".join(marked(line) for line in text.split("\n"))
    return f'<font point-size="{points}">{lines}</font>'


def marked(text: str) -> str:
    """Escape text inside a label with markup, where a backslash is special too."""
    return escape(drawn(text)).replace("\\", "\\\\")


def plain(text: str) -> str:
    """Escape a label without markup, which does not begin with `<`: entities, backslashes."""
    return drawn(text).replace("&", "&amp;").replace("\\", "\\\\")


def _line(text: str, points: int, bold: bool) -> str:
    body = small(text, points)
    return f"<b>{body}</b>" if bold else body
