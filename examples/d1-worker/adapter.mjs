// The adapter: bundles the Worker, starts it on a real D1, and carries the oracle's lines to it and back.

import { existsSync } from "node:fs";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";

// D1 waits until each write is on the disk. The database is thrown away: a folder in memory is faster.
if (!process.env.TMPDIR && existsSync("/dev/shm")) process.env.TMPDIR = "/dev/shm";

const entry = fileURLToPath(new URL("src/adapter/worker.ts", import.meta.url));
const options = { bundle: true, format: "esm", target: "es2022", write: false };
const bundle = await build({ entryPoints: [entry], ...options });

const miniflare = new Miniflare({
  modules: [{ type: "ESModule", path: "worker.js", contents: bundle.outputFiles[0].text }],
  cf: false, // nothing is fetched
  compatibilityDate: "2026-01-01",
  d1Databases: ["DB", "REPLICA"],
  handleRuntimeStdio: (_out, err) => err.pipe(process.stderr), // standard output is for responses alone
});

const upgrade = { headers: { upgrade: "websocket" } };
const { webSocket } = await miniflare.dispatchFetch("http://worker/", upgrade);
let unanswered = 0;
let ended = false;

async function end() {
  if (ended && unanswered === 0) await miniflare.dispose();
}

webSocket.accept();
webSocket.addEventListener("close", () => {
  if (unanswered) process.exit(1);
});
webSocket.addEventListener("message", ({ data }) => {
  process.stdout.write(`${data}\n`);
  unanswered -= 1;
  void end();
});

for await (const line of readline.createInterface({ input: process.stdin })) {
  unanswered += 1;
  webSocket.send(line);
}
ended = true;
await end();
