/** SQL of the signatures and time stamps of checkpoints. */
import { execute, executing, query, querying, queryingFirst, Transaction } from '#database/transaction';
import { Checkpoint } from './checkpoints.sql.ts';
import { NoteKey, noteOf, TreeHead } from './note.ts';

/** A recorded key, in Base64. */
export type LogKey = Readonly<{
  key_name: string;
  public_key: string;
  /** The previous key, or null for the first key. */
  previous: string | null;
  /** The signature by the previous key. Null for the first key, or if the previous key was lost. */
  signature: string | null;
}>;

/** The key that was recorded last, or undefined before the first key. */
export const readLatestKey = queryingFirst<LogKey>(
  `SELECT key_name, public_key, previous, signature FROM log_keys ORDER BY log_no DESC LIMIT 1`,
);

export const noteKeyOf = ({ key_name, public_key }: Pick<LogKey, 'key_name' | 'public_key'>): NoteKey => ({
  name: key_name,
  publicKey: Buffer.from(public_key, 'base64'),
});

export const insertKey = executing<LogKey & Readonly<{ reason: string; now: string; eventId: number }>>(`
  INSERT INTO log_keys (key_name, public_key, previous, signature, reason, recorded_at, event_id)
  VALUES (:key_name, :public_key, :previous, :signature, :reason, :now, :eventId)`);

/** The checkpoints of a log that its key has not signed, oldest first. */
export const readUnsigned = querying<TreeHead, { origin: string }>(`
  SELECT origin, size, root FROM log_checkpoints c
  WHERE origin = :origin AND NOT EXISTS (SELECT FROM log_signatures s WHERE s.size = c.size AND s.key_name = :origin)
  ORDER BY size`);

export const insertSignatures = (
  tx: Transaction,
  signatures: readonly Readonly<{ size: number; key_name: string; line: string }>[],
  now: string,
) =>
  execute(
    tx,
    `INSERT INTO log_signatures (size, key_name, line, made_at)
     SELECT size, key_name, line, :now
     FROM json_to_recordset(:signatures::json) AS s (size bigint, key_name text, line text)
     ON CONFLICT DO NOTHING`,
    { signatures: JSON.stringify(signatures), now },
  );

/** The signature lines of checkpoints by size. The line of the log's own key is first. */
export async function readSignatureLines(
  tx: Transaction,
  sizes: readonly number[],
): Promise<ReadonlyMap<number, readonly string[]>> {
  const rows = await query<{ size: number; lines: string[] }>(
    tx,
    `SELECT s.size, array_agg(s.line ORDER BY s.key_name <> c.origin, s.made_at, s.line) AS lines
     FROM log_signatures s JOIN log_checkpoints c USING (size) WHERE size = ANY (:sizes) GROUP BY s.size`,
    { sizes },
  );
  return new Map(rows.map(({ size, lines }) => [size, lines]));
}

/** A checkpoint as a note with all its signatures. */
export const readNoteOf = async (tx: Transaction, head: TreeHead) =>
  noteOf(head, (await readSignatureLines(tx, [head.size])).get(head.size) ?? []);

/** The time stamps of checkpoints by size. */
export async function readStamps(tx: Transaction, sizes: readonly number[]): Promise<ReadonlyMap<number, Buffer>> {
  const rows = await query<{ size: number; response: Buffer }>(
    tx,
    `SELECT size, response FROM log_stamps WHERE size = ANY (:sizes)`,
    { sizes },
  );
  return new Map(rows.map(({ size, response }) => [size, response]));
}

/** The largest number of stamps that one run requests. The oldest checkpoint is first. */
const AT_ONCE = 50;

const UNSTAMPED = `FROM log_checkpoints c WHERE NOT EXISTS (SELECT FROM log_stamps s WHERE s.size = c.size)`;

export const readUnstamped = querying<TreeHead>(
  `SELECT origin, size, root ${UNSTAMPED} ORDER BY size LIMIT ${AT_ONCE}`,
);

export const insertStamp = executing<
  Readonly<{
    size: number;
    authority: string;
    response: Buffer;
    stampedAt: string;
  }>
>(`
  INSERT INTO log_stamps (size, authority, response, stamped_at)
  VALUES (:size, :authority, :response, :stampedAt) ON CONFLICT DO NOTHING`);

/** The checkpoints without a stamp that were taken before an instant, oldest first. */
export const readUnstampedBefore = querying<Pick<Checkpoint, 'size'>, { before: string }>(
  `SELECT size ${UNSTAMPED} AND taken_at < :before ORDER BY size`,
);

/** The checkpoints without a signature of the log's key that were taken before an instant, oldest first. */
export const readUnsignedBefore = querying<Pick<Checkpoint, 'size'>, { before: string }>(`
  SELECT size FROM log_checkpoints c
  WHERE taken_at < :before
    AND NOT EXISTS (SELECT FROM log_signatures s WHERE s.size = c.size AND s.key_name = c.origin) ORDER BY size`);
