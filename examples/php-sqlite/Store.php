<?php

declare(strict_types=1);

/** Start reservations on SQLite, for any PHP 8.1 with PDO: the core, `forRuns` and `purge`. */

enum State: string
{
    case Reserved = 'reserved';
    case Started = 'started';
    case Terminal = 'terminal';
}

/** Why the store could not do what it was asked. */
enum Failure: string
{
    /** The row was deleted between the insert and the read-back: reserve again, with a fresh run id. */
    case Vanished = 'vanished';
    /** Certainly nothing was changed; the operation may be repeated. */
    case NotApplied = 'not applied';
    /** Nobody can say whether it was changed. */
    case UnknownOutcome = 'unknown outcome';
    case Unreadable = 'unreadable';
    case ValueRefused = 'value refused';
    case TooManyRuns = 'too many runs';
}

final class StoreException extends RuntimeException
{
    public function __construct(public readonly Failure $failure, string $message, ?Throwable $cause = null)
    {
        parent::__construct($message, 0, $cause);
    }
}

final class Reservation
{
    public function __construct(
        public readonly string $key,
        public readonly string $runId,
        public readonly State $state,
        public readonly int $createdAt,
        public readonly int $updatedAt,
    ) {
    }

    /** @param array<string, mixed> $row as it was fetched */
    public static function fromRow(array $row): self
    {
        try {
            $state = State::from($row['state']);
            return new self($row['key'], $row['run_id'], $state, $row['created_at'], $row['updated_at']);
        } catch (TypeError | ValueError $error) {
            throw new StoreException(Failure::Unreadable, 'a malformed reservation was read', $error);
        }
    }
}

final class Store
{
    public const MAX_RUNS = 500;

    private const COLUMNS = 'key, run_id, state, created_at, updated_at';
    private const SCHEMA = <<<'SQL'
        CREATE TABLE IF NOT EXISTS reservations (
            key        TEXT PRIMARY KEY NOT NULL,
            run_id     TEXT NOT NULL,
            state      TEXT NOT NULL CHECK (state IN ('reserved', 'started', 'terminal')),
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL
        );
        CREATE INDEX IF NOT EXISTS reservations_by_run ON reservations (run_id);
        SQL;

    // Codes of SQLite.
    private const CONSTRAINT = 19;
    private const NOT_APPLIED = [
        5 => 'busy', 6 => 'locked', 8 => 'readonly', 13 => 'full', 14 => 'cantopen',
    ];

    /** @param Closure(): int $now milliseconds, UTC */
    public function __construct(private readonly PDO $db, private readonly Closure $now)
    {
        $db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
    }

    /**
     * Stores the run for a new key; a key that is there keeps the run it has.
     *
     * @return array{Reservation, bool} the row of the key, and whether this call made it
     */
    public function reserve(string $key, string $runId): array
    {
        self::check($key, $runId);
        // ON CONFLICT (key) and not OR IGNORE, which would swallow a failing CHECK or NOT NULL as well.
        $insert = "INSERT INTO reservations (" . self::COLUMNS . ")
            VALUES (:key, :run_id, 'reserved', :now, :now) ON CONFLICT (key) DO NOTHING";
        try {
            $this->db->exec(self::SCHEMA);
            $inserted = $this->write($insert, ['key' => $key, 'run_id' => $runId, 'now' => ($this->now)()]);
        } catch (PDOException $error) {
            throw $this->failedWrite($error);
        } catch (StoreException $error) {
            if ($error->failure !== Failure::UnknownOutcome) {
                throw $error;
            }
            $inserted = 0; // the read-back decides
        }
        $row = $this->read($key);
        if ($row === null) {
            throw new StoreException(Failure::Vanished, 'the row was deleted before it was read back');
        }
        return [$row, $inserted === 1 && $row->runId === $runId];
    }

    /** Wins the start of this run, for one caller of all; false: nothing changed. */
    public function claim(string $key, string $runId): bool
    {
        return $this->move($key, $runId, State::Reserved, State::Started);
    }

    /** Gives a claim back, if and only if the fence refused this very start. */
    public function release(string $key, string $runId): bool
    {
        return $this->move($key, $runId, State::Started, State::Reserved);
    }

    /** Ends every row of a run that is over; how many. */
    public function settle(string $runId): int
    {
        self::check($runId);
        $sql = "UPDATE reservations SET state = 'terminal', updated_at = :now
            WHERE run_id = :run_id AND state <> 'terminal'";
        return $this->write($sql, ['run_id' => $runId, 'now' => ($this->now)()]);
    }

    public function read(string $key): ?Reservation
    {
        self::check($key);
        $rows = $this->select('SELECT ' . self::COLUMNS . ' FROM reservations WHERE key = ?', [$key]);
        return $rows[0] ?? null;
    }

    /** @return list<Reservation> every row that names one of the runs, at most MAX_RUNS of them */
    public function forRuns(string ...$runIds): array
    {
        self::check(...$runIds);
        if ($runIds === []) {
            return [];
        }
        if (count($runIds) > self::MAX_RUNS) {
            throw new StoreException(Failure::TooManyRuns, 'at most ' . self::MAX_RUNS . ' runs at once');
        }
        $places = implode(', ', array_fill(0, count($runIds), '?'));
        $sql = 'SELECT ' . self::COLUMNS . " FROM reservations WHERE run_id IN ($places)";
        return $this->select($sql, $runIds);
    }

    /** Deletes rows that were settled before the horizon, oldest first; how many. */
    public function purge(int $horizon, int $limit): int
    {
        if ($limit < 1) {
            throw new InvalidArgumentException('the limit must be at least 1');
        }
        $sql = "DELETE FROM reservations WHERE key IN (
            SELECT key FROM reservations WHERE state = 'terminal' AND updated_at < :horizon
            ORDER BY updated_at, key LIMIT :limit)";
        return $this->write($sql, ['horizon' => $horizon, 'limit' => $limit]);
    }

    private function move(string $key, string $runId, State $from, State $to): bool
    {
        self::check($key, $runId);
        $sql = 'UPDATE reservations SET state = :to, updated_at = :now
            WHERE key = :key AND run_id = :run_id AND state = :from';
        $values = ['key' => $key, 'run_id' => $runId, 'from' => $from->value, 'to' => $to->value];
        return $this->write($sql, $values + ['now' => ($this->now)()]) === 1;
    }

    private static function check(string ...$ids): void
    {
        foreach ($ids as $id) {
            if (!preg_match('/\A[A-Za-z0-9._~-]{1,200}\z/', $id)) {
                throw new InvalidArgumentException('this is no key or run id');
            }
        }
    }

    /** @param array<string, string|int> $values */
    private function write(string $sql, array $values): int
    {
        try {
            return $this->execute($sql, $values)->rowCount();
        } catch (PDOException $error) {
            return self::tableIsMissing($error) ? 0 : throw $this->failedWrite($error);
        }
    }

    /**
     * @param list<string> $values
     * @return list<Reservation>
     */
    private function select(string $sql, array $values): array
    {
        try {
            $rows = $this->execute($sql, $values)->fetchAll(PDO::FETCH_ASSOC);
        } catch (PDOException $error) {
            if (self::tableIsMissing($error)) {
                return [];
            }
            throw new StoreException(Failure::Unreadable, $error->getMessage(), $error);
        }
        return array_map(Reservation::fromRow(...), $rows);
    }

    /** @param array<int|string, string|int> $values */
    private function execute(string $sql, array $values): PDOStatement
    {
        $statement = $this->db->prepare($sql);
        foreach ($values as $name => $value) {
            $place = is_int($name) ? $name + 1 : $name;
            $statement->bindValue($place, $value, is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR);
        }
        $statement->execute();
        return $statement;
    }

    /** Whether there is no table, and so no row. (One that is missing behind a view is named "main.x".) */
    private static function tableIsMissing(PDOException $error): bool
    {
        return ($error->errorInfo[2] ?? '') === 'no such table: reservations';
    }

    private function failedWrite(PDOException $error): StoreException
    {
        $code = ($error->errorInfo[1] ?? 0) & 0xff;
        $failure = match (true) {
            $code === self::CONSTRAINT => Failure::ValueRefused,
            isset(self::NOT_APPLIED[$code]) => Failure::NotApplied,
            str_starts_with($error->errorInfo[2] ?? '', 'no such table: ') => Failure::Unreadable,
            default => Failure::UnknownOutcome,
        };
        return new StoreException($failure, $error->getMessage(), $error);
    }
}
