"""`python -m startonce` is the `startonce` command."""

from startonce.cli import main

main()
