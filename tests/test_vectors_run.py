"""Whoever plays the vectors is told what is wrong: our own store, broken ones, and the loops of the page."""

import json
import re
import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest
from adapters import command, example
from vectored import (
    FILES,
    PAGE,
    committed,
    played,
)

from startonce.oracle.mutants import STORES
from startonce.oracle.wire.words import CORE
from startonce.own import SqlSubject


@pytest.mark.parametrize("where", ["memory", "file"])
def test_our_own_store_answers_what_the_files_say(where: str, tmp_path: Path) -> None:
    subject = SqlSubject(":memory:" if where == "memory" else tmp_path / "a.db")
    amiss = {(step["operation"], step["case"]) for _, step in played(committed(), subject)}
    assert amiss == set()
    subject.close()


BLIND = {
    "RSV-5": "a row goes between the two statements of a reserve",
    "FRE-1": "a row is rewritten between two statements of a free",
    "CLM-6": "a reply is lost",
    "RSV-7": "the schema refuses a value",
    "RD-2": "the schema is spoiled",
    "RD-3": "the schema is spoiled",
    "RUN-2": "more run ids than the database takes",
}
"""Clauses of which some broken implementation is not seen, and what would have to happen."""


def test_broken_stores_fail_in_the_vectors_unless_more_than_one_caller_alone_is_needed() -> None:
    unseen, told = [], []
    for name, mutant in STORES.items():
        subject = mutant.subject()
        wrong = (one for _, one in played(committed(), subject))
        first = list(islice(wrong, 20))
        subject.close()
        if not first:
            unseen.append(name)
        told += [name] if any(mutant.clause in step["clauses"] for step in first) else []
    assert {STORES[name].clause for name in unseen} <= set(BLIND), unseen
    assert len(STORES) - len(unseen) >= 0.85 * len(STORES)
    assert len(told) >= 0.8 * len(STORES)


# --- the page ---


def block(name: str) -> str:
    """The code in the page behind a mark."""
    return PAGE.split(f"<!-- {name} -->\n```")[1].split("\n", 1)[1].split("```")[0]


def looped(store: str) -> subprocess.CompletedProcess[str]:
    """The loop of the page behind a store, over all files."""
    done = [*command(store + block("loop")), *map(str, FILES)]
    return subprocess.run(done, capture_output=True, text=True, timeout=60, check=False)


def plain_store() -> str:
    """The store of the protocol's page, with the functions of its adapter and without its own loop."""
    store, loop = example().split("for line in sys.stdin:")
    assert "respond(request)" in loop
    return store


def test_the_loop_in_the_page_runs_the_vectors_on_a_plain_store() -> None:
    done = looped(plain_store())
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[-1].startswith("0 vectors failed; steps NOT CHECKED: {'purge': ")
    unchecked = [line.split()[0] for line in lines[:-1]]
    assert unchecked == [one["id"] for one in committed() if not set(one["needs"]) <= CORE | {"absent"}]
    assert all(" NOT CHECKED, there is no " in line for line in lines[:-1])
    assert len(unchecked) < len(committed())


BREAKAGES = [
    ("AND run = ? AND", "AND ? <> '' AND", "claim", "CLM-4"),
    ("bool(inserted) and row[1] == run", "True", "reserve", "RSV-4"),
    ("state = 'terminal', moved = ? WHERE run = ?", "state = 'terminal', moved = ? + 1 WHERE run = ?", "settle", "SET-1"),
    ("state <> 'terminal'", "1", "settle", "SET-2"),
    ("rowcount == 1", "rowcount", "claim", "CLM-3"),
    ("{1,200}", "{1,201}", "reserve", "IN-1"),
    ("[A-Za-z0-9._~-]{1,200}", "[A-Za-z0-9._~-]{1,200}\\n?", "reserve", "IN-1"),
    ("key TEXT PRIMARY KEY", "key TEXT COLLATE NOCASE PRIMARY KEY", "reserve", "IN-2"),
    ('"claim": False', '"claim": None', "claim", "CLM-5"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "operation", "clause"), BREAKAGES)
def test_the_loop_in_the_page_names_what_a_broken_store_does(
    old: str, new: str, operation: str, clause: str
) -> None:
    store = plain_store()
    assert old in store
    done = looped(store.replace(old, new))
    assert done.returncode == 1, done.stdout
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if " step " in line)
    found = re.fullmatch(r"(\S+) step (\d+): (\w+) (\[.*\]) at \d+", lines[at])
    assert found is not None
    (vector,) = (one for one in committed() if one["id"] == found[1])
    step = vector["steps"][int(found[2]) - 1]
    assert (step["operation"], json.dumps(step["args"])) == (found[3], found[4])
    assert found[3] == operation
    assert lines[at + 2] == f"  clauses  {' '.join(step['clauses'])}"
    assert clause in step["clauses"]


def test_what_the_page_shows_of_a_failure_is_what_is_told() -> None:
    told = looped(plain_store().replace("AND run = ? AND", "AND ? <> '' AND")).stdout
    assert told.startswith(block("told"))


JAVASCRIPT = """
import { readFileSync } from "node:fs";
let rows = null;
const find = (key, run) => (rows ?? []).find((row) => row[0] === key && (run === undefined || row[1] === run));
const move = (row, from, to, now) => {
  if (!row || row[2] !== from) return false;
  row[2] = to; row[4] = now;
  return true;
};
const operations = {
  reserve(now, key, run) {
    rows ??= [];
    const created = !find(key);
    if (created) rows.push([key, run, "reserved", now, now]);
    return { row: [...find(key)], created };
  },
  claim: (now, key, run) => move(find(key, run), "reserved", "started", now),
  release: (now, key, run) => move(find(key, run), "started", "reserved", now),
  settle(now, run) {
    const live = (rows ?? []).filter((row) => row[1] === run && row[2] !== "terminal");
    for (const row of live) move(row, row[2], "terminal", now);
    return live.length;
  },
  read: (now, key) => (find(key) ? [...find(key)] : null),
};
const good = (arg) => typeof arg === "string" && /^[A-Za-z0-9._~-]{1,200}$/.test(arg);
const store = {
  able: new Set([...Object.keys(operations), "absent"]),
  put: async (state) => { rows = structuredClone(state.rows); },
  dump: async () => ({ rows: structuredClone(rows) }),
  call: async ({ operation, args, now }) =>
    args.every(good) ? { answer: operations[operation](now, ...args) } : { error: "invalid" },
};
const leftOut = {};
for (const file of process.argv.slice(2))
  for (const vector of JSON.parse(readFileSync(file, "utf8")).vectors) {
    const told = await run(vector, store, leftOut);
    if (told) console.log(told);
  }
console.log(JSON.stringify(leftOut));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="NOT CHECKED: there is no node here")
@pytest.mark.parametrize(("old", "new", "clause"), [("", "", ""), ("row[1] === run)", "true)", "CLM-4")])
def test_the_loop_in_javascript_says_the_same(old: str, new: str, clause: str, tmp_path: Path) -> None:
    script = tmp_path / "run.mjs"
    script.write_text(block("loop in JavaScript") + JAVASCRIPT.replace(old, new), "utf-8")
    done = ["node", str(script), *map(str, FILES)]
    text = subprocess.run(done, capture_output=True, text=True, timeout=60, check=True).stdout
    lines = [line for line in text.splitlines() if "NOT CHECKED" not in line]
    python = looped(plain_store()).stdout.splitlines()
    assert [line for line in text.splitlines() if "NOT CHECKED" in line] == python[:-1]
    if not clause:
        assert f"steps NOT CHECKED: {json.loads(lines[0])}" in python[-1]
        assert len(lines) == 1
    else:
        assert re.match(r"reservations/edges step \d+: claim ", lines[0])
        assert clause in lines[2].split()
        assert [line.split()[:2] for line in lines[3:5]] == [["expected", "answer"], ["observed", "answer"]]
