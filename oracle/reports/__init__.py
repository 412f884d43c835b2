"""Public bug reports as data, by subject; `startonce.oracle.reported` holds them all."""
