"""The operations in rows: each as its statements, and what each answers when something is amiss."""

from collections.abc import Sequence
from itertools import pairwise

from startonce.draw import look
from startonce.draw.answers import everywhere, refused_writes, struck, without_tables
from startonce.draw.grid import Arrow, Cell, Grid, column_limits, grid_source, heading, lines, padded
from startonce.draw.look import Look
from startonce.draw.text import Line
from startonce.model.operations import PROGRAMS, READS, Fault

CREATED: Look = {"shape": "box", "style": "filled,dashed", "fillcolor": look.WHITE, "penwidth": "3"}
"""A statement that runs only where its table is missing."""
PLAIN: Look = {"shape": "box", "style": "filled", "fillcolor": look.GREY, "penwidth": "0"}
ANSWER: Look = {"shape": "box", "style": "filled", "fillcolor": look.WHITE, "penwidth": "0"}
LONGEST = max(len(program.statements) for program in PROGRAMS.values())


def operations_source() -> str:
    """Return the DOT source of every operation as its statements, and what it can answer."""
    rows: list[Sequence[Cell | None]] = [
        (
            heading("operation"),
            heading("may create"),
            *(heading(f"step {number}") for number in range(1, LONGEST + 1)),
            heading("answers"),
        )
    ]
    arrows = []
    for number, (name, program) in enumerate(PROGRAMS.items(), 1):
        made = ", ".join(one.removeprefix("create ") for one in program.creates)
        steps = [
            Cell((Line(one, 13, True),), look.statement(one not in READS)) for one in program.statements
        ]
        rows.append(
            (
                _operation(name),
                Cell(lines(made, points=12), CREATED) if made else None,
                *steps,
                *[None] * (LONGEST - len(steps)),
                Cell(lines(*_brief(everywhere(name))), {**ANSWER, "labeljust": "l"}),
            )
        )
        firsts = ([1] if made else []) + [2 + place for place in range(len(steps))]
        arrows += [
            Arrow((number, tail), (number, head), {"penwidth": "1.5", "arrowsize": "0.7"})
            for tail, head in pairwise(firsts)
        ]
    grid = Grid(
        "operations",
        "Each operation as its statements",
        (
            "Thick frame: it writes. Thin frame: it reads. Dashed: only where its table is missing.",
            "Every statement runs on its own; anything can happen between two of them.",
        ),
        padded(rows),
        column_limits(84, 80, 62, 62, 62, 44, 222),
        tuple(arrows),
        across=16,
    )
    return grid_source(grid)


def trouble_source() -> str:
    """Return the DOT source of what each operation answers when something is missing or fails."""
    heads = (
        "operation",
        "no table exists",
        "writes are refused",
        "a reply to a write is lost",
        "a read fails",
    )
    rows: list[Sequence[Cell | None]] = [tuple(map(heading, heads))]
    for name in PROGRAMS:
        usual = everywhere(name)
        found = (
            without_tables(name),
            refused_writes(name),
            struck(name, Fault.LOST, reads=False),
            struck(name, Fault.NOT_APPLIED, reads=True),
        )
        rows.append((_operation(name), *(_trouble(words, usual) for words in found)))
    grid = Grid(
        "trouble",
        "What each operation answers when something is missing or fails",
        (
            "Dashed: an error, raised as such. Grey: as ever. Empty: it has no such statement.",
            "Without its tables nothing is an error, and only reserve and the fence create them.",
        ),
        padded(rows),
        column_limits(96, 160, 150, 176, 110),
    )
    return grid_source(grid)


def _operation(name: str) -> Cell:
    arguments = ", ".join(PROGRAMS[name].arguments)
    return Cell((Line(name, 14, True), *([Line(arguments, 12)] if arguments else [])), PLAIN)


def _brief(words: Sequence[str]) -> list[str]:
    """Put the reasons of a refusal into one line."""
    reasons = [word.removeprefix("refused: ") for word in words if word.startswith("refused: ")]
    rest = [word for word in words if not word.startswith("refused: ")]
    return [*([" | ".join(rest)] if rest else []), *([f"refused: {'; '.join(reasons)}"] if reasons else [])]


def _trouble(words: Sequence[str], usual: Sequence[str]) -> Cell | None:
    if not words:
        return None
    if list(words) == list(usual):
        return Cell(lines("as ever"), PLAIN)
    if set(words) - {word for word in words if word.startswith("error")} == set(usual):
        words = ["as ever", *(word for word in words if word.startswith("error"))]
    elif len(set(words) & set(usual)) > 2:
        words = ["refused as ever", *(word for word in words if word not in usual)]
    its: Look = {"shape": "box", "style": "filled"}
    if any(word.startswith("error") for word in words):
        its = {**its, "style": "filled,dashed", "fillcolor": look.ORANGE, "color": look.RED}
    return Cell(lines(*_brief(words)), its)
