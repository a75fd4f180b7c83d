/** A number that no document has, as a refusal. */
import { query, type Transaction } from '../database/transaction.ts';
import { type Refusal, refuse } from '../errors/refusals.ts';
import { partsOf } from './resume.ts';

/** document_unknown, with the reason if the number was skipped. */
export async function documentUnknown(tx: Transaction, number: string): Promise<Refusal> {
  const parts = partsOf(number);
  const [skipped] =
    parts === undefined
      ? []
      : await query<{ on: string; reason: string }>(
          tx,
          `SELECT s.recorded_at::date AS "on", p.reason FROM skipped_numbers s JOIN pauses p USING (pause_id)
           WHERE s.series = :series AND :sequence::integer BETWEEN s.first_sequence AND s.last_sequence`,
          { ...parts },
        );
  return refuse('document_unknown', { number, skipped });
}
