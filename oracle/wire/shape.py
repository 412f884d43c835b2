"""What a line holds, and what the schema says of it where it does not fit."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from startonce.oracle.wire.misbehaviour import plain


def _whole(text: str) -> float:
    """Read a number with a point or an exponent; with nothing behind the point it is an integer."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


_decode = json.JSONDecoder(parse_float=_whole, parse_constant=_no_number).decode


def decoded(line: bytes) -> Any:
    """Return the JSON value of a line. Raises `ValueError` or `RecursionError` where it is none."""
    return _decode(line.decode("utf-8"))


@cache
def schema() -> dict[str, Any]:
    """Return the definitions of the schema."""
    text = files("startonce.oracle.wire").joinpath("wire.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)["$defs"]
    return found


@cache
def validator(name: str) -> Draft202012Validator:
    """Return the validator of one definition."""
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema()})


def definition(do: str, operation: str, response: Any) -> str:
    """Name the definition that the response to a request has to fit."""
    if do in ("call", "begin", "step"):
        held = do != "call" and isinstance(response, dict) and "at" in response
        return "held_response" if held else f"{operation}_response"
    named = {"dump": "dump_response", "hello": "hello_response", "race": "many_response"}
    return named.get(do, "done_response")


def complaint(name: str, response: object) -> str:
    """Say what is wrong with a response that does not fit a definition of the schema, if it does not."""
    worst = best_match(validator(name).iter_errors(response))
    if worst is None:
        return ""
    where = "/".join(map(str, worst.absolute_path))
    said = worst.message
    if worst.validator == "additionalProperties":
        more = sorted(name for name in worst.instance if name not in worst.schema["properties"])
        said = f"there is no member {', '.join(more)}; one of your own begins with x-"
    elif worst.validator == "oneOf":
        said = f"{worst.instance} has to have {schema()[name]['description']}"
    said = plain(said, 240)
    return f"{plain(where, 60)}: {said}" if where else said
