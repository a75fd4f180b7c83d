/**
 * Stores the processor's events as received. process.ts processes them later. An event that is already stored stays
 * unchanged. Refusals: processor_events_invalid, processor_environment.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Caller } from '#payments/context';
import { PROBLEMS_TOLD } from '#reading/limits';
import { insertEvents } from './events.sql.ts';
import { ReadEvent, readEvents } from './read.ts';

export type StoredEvents = Readonly<{
  stored: number;
  known: number;
  accounts: readonly string[];
}>;

type EventFile = Readonly<{
  name: string;
  /** NDJSON, with one event per line. */
  text: string;
  /** The account of events that name no account: the processor omits the account from an account's own events. */
  account?: string | undefined;
  /**
   * The account whose secret signed the file; empty for our own account. Events that name a different account are
   * refused.
   */
  signedBy?: string;
}>;

/**
 * Stores all events of a file, or none. A webhook is a file with one line. `read` contains the events, which were read
 * before the transaction.
 */
export async function storeEvents(
  tx: Transaction,
  { environment }: Pick<Caller, 'environment'>,
  file: EventFile,
  read: readonly ReadEvent[] = readEvents(file.name, file.text, environment.now().toMillis()),
): Promise<StoredEvents> {
  const foreign = read.filter(
    (event) => file.signedBy !== undefined && (event.account ?? file.signedBy) !== file.signedBy,
  );
  if (foreign.length > 0) {
    const secret = file.signedBy || 'our own account';
    const problems = foreign.slice(0, PROBLEMS_TOLD).map(({ line, account }) => ({
      path: `line ${line}`,
      reason: `names account ${account}, but was signed with the secret of ${secret}`,
    }));
    throw refuse('processor_events_invalid', { file: file.name, problems });
  }
  const events = read.map(({ line: _, ...event }) => ({ ...event, account: event.account ?? file.account ?? '' }));
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
