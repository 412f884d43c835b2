"""The input rules: what is a key, a run id, and every other argument (IN-1).

Values are compared byte for byte: no trimming, no folding, no normalization.
"""

from collections.abc import Callable, Mapping
from string import ascii_letters, digits
from typing import Any

from startonce.model.operations import PROGRAMS, Call
from startonce.model.reservation import HOLDER_WORDS

ALPHABET = frozenset(ascii_letters + digits + "._~-")


def is_id(value: object) -> bool:
    """Say whether a value is a key or a run id: 1 to 200 of A-Z a-z 0-9 . _ ~ -, and nothing else."""
    return isinstance(value, str) and 1 <= len(value) <= 200 and set(value) <= ALPHABET


RULES: Mapping[str, Callable[[Any], bool]] = {
    "key": is_id,
    "run_id": is_id,
    "holder": lambda value: is_id(value) and value not in HOLDER_WORDS,
    "result": lambda value: isinstance(value, str),
    "horizon": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "limit": lambda value: type(value) is int and 1 <= value < 2**63,
    "after": lambda value: (
        value is None or (isinstance(value, tuple) and len(value) == 2 and all(map(is_id, value)))
    ),
}
"""What each argument must be."""


def admissible(call: Call) -> bool:
    """Say whether the arguments of a call are such as the input rules allow (IN-1)."""
    names = PROGRAMS[call.operation].arguments
    if names == ("run_ids",):
        return all(is_id(run_id) for run_id in call.args)
    return len(names) == len(call.args) and all(
        RULES[name](value) for name, value in zip(names, call.args, strict=True)
    )
