"""The pictures by name, and what writes them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from startonce.draw.automaton import lifecycle
from startonce.draw.dot import lifecycle_source, race_source
from startonce.draw.engine import render
from startonce.draw.race import race
from startonce.model.errors import StartOnceError, shown

__all__ = ["PICTURES", "Picture", "UnknownPicture", "render", "write"]


class Picture(NamedTuple):
    """One picture: what it shows, in one line, and what computes its DOT source."""

    title: str
    source: Callable[[], str]


PICTURES: dict[str, Picture] = {
    "lifecycle": Picture(
        "the states of one key and every statement that changes them",
        lambda: lifecycle_source(lifecycle()),
    ),
    "reserve-race": Picture(
        "two callers race through reserve, every interleaving of their statements",
        lambda: race_source(race()),
    ),
}


class UnknownPicture(StartOnceError, ValueError):
    """A picture that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no picture {shown(name)}: choose from {', '.join(PICTURES)}")


def write(name: str, folder: Path, formats: Sequence[str] = ("svg", "dot")) -> list[Path]:
    """Draw a picture into a folder, one file for each format; return the files.

    All formats are drawn before a file is written. Raises `UnknownPicture`, and as `render` does.
    """
    if name not in PICTURES:
        raise UnknownPicture(name)
    source = PICTURES[name].source()
    drawn = {folder / f"{name}.{format}": render(source, format) for format in formats}
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in drawn.items():
        path.write_bytes(content)
    return list(drawn)
