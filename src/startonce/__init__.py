"""startonce: start reservations, as a model, as SQL, and as an oracle that holds one to the other."""

from pathlib import Path as _Path

# A ZIP download or a checkout on Windows turns the links to the top-level folders into text files.
if (_Path(__file__).parent / "model").is_file():
    raise ImportError(
        "startonce: src/startonce/model is a text file where a link should be; "
        "clone with git and `git config core.symlinks true`, or install the wheel"
    )

__version__ = "0.1.0"
