"""What runs: the same protocol in SQL, over real databases."""

if __name__ != "startonce.impl":
    raise ImportError("import startonce.impl, not impl")
