/**
 * The check of seal signatures: each is valid, was made with this installation's key and covers an existing seal. Each
 * seal made since the first signature is signed.
 */
import { query, type Transaction } from '../../database/transaction.ts';
import { isValid, keyNameOf, sealTitle } from '../../seals/signature.ts';
import type { SealKind, SealSignature } from '../../seals/signatures.sql.ts';
import type { CheckContext } from './check.ts';
import type { Finding } from './query.ts';

/** A seal, its signature, or both. */
interface SignatureRow {
  readonly installation_id: string;
  readonly kind: SealKind;
  readonly name: string;
  readonly seal: string | null;
  readonly record: string | null;
  /** Whether the seal was made after the first signature. */
  readonly late: boolean | null;
  readonly signed: (SealSignature & { readonly seal: string }) | null;
}

function faultOf({ installation_id, seal, record, late, signed }: SignatureRow): string | undefined {
  if (signed === null) return late ? 'has no signature, although earlier seals have one' : undefined;
  if (seal === null || record === null) return 'has a signature, but there is no such seal';
  if (signed.seal !== seal) return `is ${seal}, but its signature covers ${signed.seal}`;
  if (signed.key_name !== keyNameOf(installation_id))
    return `is signed by ${signed.key_name}, a key of another installation`;
  return isValid(record, signed) ? undefined : 'has a signature that is not valid';
}

export async function findBrokenSignatures(tx: Transaction, { month }: Pick<CheckContext, 'month'>): Promise<Finding> {
  const found = await query<SignatureRow>(
    tx,
    `SELECT i.installation_id, kind, name, a.seal, a.record,
            a.facts_to >= (SELECT min(fact_id) FROM seal_signatures) AS late,
            CASE WHEN s.fact_id IS NOT NULL THEN to_json(s) END AS signed
     FROM every_seal a FULL JOIN seal_signatures s USING (kind, name) CROSS JOIN installation i
     WHERE :month::text IS NULL OR name = :month
     ORDER BY kind, name`,
    { month },
  );
  const differences = found.flatMap((each) => {
    const detail = faultOf(each);
    return detail === undefined ? [] : [{ subject: sealTitle(each), detail }];
  });
  return { inspected: found.length, differences };
}
