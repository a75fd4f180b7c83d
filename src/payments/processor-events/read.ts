/** Reads the processor's events from an NDJSON file. Refusals: processor_events_invalid, file_items_too_many. */
import { DateTime } from 'luxon';
import { z } from 'zod';
import { FieldProblem, reasonOf, refuse } from '#errors/refusals';
import { parseExactJsonOfOthers } from '#json';
import { GivenFile, readerOf } from '#reading/aside';
import { linesOf, readUntilTold } from '#reading/limits';
import { StorableEvent } from './event.ts';

const eventSchema = z.object({
  id: z.string().min(1).max(255),
  object: z.literal('event'),
  type: z.string().min(1).max(255),
  created: z.string().regex(/^\d{1,12}$/, 'must be seconds since 1970'),
  livemode: z.boolean(),
  account: z.string().min(1).max(255).nullish(),
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
});

/** Most events name no account. */
export type ReadEvent = Omit<StorableEvent, 'account'> &
  Readonly<{
    line: number;
    account: string | null | undefined;
  }>;

export const eventFile = readerOf(import.meta.url, 'eventFile', ({ name, bytes, now }: GivenFile & { now: number }) =>
  readEvents(name, Buffer.from(bytes).toString('utf8'), now),
);

/** `now` is a time in milliseconds since 1970. */
export function readEvents(file: string, text: string, now: number): ReadEvent[] {
  const problems: FieldProblem[] = [];
  const latest = DateTime.fromMillis(now, { zone: 'utc' }).plus({ days: 1 });
  const events = readUntilTold(linesOf(file, storable(text)), problems, (line) => {
    const event = readLine(line.text, latest);
    if (!('reason' in event)) return { ...event, line: line.number };
    problems.push({ path: `line ${line.number}`, reason: event.reason });
    return undefined;
  });
  if (problems.length > 0) throw refuse('processor_events_invalid', { file, problems });
  return events;
}

const THIN =
  'is a thin event, which only states that something changed: replace the endpoint with one that sends snapshot payloads';

function readLine(line: string, latest: DateTime) {
  let json: unknown;
  try {
    json = parseExactJsonOfOthers(line);
  } catch (error) {
    return { reason: `is not JSON: ${reasonOf(error)}` };
  }
  if ((json as { object?: unknown } | null)?.object === 'v2.core.event') return { reason: THIN };
  const parsed = eventSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { reason: `is not an event: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}` };
  }
  const { id, type, created, livemode, account } = parsed.data;
  const at = DateTime.fromSeconds(Number(created), { zone: 'utc' });
  if (at > latest) return { reason: `is not an event: created ${created} is in the future` };
  return { account, id, type, created: at.toISO() as string, livemode, payload: line };
}

/** JSON escapes. A surrogate pair is one match. */
const ESCAPE = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u(0000|[dD][89a-fA-F][\da-fA-F]{2})|\\./g;

/** Replaces escapes that PostgreSQL cannot store in text, NUL and unpaired surrogates, with U+FFFD. */
const storable = (text: string) =>
  text.replace(ESCAPE, (written, lost: string | undefined) => (lost === undefined ? written : '\\ufffd'));
