"""One module per database: run one statement, report its rows, name its errors."""
