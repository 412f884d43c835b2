"""The pictures that the model alone is enough for, by name, and what writes pictures."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from startonce.draw.automaton import lifecycle
from startonce.draw.dot import lifecycle_source, race_source
from startonce.draw.engine import FORMATS, UnknownFormat, render
from startonce.draw.flow import flow
from startonce.draw.flow_dot import flow_source
from startonce.draw.keys import keys
from startonce.draw.keys_dot import keys_source
from startonce.draw.lanes import Lanes, lanes_source
from startonce.draw.legend import legend_source
from startonce.draw.mermaid import sequence, state_diagram
from startonce.draw.operations import operations_source, trouble_source
from startonce.draw.race import RACES, race
from startonce.draw.rows import rows_source
from startonce.model.errors import StartOnceError, shown

__all__ = [
    "MERMAID",
    "PICTURES",
    "NoMermaid",
    "Picture",
    "UnknownPicture",
    "lanes_picture",
    "render",
    "write",
]

MERMAID = "mermaid"
"""The format in which only the lifecycle and interleavings are written; the ending of a file is `mmd`."""


class Picture(NamedTuple):
    """One picture: what it shows, in one line, what computes its DOT source and its Mermaid text."""

    title: str
    source: Callable[[], str]
    mermaid: Callable[[], str] | None = None

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats in which it can be drawn."""
        return (*FORMATS, MERMAID) if self.mermaid else FORMATS


def lanes_picture(title: str, lanes: Callable[[], Lanes]) -> Picture:
    """Return the picture of an interleaving."""
    return Picture(title, lambda: lanes_source(lanes()), lambda: sequence(lanes()))


def _race(name: str) -> Picture:
    setting = RACES[name]
    return Picture(
        f"{setting.title}: every interleaving of their statements",
        lambda: race_source(name, setting, race(setting.racers, setting.start)),
    )


PICTURES: dict[str, Picture] = {
    "legend": Picture("how to read the pictures: every shape, frame, line and arrow", legend_source),
    "lifecycle": Picture(
        "the states of one key and every statement that changes them",
        lambda: lifecycle_source(lifecycle()),
        lambda: state_diagram(lifecycle()),
    ),
    "operations": Picture("each operation as its statements, and what it answers", operations_source),
    "trouble": Picture("what each operation answers when something is missing or fails", trouble_source),
    "rows": Picture("one table, and what each operation finds or changes in it", rows_source),
    "start": Picture("a start as a flow, with every outcome", lambda: flow_source(flow())),
    "automaton": Picture("one key and its run's lock, with its counts", lambda: keys_source(keys())),
    **{name: _race(name) for name in RACES},
}
"""The pictures that the model alone is enough for; `startonce.drawing` has these and the others."""


class UnknownPicture(StartOnceError, ValueError):
    """A picture that does not exist."""

    def __init__(self, name: str, names: Sequence[str] = tuple(PICTURES)) -> None:
        super().__init__(f"there is no picture {shown(name)}: choose from {', '.join(names)}")


class NoMermaid(StartOnceError, ValueError):
    """A picture that cannot be written as Mermaid."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not written as {MERMAID}: only the lifecycle and interleavings are")


def write(
    name: str,
    folder: Path,
    formats: Sequence[str] = ("svg", "dot"),
    pictures: Mapping[str, Picture] = PICTURES,
) -> list[Path]:
    """Draw a picture into a folder, one file for each format; return the files.

    All formats are drawn before a file is written. Raises `UnknownPicture`, `UnknownFormat`, `NoMermaid`,
    and as `render` does.
    """
    if name not in pictures:
        raise UnknownPicture(name, tuple(pictures))
    picture = pictures[name]
    for format in formats:
        if format not in (*FORMATS, MERMAID):
            raise UnknownFormat(format)
        if format not in picture.formats:
            raise NoMermaid(name)
    source = cache(picture.source)
    drawn = {}
    for format in formats:
        if format == MERMAID and picture.mermaid is not None:
            drawn[folder / f"{name}.mmd"] = picture.mermaid().encode()
        else:
            drawn[folder / f"{name}.{format}"] = render(source(), format)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in drawn.items():
        path.write_bytes(content)
    return list(drawn)
