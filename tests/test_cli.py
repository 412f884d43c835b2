"""The command: what it prints, how it exits, what it leaves behind."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from startonce.impl.statements import ALL
from startonce.model.clauses import CLAUSES
from startonce.model.interleaving import Action
from startonce.model.reservation import EMPTY, NOTHING
from startonce.oracle.ledger import Divergence
from startonce.oracle.tracefile import to_text


def startonce(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "startonce", *args],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def test_check_says_what_holds_and_leaves_a_database_of_ones_own_as_it_was(tmp_path: Path) -> None:
    """In 80 columns, in UTF-8, and plain: whatever the terminal and the locale are."""
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        connection.execute("CREATE TABLE orders (id TEXT)")
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "40"}
    args = ("app.db", "--quick", "--require", "CLM-4", "--json", "out.json")
    done = startonce("check", *args, cwd=tmp_path, **plain)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for clause in CLAUSES:
        assert f"\n{clause:<6} " in done.stdout
    assert "59 clauses: 53 hold, 0 violated, 0 not applicable, 6 not checked" in done.stdout
    assert "100% executed" in done.stdout
    assert max(map(len, done.stdout.splitlines()[1:])) <= 80
    assert " · seed 1" in done.stdout
    assert "\x1b" not in done.stdout
    report = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert {c["id"]: c["verdict"] for c in report["clauses"]}["CLM-4"] == "holds"
    assert all(c["reason"] for c in report["clauses"] if c["verdict"] == "not checked")
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("orders",)]


def test_a_required_clause_that_was_not_checked_is_exit_3(tmp_path: Path) -> None:
    """On an empty file, which is a new database."""
    (tmp_path / "x.db").touch()
    done = startonce("check", "x.db", "--quick", "--require", "DUT-1", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "required, and not checked: DUT-1" in done.stdout
    assert "0 violated" in done.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("bogus",),
        ("check", "--bogus"),
        ("check", "--require", "XYZ-1"),
        ("check", "--seed", "one"),
        ("draw", "nothing"),
        ("draw", "--format", "gif"),
        ("replay",),
    ],
)
def test_what_is_no_command_is_exit_2_with_a_hint(args: tuple[str, ...], tmp_path: Path) -> None:
    done = startonce(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_a_database_with_reservations_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE startonce_reservations (key TEXT)")
    connection.execute("INSERT INTO startonce_reservations VALUES ('mine')")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    done = startonce("check", "app.db", cwd=tmp_path)
    assert done.returncode == 4
    assert "already holds startonce_reservations" in done.stderr
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_exit_4(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"PK\x03\x04 zip")
    done = startonce("check", "--quick", "x.db", cwd=tmp_path)
    assert done.returncode == 4
    assert "its first bytes are" in done.stderr
    assert (tmp_path / "x.db").read_bytes() == b"PK\x03\x04 zip"


def test_ctrl_c_is_exit_130_and_leaves_no_file_behind(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "startonce", "check"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not list(folder.glob("*/second.db")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.strip() == "startonce: interrupted"
    assert list(folder.iterdir()) == []


def trace(folder: Path, *actions: Action) -> Path:
    path = folder / "t.trace.json"
    found = Divergence(("CLM-4",), "machine", EMPTY, actions, (False, EMPTY), (True, NOTHING))
    path.write_text(to_text(found, "somebody's"), "utf-8")
    return path


def test_replay_repeats_a_trace(tmp_path: Path) -> None:
    trace(
        tmp_path,
        Action("run", "A", "reserve", ("k1", "r2"), 1),
        Action("run", "B", "claim", ("k1", "r1"), 2),
    )
    done = startonce("replay", "t.trace.json", cwd=tmp_path)
    assert done.returncode == 0
    assert "agrees with the model in all 2 steps (recorded as violating CLM-4)" in done.stdout


@pytest.mark.parametrize(
    "action",
    [
        Action("run", "A", "explode", (), 1),
        Action("run", "A", "reserve", ("k1",), 1),
        Action("run", "A", "claim", ("k1", "r1", "h1", "x"), 1),
        Action("crash", "A"),
        Action("land", "A"),
    ],
)
def test_replay_of_nonsense_is_exit_2_with_the_line(action: Action, tmp_path: Path) -> None:
    trace(tmp_path, action)
    done = startonce("replay", "t.trace.json", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "t.trace.json, line 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_sql_prints_every_statement_and_it_runs(tmp_path: Path) -> None:
    done = startonce("sql", cwd=tmp_path)
    connection = sqlite3.connect(":memory:")
    for statement in ALL:
        assert statement.sql in done.stdout
        if statement.name.startswith("create"):
            connection.execute(statement.sql)
    for statement in ALL:
        connection.execute(f"EXPLAIN {statement.sql}", [None] * statement.sql.count("?"))


def test_clauses_are_printed(tmp_path: Path) -> None:
    done = startonce("clauses", cwd=tmp_path)
    assert len(done.stdout.splitlines()) == 59


def test_draw_writes_the_pictures(tmp_path: Path) -> None:
    done = startonce("draw", "lifecycle", "--format", "svg", "--out", "pictures", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "pictures" / "lifecycle.svg").read_text("utf-8").startswith("<")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("--unknowns", "1"), 0, "explored   204 states"),
        (("--unknowns", "1", "--without", "CLM-6"), 1, "one holder: violated, the shortest trace has 6"),
        (("--without", "STA-9"), 2, "CLM-6, REL-3, REL-4"),
        (("--without", "REL-4"), 0, "--without REL-4 --callers 3 --unknowns 1 --flips 2"),
        (("--crashes", "-1"), 2, "from 0 to 9"),
        (("--callers", "0"), 2, "from 1 to 9"),
        (("--lock", "transient", "--frees", "1"), 2, "need a durable lock"),
        (("--lock", "wood"), 2, "transient, durable, or both"),
        (("--callers", "3", "--late", "2", "--max-memory", "80"), 3, "NOT WHOLE"),
    ],
)
def test_explore_says_what_it_found_and_how_far_it_came(
    args: tuple[str, ...], code: int, says: str, tmp_path: Path
) -> None:
    done = startonce("explore", *args, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout + done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_explore_writes_json(tmp_path: Path) -> None:
    done = startonce("explore", "--lock", "both", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0
    scopes = json.loads((tmp_path / "out.json").read_text("utf-8"))["scopes"]
    assert [scope["states"] for scope in scopes] == [90, 72]


def test_explore_shows_every_hazard(tmp_path: Path) -> None:
    done = startonce("explore", "--hazards", cwd=tmp_path)
    assert done.returncode == 0
    for number in range(1, 10):
        assert f"\nH{number}  " in "\n" + done.stdout
    assert "NOT AS DOCUMENTED" not in done.stdout


def test_a_public_bug_report_is_played_again(tmp_path: Path) -> None:
    done = startonce("replay", "--reported", "B13", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "B13: answered as it must be" in done.stdout
    unknown = startonce("replay", "--reported", "B99", cwd=tmp_path)
    assert unknown.returncode == 2
    neither = startonce("replay", cwd=tmp_path)
    assert neither.returncode == 2


def test_one_hazard_is_shown(tmp_path: Path) -> None:
    done = startonce("explore", "--hazard", "H6", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("H6  ") == 2
    assert "H7" not in done.stdout
    assert startonce("explore", "--hazard", "H99", cwd=tmp_path).returncode == 2


def test_the_clauses_are_written_with_where_each_one_stands(tmp_path: Path) -> None:
    done = startonce("clauses", "--json", "clauses.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    traced = json.loads((tmp_path / "clauses.json").read_text("utf-8"))["clauses"]
    assert [one["clause"] for one in traced] == list(CLAUSES)
    assert all(one["model"] and one["checks"] and one["mutants"] and one["pictures"] for one in traced)
