"""Generates the conformance vectors: `python -m startonce.vectors vectors` writes them and their schema."""

import json
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from startonce.model.operations import PROGRAMS
from startonce.oracle.vector_traces import VECTORS
from startonce.oracle.vectors import text, to_json
from startonce.oracle.wire import shape

OF_THE_WIRE = ("time", "row", "lock", "entry", "rows", "locks", "fence", "error", "stopped")
"""Definitions that vectors share with the wire, beside the answers."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema of vectors, with what they share with the wire in it."""
    own: dict[str, Any] = json.loads(
        files("startonce.oracle").joinpath("vectors.schema.json").read_text("utf-8")
    )
    wire = shape.schema()
    answers = {f"{name}_answer": wire[f"{name}_response"]["properties"]["answer"] for name in PROGRAMS}
    answered = [
        {
            "if": {"required": ["operation"], "properties": {"operation": {"const": name}}},
            "then": {"properties": {"answer": {"$ref": f"#/$defs/{name}_answer"}}},
        }
        for name in PROGRAMS
    ]
    shared = {name: wire[name] for name in OF_THE_WIRE}
    more = {"operation": {"enum": list(PROGRAMS)}, "answered": {"allOf": answered}}
    return {**own, "$defs": {**own["$defs"], **more, **shared, **answers}}


def generated() -> Mapping[str, str]:
    """Return the text of every file by its name."""
    found = {f"{name}.json": text(map(to_json, vectors())) for name, vectors in VECTORS.items()}
    return {**found, "schema.json": json.dumps(schema(), indent=1) + "\n"}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, content in generated().items():
        (folder / name).write_text(content, "utf-8")
