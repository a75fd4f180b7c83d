/**
 * Stores the processor's events as they came; they are processed afterwards (process.ts). An event that is stored already
 * is left as it is. Refusals: processor_events_invalid, processor_environment.
 */
import { DateTime } from 'luxon';
import { z } from 'zod';
import type { Transaction } from '../../database/transaction.ts';
import { type FieldProblem, reasonOf, refuse } from '../../errors/refusals.ts';
import { parseExactJsonOfOthers } from '../../json.ts';
import type { Caller } from '../context.ts';
import type { StorableEvent } from './event.ts';
import { insertEvents } from './events.sql.ts';

const eventSchema = z.object({
  id: z.string().min(1).max(255),
  object: z.literal('event'),
  type: z.string().min(1).max(255),
  created: z.string().regex(/^\d{1,12}$/, 'must be seconds since 1970'),
  livemode: z.boolean(),
  account: z.string().min(1).max(255).nullish(),
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
});

export interface StoredEvents {
  readonly stored: number;
  readonly known: number;
  /** Connected accounts with new events. */
  readonly accounts: readonly string[];
}

export interface EventFile {
  /** For messages. */
  readonly name: string;
  /** NDJSON: an event a line. */
  readonly text: string;
  /** The account of events that name none: the processor leaves it out in what it tells an account about itself. */
  readonly account?: string | undefined;
  /** The account whose secret signed the file, empty for our own: an event that names another is refused. */
  readonly signedBy?: string;
}

/** Stores all events of a file, or none. A webhook is a file of one line. */
export async function storeEvents(
  tx: Transaction,
  { environment }: Pick<Caller, 'environment'>,
  file: EventFile,
): Promise<StoredEvents> {
  const problems: FieldProblem[] = [];
  const latest = environment.now().plus({ days: 1 });
  const events = storable(file.text)
    .split('\n')
    .flatMap((line, index): StorableEvent[] => {
      if (line.trim() === '') return [];
      const event = readLine(line, latest);
      if ('reason' in event) {
        problems.push({ path: `line ${index + 1}`, reason: event.reason });
        return [];
      }
      if (file.signedBy !== undefined && (event.account ?? file.signedBy) !== file.signedBy) {
        const reason = `is of account ${event.account}, but the secret of ${file.signedBy || 'our own account'} signed it`;
        problems.push({ path: `line ${index + 1}`, reason });
        return [];
      }
      return [{ ...event, account: event.account ?? file.account ?? '' }];
    });
  if (problems.length > 0) {
    throw refuse('processor_events_invalid', { file: file.name, problems: problems.slice(0, 20) });
  }
  const isLive = environment.name === 'production';
  const other = events.find((event) => event.livemode !== isLive);
  if (other !== undefined) {
    throw refuse('processor_environment', {
      event: other.id,
      livemode: other.livemode,
      environment: environment.name,
    });
  }
  const stored = await insertEvents(tx, events, environment.now().toISO());
  const accounts = [...new Set(stored)].filter((account) => account !== '').sort();
  return { stored: stored.length, known: events.length - stored.length, accounts };
}

type ReadEvent = Omit<StorableEvent, 'account'> & { readonly account: string | null | undefined };

function readLine(line: string, latest: DateTime): ReadEvent | { readonly reason: string } {
  let json: unknown;
  try {
    json = parseExactJsonOfOthers(line);
  } catch (error) {
    return { reason: `is not JSON: ${reasonOf(error)}` };
  }
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

/** JSON escapes; a surrogate pair is one of them. */
const ESCAPE = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u(0000|[dD][89a-fA-F][\da-fA-F]{2})|\\./g;

/** PostgreSQL cannot store NUL or an unpaired surrogate in a text: U+FFFD replaces them. */
const storable = (text: string): string =>
  text.replace(ESCAPE, (written, lost: string | undefined) => (lost === undefined ? written : '\\ufffd'));
