/**
 * The check that the schema is what the migrations created, including every guard, rule and view that the other checks
 * rely on.
 */
import { readRecordDigest } from '#database/schema';
import { query, Transaction } from '#database/transaction';
import { plural } from '#text';
import { CheckContext } from './check.ts';
import { Finding } from './query.ts';

/**
 * Explains why expressions were not compared: the database was loaded from a dump, or upgraded with pg_upgrade, after
 * its schema was recorded.
 */
export const describeNotCompared = (count: number) =>
  `${plural(count, 'expression')} of views, checks and functions not compared: the database was moved to this server ` +
  'after its schema was recorded. Migrate it as its owner to record it here';

/**
 * Whether an event of the program contains the digest of the last record. The log has the event, but not the record.
 */
async function isRecordNamed(tx: Transaction) {
  const names = await query<{ name: string }>(
    tx,
    `SELECT details ->> 'schema_record' AS name FROM audit_events
     WHERE action IN ('database.migrate', 'database.restore') AND details ->> 'schema_record' IS NOT NULL`,
  );
  if (names.length === 0) return true;
  const digest = await readRecordDigest(tx);
  return names.some(({ name }) => name === digest);
}

export async function findChangedSchema(tx: Transaction, { schema }: Pick<CheckContext, 'schema'>): Promise<Finding> {
  const { inspected, differences, notCompared } = await schema();
  const found = differences.map(({ object, detail }) => ({ subject: object, detail }));
  if (!(await isRecordNamed(tx))) {
    found.push({ subject: 'record of the schema', detail: 'no event of migrate or restore names it: changed by hand' });
  }
  return { inspected, differences: found, ...(notCompared > 0 && { note: describeNotCompared(notCompared) }) };
}
