"""The layout engine: the program that comes with the package `graphviz-pure`, no system Graphviz.

It writes the same bytes on every platform. What it says about itself (comments with its version, a
DTD on another host) is left out.
"""

import re
import subprocess
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path, PurePath

from startonce.model.errors import StartOnceError, shown

FORMATS = ("svg", "dot", "png")
_PACKAGE = "graphviz-pure"
_SECONDS = 60
_FONTS = (
    'font-family="Helvetica,sans-Serif"',
    'font-family="Helvetica,Arial,Liberation Sans,Arimo,sans-serif"',
)
"""What the engine names, and the fonts of the very same widths that a viewer may have instead."""
_SAYS = re.compile(r"<!--.*?-->\n?|<!DOCTYPE[^>]*>\n?", re.DOTALL)


class UnknownFormat(StartOnceError, ValueError):
    """A format in which no picture can be drawn."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no picture is drawn as {shown(name)}: choose from {', '.join(FORMATS)}, mermaid")


class EngineMissing(StartOnceError):
    """The layout engine is not installed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the layout engine is missing ({why}): pip install {_PACKAGE}")


class DrawingFailed(StartOnceError):
    """The layout engine refused the source, or warned that it guessed."""


def render(source: str, format: str) -> bytes:
    """Draw DOT source as `svg` or `png`; as `dot` it is the source itself, encoded in UTF-8.

    Raises `UnknownFormat`, `EngineMissing`, `DrawingFailed`.
    """
    if format not in FORMATS:
        raise UnknownFormat(format)
    if format == "dot":
        return source.encode()
    drawn = _engine(source, format)
    if format == "png":
        return drawn
    return _SAYS.sub("", drawn.decode()).replace(*_FONTS).encode()


def engine() -> Path:
    """Return where the engine is installed. Raises `EngineMissing`."""
    try:
        installed = files(_PACKAGE) or ()
    except PackageNotFoundError:
        raise EngineMissing("not installed") from None
    for file in installed:
        if PurePath(file).stem == _PACKAGE and (found := Path(str(file.locate()))).is_file():
            return found.resolve()
    raise EngineMissing("its program is not where the package says")


def _engine(source: str, format: str) -> bytes:
    command = [str(engine()), "-Kdot", f"-T{format}"]
    try:
        done = subprocess.run(command, input=source.encode(), capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DrawingFailed(f"the layout engine did not finish: {error}") from error
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode or said:  # a warning is a label cut or a font whose widths were guessed
        raise DrawingFailed(f"the layout engine refused the source: {said or done.returncode}")
    return done.stdout
