"""Pictures for design reviews, drawn from the model's own tables and never by hand."""

if __name__ != "startonce.draw":
    raise ImportError("import startonce.draw, not draw")
