"""The failures of the protocol, each a small class. The value in question is always shown safely."""


def shown(value: object, limit: int = 60) -> str:
    """Show a value as one line of at most `limit` characters of ASCII, whatever it is."""
    if type(value) is int and value.bit_length() > 200:
        return f"<an int of {value.bit_length()} bits>"
    try:
        out = ascii(value[: limit + 1] if isinstance(value, str | bytes) else value)
    except Exception:
        out = f"<a {name_of(value)}>"
    out = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in out)
    return out if len(out) <= limit else out[: limit - 3] + "..."


def name_of(value: object) -> str:
    """Name the type of a value in ASCII."""
    return ascii(type(value).__name__)[1:-1][:60]


def _rebuilt(kind: "type[StartOnceError]", args: tuple[object, ...], state: dict[str, object]) -> object:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class StartOnceError(Exception):
    """Base of every error that this project raises."""

    def __reduce__(self) -> tuple[object, ...]:
        """Let an error travel between processes."""
        return _rebuilt, (type(self), self.args, self.__dict__)


class InvalidValue(StartOnceError, ValueError):
    """A key or a run id outside the alphabet or length of the input rules (IN-1); no SQL was sent."""

    def __init__(self, what: str, value: object, why: str) -> None:
        super().__init__(f"{what} {shown(value)} is invalid: {why}")
        self.what = what
        self.value = value


class TooManyRuns(StartOnceError, ValueError):
    """More run ids than the database binds in one statement (RUN-2); no SQL was sent."""

    def __init__(self, count: int, limit: int) -> None:
        super().__init__(
            f"{count} run ids in one statement, this database binds at most {limit}: "
            "send them in chunks (`Reservations.for_many_runs` does)"
        )
        self.count = count
        self.limit = limit


class NotApplied(StartOnceError):
    """A statement that certainly changed nothing: busy, read-only, refused. It may be sent again."""

    def __init__(self, statement: str, why: str) -> None:
        super().__init__(f"{statement}: certainly not applied: {why}")
        self.statement = statement
        self.why = why


class ValueRefused(NotApplied):
    """The schema refused a value (RSV-7): a constraint other than the key's uniqueness."""


class UnknownOutcome(StartOnceError):
    """A statement whose reply was lost: applied, not applied, or applied later (CLM-6)."""

    def __init__(self, statement: str, why: str) -> None:
        super().__init__(f"{statement}: outcome unknown: {why}")
        self.statement = statement
        self.why = why


class Unreadable(StartOnceError):
    """A read that failed. It says nothing about what is there, least of all that nothing is."""

    def __init__(self, statement: str, why: str) -> None:
        super().__init__(f"{statement}: cannot be read: {why}")
        self.statement = statement
        self.why = why


class MalformedRow(Unreadable):
    """A row that is not a reservation, or a table of our name that is not ours (RD-3)."""


class ForeignTable(NotApplied, Unreadable):
    """A table of our name that is not ours: nothing was read from it, nothing written to it."""

    def __init__(self, statement: str, why: str) -> None:
        StartOnceError.__init__(
            self,
            f"{statement}: a table of our name is not one of ours ({why}): "
            "compare it with what `startonce sql` prints",
        )
        self.statement = statement
        self.why = why


class Vanished(StartOnceError):
    """The read-back of a reserve found no row (RSV-5): reserve again, under a fresh run id."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the row of key {shown(key)} is gone: reserve again with a fresh run id")
        self.key = key


class TableMissing(StartOnceError):
    """A table of ours that does not exist. Operations turn it into their answer; callers never see it."""

    def __init__(self, table: str) -> None:
        super().__init__(f"no table {table}")
        self.table = table


class DatabaseUnusable(StartOnceError):
    """The database cannot be opened or is not one that this project can use."""


class ResultNotPersisted(StartOnceError):
    """The work was executed and its result could not be kept: nothing was settled.

    `result` is the JSON text that the lock of the run should hold; a person persists it and settles.
    """

    def __init__(self, run_id: str, result: str, why: str) -> None:
        super().__init__(f"run {shown(run_id)} was executed, its result is not persisted: {why}")
        self.run_id = run_id
        self.result = result
        self.why = why


class WorkFailed(StartOnceError):
    """The run was executed before and failed: the failure that was persisted, repeated."""

    def __init__(self, run_id: str, kind: str, message: str) -> None:
        super().__init__(f"run {shown(run_id)} failed with {kind}: {message}")
        self.run_id = run_id
        self.kind = kind
        self.message = message


class ResultNotStorable(StartOnceError):
    """The work returned a value that is no JSON: its effect has happened, so the run has failed."""
