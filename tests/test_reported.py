"""Every public bug report, played again: on the model, on our store, by our starts, and on who has that bug."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from drivers import DRIVERS, LOGGED, over

from startonce import replaying
from startonce.impl import statements
from startonce.impl.databases.sqlite import SqliteDatabase
from startonce.impl.statements import CREATE_RESERVATIONS, Statement
from startonce.impl.store import Reservations
from startonce.model.clauses import CLAUSES
from startonce.oracle.mutants import MUTANTS
from startonce.oracle.reported import REPORTED
from startonce.oracle.reports.kinds import Hazard, Probe, Scripted, Starts, Trace
from startonce.oracle.reports.notation import Line, events, parsed, world_text
from startonce.oracle.reports.play import OnModel, OnSubject, Unable, difference
from startonce.own import SqlSubject
from startonce.replaying import by_the_model, caught
from startonce.scripted import SCRIPTS

ROOT = Path(__file__).parent.parent

IDS = """
B01 B04 B05 B07 B10 B11 B13 B14 B16 B17 B19 B21 B23 B25 B27 B29 B30 B32 B34 B36 B38 B39 B40 B42 B44 B45 B46 B47
B49 B51 B53 B54 B55 B56 B58 B59 B61 B62 B63 B65 B66 B68 B72 B74 B75
X01 X02 X03 X04 X05 X06 X07 X08 X09 X10 X12 X13
"""

WITHOUT_A_LINK = "B04 B05 B34 B38 B40 B44 B46 B58 B61"


def scenes(kind: type[Any]) -> list[Any]:
    """Give every scene of a kind as a parameter, by its report and its place there."""
    return [
        pytest.param(scene, id=f"{one.id}-{place}")
        for one in REPORTED.values()
        for place, scene in enumerate(one.scenes)
        if isinstance(scene, kind)
    ]


def traces(driver: bool = False) -> list[Any]:
    return [one for one in scenes(Trace) if bool(one.values[0].driver) is driver]


def names(scenes: list[Any]) -> set[str]:
    return {str(one.id) for one in scenes}


def test_no_report_is_missing() -> None:
    assert list(REPORTED) == IDS.split()
    assert [one.id for one in REPORTED.values() if one.id[0] == "B" and not one.seen_in] == (
        WITHOUT_A_LINK.split()
    )
    assert sum(len(one.seen_in) for one in REPORTED.values()) == 43


@pytest.mark.parametrize("id", REPORTED)
def test_a_report_says_what_went_wrong_what_is_right_and_shows_it(id: str) -> None:
    one = REPORTED[id]
    assert one.id == id
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", issue) for issue in one.seen_in)
    assert set(one.clauses) <= set(CLAUSES)
    assert one.clauses
    for text in (one.symptom, one.right):
        assert 10 < len(text) < 108
        assert not set(text) & set("|\n`")
        assert not text.endswith(".")
    assert one.scenes


def test_what_is_refused_by_design_is_documented() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    said = {"B42": "A spent key is not given free by time.", "B44": "Two keys are two starts"}
    assert {one.id: one.documented for one in REPORTED.values() if one.documented} == dict.fromkeys(
        said, "README.md"
    )
    assert all(sentence in readme for sentence in said.values())


# --- traces -----------------------------------------------------------------------------------------------

SPOILED = {"B46-0", "B46-1", "B47-0", "B61-1", "X08-0", "X10-0"}
"""The model has no schema that could be spoiled: of these it says nothing."""
BEHIND = {"B45-0", "B56-0", "B56-1"}
"""In memory nothing stays behind: these are played on a file alone."""


@pytest.mark.parametrize("trace", traces())
def test_the_model_answers_what_is_written_down(trace: Trace, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.id in SPOILED:
        with pytest.raises(Unable):
            difference(trace.text, OnModel())
    else:
        assert difference(trace.text, OnModel()) == ""


@pytest.mark.parametrize("trace", traces())
def test_our_store_in_memory_answers_what_is_written_down(
    trace: Trace, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.id in BEHIND:
        with pytest.raises(Unable):
            replaying.on(SqlSubject(), trace)
    else:
        assert replaying.on(SqlSubject(), trace) == ""


@pytest.mark.parametrize("trace", traces())
def test_our_store_on_a_file_answers_what_is_written_down(trace: Trace, tmp_path: Path) -> None:
    assert replaying.on(SqlSubject(tmp_path / "app.db"), trace) == ""


def wrongly(lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Give a trace with one of its answers or tables replaced, each in turn, and the line that is wrong."""
    for place, line in enumerate(lines):
        said, arrow, _ = line.text.partition(" -> ")
        if arrow or (line.do == "table" and place):
            wrong = f"{said} -> none of this" if arrow else "= k1 r7 started"
            yield "\n".join(wrong if n == place else one.text for n, one in enumerate(lines)), wrong


@pytest.mark.parametrize("trace", [*traces(), *traces(driver=True)])
def test_every_answer_in_a_trace_is_looked_at(trace: Trace, request: pytest.FixtureRequest) -> None:
    lines = parsed(trace.text)
    assert lines[-1].do == "table" or any("our table is a view" in line.text for line in lines)
    spoiled = request.node.callspec.id in SPOILED
    for text, wrong in wrongly(lines):
        subject = DRIVERS[trace.driver]() if trace.driver else SqlSubject() if spoiled else None
        hand = OnSubject(subject) if subject is not None else OnModel()
        assert difference(text, hand).startswith(f"{wrong}: observed ")
        if subject is not None:
            subject.close()


def test_a_trace_becomes_actions() -> None:
    model = OnModel()
    assert difference(REPORTED["X02"].scenes[0].text, model) == ""  # type: ignore[union-attr]
    done = [(action.caller, action.statement) for action in model.actions[-3:]]
    assert done == [("B", "insert"), ("C", "purge"), ("B", "read back")]


@pytest.mark.parametrize(
    "text",
    [
        "A reserve k1 r1",
        "A claim k1 r1 (struck by lightning) -> True",
        "- the moon is full",
        "Z claim k1 r1 -> True",
        "A reserve k1 r1 (reply lost) -> r1 reserved, created",
        "nothing",
    ],
)
def test_what_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        parsed(text)


@pytest.mark.parametrize("text", ["A insert r1", "A inserts r1!\n= no row", "I insert r1\n= no row"])
def test_what_is_no_trace_of_starts_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        events(text)


# --- whole starts, hazards, probes, scripts ---------------------------------------------------------------


@pytest.mark.parametrize("scene", scenes(Starts))
def test_the_model_goes_along_with_a_trace_of_starts(scene: Starts) -> None:
    performance = by_the_model(scene)
    assert world_text(performance.done.worlds[-1]) == events(scene.text)[1]
    if scene.breaks:
        assert performance.broken[scene.breaks] == len(performance.trace)
    else:
        assert performance.broken == ({"one holder": 4} if scene.twice else {})


@pytest.mark.parametrize("scene", scenes(Starts))
def test_our_own_starts_go_along_with_it_or_part_before_the_harm(scene: Starts) -> None:
    assert replaying.performed(scene) == ""


def test_starts_that_end_otherwise_are_seen() -> None:
    scene = REPORTED["B01"].scenes[1]
    assert isinstance(scene, Starts)
    other = scene._replace(text=scene.text.replace("ran r1", "ran r1 2 times"))
    assert "in the end there is k1 r1 terminal" in replaying.performed(other)
    never = scene._replace(breaks="executes once")
    assert replaying.performed(never) == "our own starts went along to the harm"


@pytest.mark.parametrize("hazard", scenes(Hazard))
def test_our_own_starts_do_not_come_to_a_hazard_but_by_design(hazard: Hazard) -> None:
    assert replaying.kept_off(hazard.id) == ""


@pytest.mark.parametrize("scene", scenes(Probe))
def test_the_probes_of_a_report_hold(scene: Probe, tmp_path: Path) -> None:
    ledger = replaying.probed(SqlSubject(tmp_path / "app.db"))
    assert ledger.evaluated[scene.clause]
    assert scene.clause not in ledger.divergences


def test_every_script_is_of_a_report() -> None:
    assert {name.partition("-")[0] for name in names(scenes(Scripted))} == SCRIPTS.keys()


@pytest.mark.parametrize("id", SCRIPTS)
def test_a_script_finds_nothing_wrong(id: str, tmp_path: Path) -> None:
    assert SCRIPTS[id](tmp_path) == ""


def without_not_null() -> tuple[Statement, ...]:
    create = CREATE_RESERVATIONS[2].sql.replace("key        TEXT NOT NULL", "key        TEXT")
    loose = Statement("create reservations", create.replace(" STRICT, WITHOUT ROWID", ""), True, ())
    return (*CREATE_RESERVATIONS[:2], loose, *CREATE_RESERVATIONS[3:])


WRONG: dict[str, tuple[Any, str, Any, str]] = {
    "B54": (Reservations, "for_many_runs", lambda rows, ids: rows.for_runs(ids[:100]), "1 ids"),
    "B58": (Reservations, "claim", lambda rows, key, run_id: False, "a claim is answered False"),
    "B75": (Reservations, "read", lambda rows, key: rows.reserve(key, "r1"), "without our tables"),
    "X09": (statements, "CREATE_RESERVATIONS", without_not_null(), "the key None was taken"),
}
"""For each script something that is wrong, and what it says then."""


@pytest.mark.parametrize("id", SCRIPTS)
def test_a_script_finds_what_is_wrong(id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, wrong, said = WRONG[id]
    monkeypatch.setattr(owner, name, wrong)
    assert said in SCRIPTS[id](tmp_path)


# --- foreign drivers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", traces(driver=True))
def test_whatever_a_driver_says_of_a_write_nobody_believes_in_a_start_too_many(trace: Trace) -> None:
    assert replaying.on(DRIVERS[trace.driver](), trace) == ""


def test_a_trigger_makes_one_row_three_changes() -> None:
    subject = over(SqliteDatabase, LOGGED)
    assert difference(REPORTED["B51"].scenes[0].text, OnSubject(subject)) == ""  # type: ignore[union-attr]
    assert subject.observer.connection.execute("SELECT count(*) FROM log").fetchone() == (2 * 3,)
    subject.close()


def test_every_driver_is_of_a_report() -> None:
    assert {trace.values[0].driver for trace in traces(driver=True)} == DRIVERS.keys()


# --- who has that bug -------------------------------------------------------------------------------------

NOBODY = {"B44", "X09"}
"""B44 is right as it is; what X09 is about no operation can show."""

CLAIMED = [(name, id) for name, mutant in MUTANTS.items() for id in mutant.seen]


@pytest.mark.parametrize(("name", "id"), CLAIMED)
def test_a_broken_implementation_fails_in_the_scene_of_its_report(name: str, id: str) -> None:
    assert caught(MUTANTS[name], REPORTED[id])


def test_most_reports_have_a_broken_implementation() -> None:
    assert {id for id in REPORTED if all(id not in mutant.seen for mutant in MUTANTS.values())} == NOBODY
