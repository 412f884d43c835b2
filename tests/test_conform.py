"""`startonce conform` from end to end: real adapters, exit codes, and what is left behind to look at."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from adapters import OURS, command, example
from junitparser import JUnitXml

from startonce.oracle import jsonlines, tracefile

QUICK = ("--quick", "--timeout", "20")


def startonce(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "startonce", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=180,
        check=False,
    )


def mutant(name: str) -> list[str]:
    return [*OURS, "--mutant", name]


def test_the_adapter_of_the_page_conforms_in_all_that_it_has(tmp_path: Path) -> None:
    done = startonce("conform", *QUICK, "--", *command(example()), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "example 1.0 · Python · SQLite" in done.stdout
    assert " 0 violated" in done.stdout
    assert "not checked  FRE-1, FRE-2, FRE-3, FRE-4: the subject has no free" in done.stdout
    assert "2,100 edges  100% executed" in done.stdout


def test_what_was_required_and_not_checked_is_exit_3(tmp_path: Path) -> None:
    done = startonce("conform", *QUICK, "--require", "FRE-1", "--", *command(example()), cwd=tmp_path)
    assert done.returncode == 3


@pytest.mark.long
def test_a_broken_store_is_explained_saved_and_repeated(tmp_path: Path) -> None:
    adapter = mutant("claim without the run id")
    done = startonce(
        "conform", *QUICK, "--json", "r.jsonl", "--junit", "r.xml", "--", *adapter, cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    assert "CLM-4 violated   a row rewritten underneath the caller is not claimed" in done.stdout
    assert f"startonce replay CLM-4.trace.json -- {shlex.join(adapter)}" in done.stdout
    assert (tmp_path / "CLM-4.svg").read_text("utf-8").startswith("<?xml")
    vector = json.loads((tmp_path / "CLM-4.vector.json").read_text("utf-8"))
    assert "CLM-4" in vector["clauses"]
    _, actions, last = tracefile.load(tmp_path / "CLM-4.trace.json")
    assert len(actions) == 2
    assert last["violates"][0] == "CLM-4"

    again = startonce("replay", "CLM-4.trace.json", "--", *adapter, cwd=tmp_path)
    assert again.returncode == 1
    assert "CLM-4" in again.stdout
    mended = startonce("replay", "CLM-4.trace.json", "--", *OURS, cwd=tmp_path)
    assert mended.returncode == 0
    assert "agrees with the model in all 2 steps" in mended.stdout

    lines = jsonlines.load(tmp_path / "r.jsonl")
    assert lines.end["exit"] == 1
    cases = {
        case.name.split()[0]: case for suite in JUnitXml.fromfile(str(tmp_path / "r.xml")) for case in suite
    }
    assert cases["CLM-4"].result[0]._tag == "failure"
    assert cases["STA-9"].result[0]._tag == "error"


@pytest.mark.long
def test_a_race_between_statements_of_its_own_is_found_and_repeated(tmp_path: Path) -> None:
    adapter = mutant("claim by read, then update")
    done = startonce("conform", *QUICK, "--", *adapter, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "claim k1 r1: read" in done.stdout
    assert "found by  interleavings" in done.stdout
    again = startonce("replay", "CLM-2.trace.json", "--", *adapter, cwd=tmp_path)
    assert again.returncode == 1, again.stdout + again.stderr


@pytest.mark.long
def test_a_known_failure_does_not_fail_until_it_passes_again(tmp_path: Path) -> None:
    known = {"startonce": "baseline", "version": 1, "known": [{"id": "RUN-2", "reason": "next release"}]}
    (tmp_path / "known.json").write_text(json.dumps(known), "utf-8")
    words = ("conform", *QUICK, "--baseline", "known.json", "--")
    done = startonce(*words, *mutant("for_runs cut at the limit"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "RUN-2 is a known failure in known.json: next release" in done.stdout
    again = startonce(*words, *OURS, cwd=tmp_path)
    assert again.returncode == 1
    assert "RUN-2 holds again: strike it from known.json" in again.stdout


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "name one: a command after --"),
        (("--attach", "127.0.0.1:1", "--", "true"), 2, "name one"),
        (("--require", "CLM-99", "--", "true"), 2, "there is no clause"),
        (("--", "/no/such/adapter"), 4, "cannot be started"),
        (("--", "true"), 4, "the adapter"),
        (("--attach", "127.0.0.1:1"), 4, "nothing answers at 127.0.0.1, port 1"),
        (("--attach", "example.org:80"), 4, "this machine"),
        (("--baseline", "none.json", "--", "true"), 2, "none.json cannot be read"),
    ],
)
def test_how_it_can_be_called_wrongly(words: tuple[str, ...], code: int, says: str, tmp_path: Path) -> None:
    done = startonce("conform", *words, cwd=tmp_path)
    said = " ".join(done.stderr.replace("│", " ").split())
    assert (done.returncode, says in said) == (code, True), done.stderr


def test_an_adapter_that_hangs_is_said_to_hang_and_ended(tmp_path: Path) -> None:
    hangs = example().replace("def dump(request):", "def dump(request):\n    import time; time.sleep(60)")
    done = startonce("conform", "--timeout", "0.3", "--", *command(hangs), cwd=tmp_path)
    assert done.returncode == 4
    assert "the adapter stopped answering" in done.stderr


def test_an_adapter_that_does_not_show_what_was_put_is_said_to_be_the_adapter(tmp_path: Path) -> None:
    forgetful = example().replace("db.executemany(", "db.executemany if True else (")
    done = startonce("conform", *QUICK, "--", *command(forgetful), cwd=tmp_path)
    assert done.returncode == 4
    assert "after put(" in done.stderr
