"""A report as JUnit XML: a test case for each clause, for whatever shows test results.

A violated clause is a failure, one that was not checked an error and never a skip. Only what says nothing
about this implementation is skipped. What is known to fail passes, and says so. Whatever an implementation
said is escaped to printable characters, so it is XML too.
"""

import io
import shlex
from collections.abc import Mapping, Sequence

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from startonce.model.clauses import CLAUSES
from startonce.oracle.baseline import LONGEST, Baseline, Judged, Standing, apply, note
from startonce.oracle.columns import clipped, safe
from startonce.oracle.explained import explained
from startonce.oracle.report import Report

SUITE = "startonce conform"


def to_xml(
    report: Report,
    judged: Judged | None = None,
    command: Sequence[str] = (),
    explanations: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return a report as the text of a JUnit XML file.

    `judged` is the report beside a baseline. `explanations` are the lines that explain the divergence of a
    clause, where there are better ones than the divergence alone gives. A case is named by the id and the
    sentence of its clause, its class by the clause's kind. The only time is that of the whole run, as the
    report has it.
    """
    suite = TestSuite(SUITE)
    for name, value in (("subject", report.subject), ("tools", report.tools), ("seed", str(report.seed))):
        suite.add_property(name, clipped(value, LONGEST))
    if command:
        suite.add_property("command", clipped(shlex.join(command), LONGEST))
    judged = judged or apply(report)
    suite.add_testcases([_case(one, judged.baseline, explanations or {}) for one in judged.clauses])
    suite.time = round(report.seconds, 1)
    root = JUnitXml()
    root.add_testsuite(suite)
    file = io.BytesIO()
    root.write(file, pretty=True)
    return file.getvalue().decode("utf-8")


def _case(one: Standing, baseline: Baseline, explanations: Mapping[str, Sequence[str]]) -> TestCase:
    verdict, clause = one.verdict, CLAUSES[one.verdict.clause]
    case = TestCase(f"{clause.id} {clause.sentence}", f"startonce.{clause.kind}")
    reason = clipped(verdict.reason, LONGEST)
    says = [note(one, baseline)] if one.known is not None else []
    if verdict.divergence is not None:
        text = explanations.get(clause.id) or explained(clause.id, verdict.divergence)
        says += ["", *map(safe, text)] if says else [safe(line) for line in text]
    if one.outcome == "violated":
        case.result = [_with(Failure(clause.sentence, "violated"), says or [clause.sentence])]
    elif one.passes_again:
        case.result = [_with(Failure(says[0], "holds again"), says)]
    elif one.outcome == "not checked":
        case.result = [_with(Error(reason, "not checked"), says or [f"not checked: {reason}"])]
    elif one.outcome == "not applicable" and one.known is not None:
        case.result = [_with(Error(says[0], "not applicable"), says)]
    elif one.outcome == "not applicable":
        case.result = [Skipped(f"not applicable: {reason}")]
        case.system_out = f"not applicable: {reason}"
    elif one.outcome == "known":
        case.system_out = "\n".join(says)
    else:
        checks = clipped(", ".join(verdict.checks), LONGEST)
        case.system_out = f"holds: evaluated {verdict.evaluated:,} times by {checks}"
    return case


def _with(result: Failure | Error, lines: Sequence[str]) -> Failure | Error:
    result.text = "\n".join(lines)
    return result
