"""What a statement of a start is told, in a few words. The replies themselves come from executing it."""

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from startonce.model.world import CANCEL, FREE, Lock, Row

WORDS: Mapping[str, tuple[str, str]] = {
    "claim": ("won", "lost"),
    "fence": ("closed", "open"),
    "release": ("released", "not released"),
    "take": ("taken", "not free"),
    "holder": ("mine", "not mine"),
    "persist": ("kept", "not kept"),
    "read ended": ("ended", "not ended"),
}
"""What True and False mean, for each statement that answers so."""


def letter(who: int) -> str:
    """Name a process by its number."""
    return ascii_uppercase[who] if who < len(ascii_uppercase) else f"P{who}"


def run_name(run: int) -> str:
    """Name a run by its number."""
    return f"r{run + 1}"


def lock_text(lock: Lock | None) -> str:
    """Say who has a lock."""
    if lock is None:
        return "not held"
    if lock.holder in (CANCEL, FREE):
        return f"held by a {'cancel' if lock.holder == CANCEL else 'free'}"
    return "ended" if lock.ended else f"held by {letter(lock.holder // 100)}"


def row_text(row: Row | None) -> str:
    """Say what the row of a key says."""
    return "no row" if row is None else f"{run_name(row.run)} {row.state}"


def reply_text(statement: str, reply: Any) -> str:
    """Say what a statement was told; nothing where it is told nothing."""
    match reply:
        case None:
            return "no row" if statement == "read back" else ""
        case bool():
            return WORDS[statement][not reply]
        case Row():
            return row_text(reply)
        case Lock():
            return lock_text(reply)
        case (row, lock):
            return row_text(row) if lock is None else f"{row_text(row)}, lock {lock_text(lock)}"
    raise TypeError(f"no words for {reply!r} of {statement}")
