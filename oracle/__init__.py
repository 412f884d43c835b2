"""Holds any implementation against the model. Knows what it tests by `subject.py` alone."""

if __name__ != "startonce.oracle":
    raise ImportError("import startonce.oracle, not oracle")
