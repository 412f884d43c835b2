"""What is right: the protocol as pure functions over immutable values. Standard library only."""

if __name__ != "startonce.model":
    raise ImportError(
        "import startonce.model, not model: under a second name every class here would exist twice"
    )
