"""What was evaluated, how often, and what was found: the ground of every verdict.

A clause *holds* if it was evaluated and never broken, is *violated* if it was broken once, and is *not
checked*, with the reason, if nothing evaluated it. Nothing unchecked is ever shown as holding.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from startonce.model.clauses import CLAUSES
from startonce.model.interleaving import Action
from startonce.model.reservation import Database

Status = Literal["holds", "violated", "not applicable", "not checked"]


class Divergence(NamedTuple):
    """Where an implementation and the model part: the actions that lead there, the last one diverging.

    `start` is the database before the first action. `expected` and `observed` are pairs of answer and
    database after. `clauses` are those that the observed step breaks, the first one giving it its name.
    `seen` are the databases observed after each action, None where the subject could not show it.
    """

    clauses: tuple[str, ...]
    check: str
    start: Database
    actions: tuple[Action, ...]
    expected: tuple[Any, Database]
    observed: tuple[Any, Database]
    seen: tuple[Database | None, ...] = ()


class Verdict(NamedTuple):
    """What is known of one clause."""

    clause: str
    status: Status
    evaluated: int
    checks: tuple[str, ...]
    reason: str
    divergence: Divergence | None


@dataclass
class Ledger:
    """Collects evaluations and divergences of several checks of one subject."""

    evaluated: Counter[str] = field(default_factory=Counter)
    checks: dict[str, set[str]] = field(default_factory=dict)
    divergences: dict[str, Divergence] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    not_applicable: dict[str, str] = field(default_factory=dict)

    def count(self, clauses: Iterable[str], check: str, times: int = 1) -> None:
        """Note that clauses were evaluated and kept."""
        for clause in clauses:
            self.evaluated[clause] += times
            self.checks.setdefault(clause, set()).add(check)

    def violated(self, divergence: Divergence) -> None:
        """Note a divergence under each clause that it breaks; the first one with fewest actions stays."""
        for clause in divergence.clauses:
            self.count([clause], divergence.check)
            self._keep(clause, divergence)

    def _keep(self, clause: str, divergence: Divergence) -> None:
        known = self.divergences.get(clause)
        if known is None or len(divergence.actions) < len(known.actions):
            self.divergences[clause] = divergence

    def not_checked(self, clauses: Iterable[str], reason: str) -> None:
        """Note why nothing evaluated some clauses; where something did, this is not shown."""
        for clause in clauses:
            self.reasons.setdefault(clause, reason)

    def merge(self, other: "Ledger") -> None:
        """Take over what another ledger knows."""
        self.evaluated.update(other.evaluated)
        for clause, checks in other.checks.items():
            self.checks.setdefault(clause, set()).update(checks)
        for clause, divergence in other.divergences.items():
            self._keep(clause, divergence)
        for clause, reason in other.reasons.items():
            self.reasons.setdefault(clause, reason)
        self.not_applicable.update(other.not_applicable)

    def verdicts(self) -> list[Verdict]:
        """Give the verdict on every clause, in the order of the specification."""
        return [self._verdict(clause) for clause in CLAUSES]

    def _verdict(self, clause: str) -> Verdict:
        count = self.evaluated[clause]
        checks = tuple(sorted(self.checks.get(clause, ())))
        divergence = self.divergences.get(clause)
        if divergence is not None:
            return Verdict(clause, "violated", count, checks, "", divergence)
        if count:
            return Verdict(clause, "holds", count, checks, "", None)
        if clause in self.not_applicable:
            return Verdict(clause, "not applicable", 0, (), self.not_applicable[clause], None)
        reason = self.reasons.get(clause, "nothing evaluated it")
        return Verdict(clause, "not checked", 0, (), reason, None)
