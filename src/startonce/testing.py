"""Every clause as a test in your own pytest suite.

    class TestMyStore(StartReservations):
        def subject(self):
            return MyStore()

The README has a whole adapter. Each clause is a test with a stable id, `test_clause[CLM-4]`. A clause that
nothing evaluated is skipped with its reason, and fails if it is in `required`; it never passes.
"""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from startonce.model.clauses import CLAUSES
from startonce.oracle import check
from startonce.oracle import report as reports
from startonce.oracle.ledger import Verdict
from startonce.oracle.subject import Subject

Verdicts = dict[str, Verdict]


class StartReservations:
    """Subclass it and write `subject`. The whole check runs once for the class.

    `size` is how much it does, `seed` the machine's seed, `required` the clauses that must have been
    evaluated, or `("all",)`.
    """

    size: ClassVar[check.Size] = check.FULL
    seed: ClassVar[int] = 1
    required: ClassVar[tuple[str, ...]] = ()

    def subject(self) -> Subject:
        """Return your implementation, with a database of its own that may be emptied at will."""
        raise NotImplementedError("write subject(): return your implementation as a Subject")

    @pytest.fixture(scope="class")
    @classmethod
    def verdicts(cls) -> Iterator[Verdicts]:
        """Run the check of `subject()` and give the verdict on every clause."""
        subject = cls().subject()
        try:
            found = check.everything(subject, cls.size, cls.seed)
            yield {verdict.clause: verdict for verdict in found.verdicts}
        except check.SubjectBroken as error:
            pytest.fail(f"the adapter, not the store: {error}", pytrace=False)
        finally:
            subject.close()

    @pytest.mark.parametrize("clause", list(CLAUSES))
    def test_clause(self, clause: str, verdicts: Verdicts) -> None:
        """Hold the implementation to one clause."""
        verdict = verdicts[clause]
        if verdict.divergence is not None:
            lines = reports.interleaving(verdict.divergence)
            pytest.fail("\n".join([f"{clause}: {CLAUSES[clause].sentence}", *lines]), pytrace=False)
        if verdict.status != "holds":
            message = f"{verdict.status}: {verdict.reason}"
            if clause in self.required or "all" in self.required:
                pytest.fail(f"{clause} is required and {message}", pytrace=False)
            pytest.skip(message)
