"""Asks whether the model itself is right."""

if __name__ != "startonce.checker":
    raise ImportError("import startonce.checker, not checker")
