"""Reports for people and machines: verdicts, what was walked, and divergences as interleavings.

Plain text of at most 80 columns where the callers are few, the same everywhere.
"""

from typing import Any, NamedTuple

from startonce.model.clauses import CLAUSES
from startonce.model.errors import shown
from startonce.model.interleaving import Action
from startonce.model.operations import Fault
from startonce.model.reservation import Database
from startonce.oracle.edges import Walked
from startonce.oracle.ledger import Divergence, Verdict
from startonce.oracle.tracefile import database_to_json, describe, word


class MachineRun(NamedTuple):
    """What the machine did. `share` is of the effective edges of the scope *edges*."""

    examples: int
    steps: int
    faults: float
    share: float
    steps_per_second: float


class Report(NamedTuple):
    """The outcome of a check."""

    subject: str
    tools: str
    seed: int
    walked: tuple[Walked, ...]
    machine: MachineRun | None
    verdicts: tuple[Verdict, ...]
    seconds: float

    def of(self, status: str) -> list[Verdict]:
        """Return the verdicts of one status."""
        return [verdict for verdict in self.verdicts if verdict.status == status]


def counts(report: Report) -> list[str]:
    """Return a line for each scope and one for the machine."""
    lines = []
    for w in report.walked:
        share = f"{100 * w.executed // w.edges if w.edges else 0}%"
        lines.append(
            f"{w.name:<10} {w.what:<24} {w.states:>7,} states {w.edges:>7,} edges {share:>5} {w.how}"
        )
    if report.machine is not None:
        m = report.machine
        lines += [
            f"{'machine':<10} {f'{m.examples:,} examples':<24} {m.steps:>7,} steps, "
            f"{100 * m.share:.0f}% of the effective edges,",
            f"{'':<43} {100 * m.faults:.0f}% of them faults, {m.steps_per_second:,.0f} steps/s",
        ]
    return lines


def verdict_line(verdict: Verdict, outcome: str = "") -> str:
    """Return one line about a clause. `outcome` says more than its status: a known failure."""
    sentence = CLAUSES[verdict.clause].sentence
    if verdict.status in ("holds", "violated"):
        count = f"{verdict.evaluated:,}x"
        return f"{verdict.clause:<6} {outcome or verdict.status:<8} {count:>8}  {sentence}"
    return f"{verdict.clause:<6} {verdict.status:<17}  {sentence}"


def summary(report: Report, known: int = 0) -> list[str]:
    """Return the closing lines: how many of each, and everything that was not checked, with its reason."""
    n = {s: len(report.of(s)) for s in ("holds", "violated", "not applicable", "not checked")}
    among = f" ({known} known)" if known else ""
    lines = [
        f"{len(report.verdicts)} clauses: {n['holds']} hold, {n['violated']} violated{among}, "
        f"{n['not applicable']} not applicable, {n['not checked']} not checked"
    ]
    for status in ("not applicable", "not checked"):
        reasons: dict[str, list[str]] = {}
        for verdict in report.of(status):
            reasons.setdefault(verdict.reason, []).append(verdict.clause)
        for reason, clauses in reasons.items():
            lines += _wrapped(f"{status}  {', '.join(clauses)}: {reason}")
    return lines


def to_json(report: Report) -> dict[str, Any]:
    """Return a report as plain JSON values."""
    return {
        "startonce": "check",
        "version": 1,
        "subject": report.subject,
        "tools": report.tools,
        "seed": report.seed,
        "scopes": [w._asdict() for w in report.walked],
        "machine": report.machine and report.machine._asdict(),
        "clauses": [
            {
                "id": v.clause,
                "kind": CLAUSES[v.clause].kind,
                "sentence": CLAUSES[v.clause].sentence,
                "verdict": v.status,
                "evaluated": v.evaluated,
                "checks": list(v.checks),
                "reason": v.reason or None,
                "divergence": v.divergence and divergence_to_json(v.divergence),
            }
            for v in report.verdicts
        ],
        "seconds": round(report.seconds, 1),
    }


def divergence_to_json(divergence: Divergence) -> dict[str, Any]:
    """Return a divergence as plain JSON values."""
    (expected, there), (observed, here) = divergence.expected, divergence.observed
    return {
        "violates": list(divergence.clauses),
        "found_by": divergence.check,
        "start": database_to_json(divergence.start),
        "steps": [
            {"caller": a.caller, "do": action_text(a), "fault": a.fault.value} for a in divergence.actions
        ],
        "expected": {"answer": describe(expected), "database": database_to_json(there)},
        "observed": {"answer": describe(observed), "database": database_to_json(here)},
    }


# --- an interleaving in columns ------------------------------------------------------------------------


def action_text(action: Action) -> str:
    """Say in a few words what a caller does."""
    if action.do != "run":
        return {
            "crash": "crashes",
            "land": "its late statement lands",
            "pin": "a replica stays behind",
            "unpin": "the replica catches up",
            "deny": "writes are refused",
            "allow": "writes are allowed",
        }[action.do]
    args = " ".join(
        arg if isinstance(arg, str) and word(arg) == arg else shown(arg, 24) for arg in action.args
    )
    text = f"{action.operation} {_cut(args, 40)}".strip()
    if action.statement not in ("", action.operation, action.operation.replace("_", " ")):
        text += f": {action.statement}"
    if action.fault is not Fault.NONE:
        text += f" ({action.fault.value})"
    return text


def interleaving(divergence: Divergence) -> list[str]:
    """Return a divergence as lines: a column per caller and one for the rows, the last step marked."""
    callers = sorted({a.caller for a in divergence.actions if a.caller}) or ["A"]
    keys = _keys(divergence)
    seen = list(divergence.seen[: len(divergence.actions) - 1])
    seen += [None] * (len(divergence.actions) - 1 - len(seen)) + [divergence.observed[1]]
    cells = []
    for number, (action, db) in enumerate(zip(divergence.actions, seen, strict=True), 1):
        rows = "" if db is None else _rows_text(db, keys)
        cells.append((number, number == len(divergence.actions), action, rows))
    widest = max(len(action_text(action)) for _, _, action, _ in cells)
    width = min(max(widest, 8) + 2, 34)
    title = f"row {keys[0]}" if len(keys) == 1 else "rows"
    lines = []
    beside = len(callers) * width + 6 + 14 <= 80
    if divergence.start.rows:
        lines.append(f"     begins with {_rows_text(divergence.start, keys)}")
    if beside:
        head = "".join(f"{caller:<{width}}" for caller in callers)
        lines.append(f"     {head}{title}".rstrip())
    for number, last, action, rows in cells:
        mark = "✗" if last else " "
        text = action_text(action)
        if beside:
            column = callers.index(action.caller) if action.caller else 0
            body = " " * (column * width) + f"{text:<{width}}"
            lines.append(f"{number:>2} {mark} {body:<{len(callers) * width}}{rows}".rstrip())
        else:
            lines.append(f"{number:>2} {mark} {action.caller or '-':<2} {text:<38}  {rows}".rstrip())
    (expected, there), (observed, here) = divergence.expected, divergence.observed
    lines += [
        "",
        f"     expected  {_both(expected, there, keys)}",
        f"     observed  {_both(observed, here, keys)}",
    ]
    return lines


def _keys(divergence: Divergence) -> list[str]:
    databases = (divergence.start, divergence.expected[1], divergence.observed[1])
    keys = {row.key for db in databases for row in db.rows or ()}
    for action in divergence.actions:
        if action.operation in ("reserve", "claim", "release", "read", "take_lock") and action.args:
            keys.add(action.args[0] if isinstance(action.args[0], str) else shown(action.args[0]))
    return sorted(keys, key=str)[:4] or ["k1"]


def _rows_text(db: Database, keys: list[str]) -> str:
    if db.rows is None:
        return "no table"
    shown_rows = []
    for key in keys:
        row = db.row(key)
        name = f"{shown(key)[1:-1][:16]} " if len(keys) > 1 else ""
        shown_rows.append(f"{name}{word(row.run_id)[:16]} {word(row.state)}" if row else f"{name}-")
    for lock in db.locks or ():
        shown_rows.append(f"lock {word(lock.run_id)}: {word(lock.holder)}{' ended' if lock.ended else ''}")
    if db.fence_closed:
        shown_rows.append("fence closed")
    return ", ".join(shown_rows)


def _both(answer: Any, db: Database, keys: list[str]) -> str:
    return f"{describe(answer)}; {_rows_text(db, keys)}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _wrapped(text: str, width: int = 80) -> list[str]:
    lines, line = [], ""
    for part in text.split(" "):
        if line and len(line) + 1 + len(part) > width:
            lines.append(line)
            line = "    " + part
        else:
            line = f"{line} {part}" if line else part
    return [*lines, line]
