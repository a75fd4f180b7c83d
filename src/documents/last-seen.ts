/**
 * What this host has seen committed: the last document of each series, and the latest events. Every host keeps this
 * outside the database, in RECKONER_HOME/last-seen, and compares it on each new connection. A standby that was behind
 * when it was promoted, a database that was set back to an earlier moment, a snapshot, and an old primary that comes
 * back lack something that a host has seen. Then the ledger is paused, as after a restore, so that no number is issued
 * twice. On another server or timeline that lacks nothing, as after a planned switchover, the ledger goes on. A host
 * without a memory cannot tell, so it pauses a ledger on a server that the ledger does not know.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { Look } from '#database/session';
import { Transaction, transactionOn } from '#database/transaction';
import { Refusal } from '#errors/refusals';
import { isSystemError, makeFolder, unless, writeWhole } from '#files';
import { pauseLedger } from '#people/pauses';
import { actingByItself } from '#people/users';
import { plural } from '#text';
import { EVENTS_KEPT, insertServer, Present, readMissing, readPresent, Seen } from './last-seen.sql.ts';

/** A process replaces only its own file, so no process can write an older memory over a newer one. */
const OWN = `${process.pid}-${Math.trunc(performance.timeOrigin)}.json`;

/** Compares the database with this host's memory, pauses the ledger if something is missing, and remembers the rest. */
export function lookingFrom(context: Readonly<{ environment: Environment; settings: Settings }>): Look {
  return (client) =>
    transactionOn(client, async (tx) => {
      const present = await readPresent(tx);
      // After a restore, `resume` asks what is missing. A standby is refused elsewhere.
      if (present.restored || present.timeline === null) return;
      const folder = join(context.environment.home, 'last-seen', present.installation_id);
      const { seen, files } = readMemory(folder);
      const reason = await whyPaused(tx, present, seen);
      if (reason !== undefined) {
        const actor = await actingByItself(tx, 'command');
        await pauseLedger(tx, { ...context, actor }, { reason, stateOf: present.state_of }).catch((error: unknown) => {
          // Another connection has just paused it.
          if (!(error instanceof Refusal && error.code === 'already_paused')) throw error;
        });
        return;
      }
      if (!present.known || seen === undefined) await insertServer(tx);
      const memory = JSON.stringify(together(seen, present));
      if (memory === JSON.stringify(seen)) return;
      await write(folder, memory, files).catch((error: unknown) => {
        // A full disk stops no work. `doctor` reports it.
        if (!isSystemError(error)) throw error;
      });
    });
}

async function write(folder: string, memory: string, files: readonly string[]) {
  await makeFolder(folder);
  await writeWhole(join(folder, OWN), memory, 'replace');
  // The new file contains what the others had.
  await Promise.all(files.filter((file) => file !== OWN).map((file) => rm(join(folder, file), { force: true })));
}

async function whyPaused(tx: Transaction, present: Present, seen: Seen | undefined) {
  if (seen === undefined) {
    if (present.known) return undefined;
    return `the database is on timeline ${present.timeline}, which is new to the ledger, and this host has no memory of it`;
  }
  if (seen.resumed > present.resumed) return 'this host has seen a resumption of the ledger that the database lacks';
  if (seen.resumed < present.resumed) return undefined;
  // Only what is not among the latest is searched for: mostly nothing.
  const [documents, events] = [without(seen.documents, present.documents), without(seen.events, present.events)];
  if (Object.keys({ ...documents, ...events }).length === 0) return undefined;
  const missing = await readMissing(tx, { documents, events });
  if (missing.length === 0) return undefined;
  const numbers = missing.flatMap(({ number }) => number ?? []);
  const lost = missing.length - numbers.length;
  const parts = [...numbers, ...(lost > 0 ? [plural(lost, 'event')] : [])];
  return `this host has seen ${parts.join(', ')} that the database lacks (timeline ${present.timeline})`;
}

function without<Value>(all: Readonly<Record<string, Value>>, known: Readonly<Record<string, Value>>) {
  const isNew = ([key, value]: [string, Value]) => JSON.stringify(known[key]) !== JSON.stringify(value);
  return Object.fromEntries(Object.entries(all).filter(isNew));
}

/** The memory of all processes of this host. What is being written or cannot be read does not count. */
function readMemory(folder: string) {
  const files = (readable(() => readdirSync(folder)) ?? []).filter((name) => name.endsWith('.json'));
  let seen: Seen | undefined;
  for (const file of files) {
    const read = readable(() => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Seen);
    if (read !== undefined) seen = together(seen, read);
  }
  return { seen, files };
}

/** Undefined if a file or folder was just removed, or is damaged. */
function readable<Result>(read: () => Result) {
  try {
    return read();
  } catch (error) {
    return error instanceof SyntaxError ? undefined : unless('ENOENT')(error);
  }
}

/** Both memories. What was seen before the later of two resumptions is forgotten. */
function together(one: Seen | undefined, other: Seen) {
  const { resumed, documents, events } = other;
  if (one === undefined || one.resumed < resumed) return { resumed, documents, events };
  if (one.resumed > resumed) return one;
  const last = { ...one.documents };
  for (const [series, document] of Object.entries(documents)) {
    if (document.sequence >= (last[series]?.sequence ?? 0)) last[series] = document;
  }
  const latest = Object.entries({ ...one.events, ...events }).sort(([a], [b]) => Number(b) - Number(a));
  return {
    resumed,
    documents: last,
    events: Object.fromEntries(latest.slice(0, EVENTS_KEPT)),
  };
}
