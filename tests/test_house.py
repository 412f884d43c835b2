"""The house stands: arrows point one way, every clause is judged or explained, documents are not stale."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_edges import HELD
from test_explore import PAIRS

from startonce.model.clauses import CLAUSES
from startonce.model.operations import CREATE, PROGRAMS, READS
from startonce.model.predicates import registered
from startonce.oracle.edges import BLAME, walk_statements
from startonce.oracle.ledger import Ledger
from startonce.oracle.mutants import STORES
from startonce.oracle.report import interleaving
from startonce.oracle.scopes import STATEMENTS
from startonce.oracle.shortest import shortest
from startonce.own import OURS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


OVER_OURS = tuple(str(ROOT / "oracle" / name) for name in ("broken", "mutants.py", "different"))
"""Subjects that are made out of our implementation: these alone of the oracle know it."""


def imports(folder: str) -> set[tuple[str, str, tuple[str, ...]]]:
    found = set()
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found.add((str(path), node.module, tuple(alias.name for alias in node.names)))
            elif isinstance(node, ast.Import):
                found |= {(str(path), alias.name, ()) for alias in node.names}
    return found


@pytest.mark.parametrize(
    ("folder", "may"),
    [
        ("model", {"model"}),
        ("impl", {"impl", "model"}),
        ("oracle", {"oracle", "model"}),
        ("checker", {"checker", "model"}),
        ("draw", {"draw", "model"}),
    ],
)
def test_the_arrows_point_one_way(folder: str, may: set[str]) -> None:
    for path, module, names in imports(folder):
        if module.split(".")[0] == "startonce" and not path.startswith(OVER_OURS):
            of = module.split(".")[1:2] or [names[0]]
            assert of[0] in may, f"{path} imports {module}"


def test_the_model_imports_the_standard_library_alone() -> None:
    for path, module, _ in imports("model"):
        top = module.split(".")[0]
        assert top == "startonce" or top in sys.stdlib_module_names, f"{path} imports {module}"


def test_the_implementation_takes_words_from_the_model_and_no_logic() -> None:
    """Or the two could agree by sharing a mistake."""
    for path, module, names in imports("impl"):
        if not module.startswith("startonce.model") or module == "startonce.model.errors":
            continue
        loaded = sys.modules[module]
        for name in names:
            thing = getattr(loaded, name)
            is_word = inspect.isclass(thing) or isinstance(thing, tuple)
            assert is_word, f"{path} imports {name} of {module}"


@pytest.mark.parametrize("folder", ["model", "impl", "oracle", "checker", "draw"])
def test_a_folder_is_not_imported_under_a_second_name(folder: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {folder}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"import startonce.{folder}, not {folder}" in done.stderr


def test_a_link_that_arrived_as_a_text_file_is_explained(tmp_path: Path) -> None:
    package = tmp_path / "startonce"
    package.mkdir()
    (package / "__init__.py").write_bytes((ROOT / "src/startonce/__init__.py").read_bytes())
    (package / "model").write_text("../../model")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import startonce"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)
    assert "text file where a link should be" in done.stderr


def test_every_predicate_is_of_a_clause() -> None:
    assert registered() <= set(CLAUSES)
    assert set(BLAME.values()) <= set(CLAUSES)


def test_every_operation_of_the_model_is_ours_too() -> None:
    assert set(OURS) == set(PROGRAMS)
    statements = {name for program in PROGRAMS.values() for name in program.statements}
    assert statements >= READS
    assert set(CREATE) == {name for program in PROGRAMS.values() for name in program.creates}


def divergence_example() -> str:
    subject = STORES["claim without the run id"].subject()
    ledger = Ledger()
    walk_statements(subject, ledger, STATEMENTS[:1])
    found = shortest(subject, ledger.divergences["CLM-4"], "CLM-4")
    lines = [f"CLM-4 violated   {CLAUSES['CLM-4'].sentence}", "", *interleaving(found)]
    return "\n".join(line.rstrip() for line in lines)


def test_the_divergence_in_the_readme_is_the_one_that_is_found() -> None:
    block = re.search(r"<!-- divergence -->\n```\n(.*?)```", README, re.DOTALL)
    assert block is not None
    assert block[1].strip() == divergence_example().strip()


def test_every_link_in_the_documents_leads_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_counts_in_the_readme_are_those_that_are_pinned() -> None:
    assert f"{sum(one.edges for one in HELD):,} edges" in README
    assert f"{sum(PAIRS.values()):,} states" in README
