"""Broken implementations, each breaking one clause in a way that somebody really got wrong."""
