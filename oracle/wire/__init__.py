"""The wire: an adapter in any language as a subject. `docs/oracle-protocol.md` is its protocol."""

from startonce.oracle.wire.adapter import OWN_STEPS, WireSubject

__all__ = ["OWN_STEPS", "WireSubject"]
