<?php

// Lets `startonce conform -- php adapter.php` hold the store against the model: docs/oracle-protocol.md.

declare(strict_types=1);

ini_set('display_errors', 'stderr');
require __DIR__ . '/Store.php';

final class Adapter
{
    private readonly PDO $db;
    private readonly Store $store;
    private int $now = 0;

    public function __construct()
    {
        $this->db = new PDO('sqlite::memory:');
        $this->store = new Store($this->db, fn (): int => $this->now);
    }

    public function respond(array $request): array
    {
        try {
            return match ($request['do']) {
                'hello' => $this->hello(),
                'put', 'reset' => $this->put($request['rows'] ?? null),
                'dump' => ['rows' => $this->dump()],
                'call' => $this->call($request),
                'many' => ['of' => array_map($this->respond(...), $request['of'])],
            };
        } catch (Throwable $error) {
            return ['failed' => (string) $error];
        }
    }

    private function hello(): array
    {
        return [
            'protocol' => 1,
            'implementation' => 'php-sqlite example',
            'language' => 'PHP ' . PHP_VERSION,
            'version' => '1.0.0',
            'homepage' => '',
            'database' => 'SQLite ' . $this->db->query('SELECT sqlite_version()')->fetchColumn(),
            'capabilities' => ['for_runs', 'purge', 'absent', 'clock'],
            'parameter_limit' => Store::MAX_RUNS,
        ];
    }

    private function put(?array $rows): array
    {
        $this->db->exec('DROP TABLE IF EXISTS reservations');
        if ($rows !== null) {
            $this->db->exec('CREATE TABLE reservations (key TEXT PRIMARY KEY NOT NULL, run_id TEXT NOT NULL,
                state TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL)');
            $insert = $this->db->prepare('INSERT INTO reservations VALUES (?, ?, ?, ?, ?)');
            array_map($insert->execute(...), $rows);
        }
        return ['done' => true];
    }

    private function dump(): ?array
    {
        $there = $this->db->query("SELECT 1 FROM sqlite_master WHERE name = 'reservations'")->fetchColumn();
        return $there ? $this->db->query('SELECT * FROM reservations')->fetchAll(PDO::FETCH_NUM) : null;
    }

    private function call(array $request): array
    {
        ['operation' => $operation, 'args' => $args, 'now' => $this->now] = $request;
        try {
            return ['answer' => match ($operation) {
                'reserve' => self::reserved(...$this->store->reserve(...$args)),
                'claim' => $this->store->claim(...$args),
                'release' => $this->store->release(...$args),
                'settle' => $this->store->settle(...$args),
                'read' => self::row($this->store->read(...$args)),
                'for_runs' => array_map(self::row(...), $this->store->forRuns(...$args)),
                'purge' => $this->store->purge(...$args),
            }];
        } catch (StoreException $error) {
            return ['error' => $error->failure->value];
        } catch (InvalidArgumentException | TypeError) { // what is no string is no key to PHP itself
            return ['error' => 'invalid'];
        } catch (Throwable $error) {
            return ['error' => "other: $error"];
        }
    }

    private static function reserved(Reservation $row, bool $created): array
    {
        return ['row' => self::row($row), 'created' => $created];
    }

    private static function row(?Reservation $row): ?array
    {
        return $row ? [$row->key, $row->runId, $row->state->value, $row->createdAt, $row->updatedAt] : null;
    }
}

$adapter = new Adapter();
while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
    $response = ['id' => $request['id']] + $adapter->respond($request);
    fwrite(STDOUT, json_encode($response, JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE) . "\n");
}
