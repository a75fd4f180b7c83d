/** The invoices of joint creditor references. */
import { querying, Transaction } from '#database/transaction';
import { JOINT_LATER, jointReferenceOf, readJointBody } from './creditor-reference.ts';

export type JointInvoice = Readonly<{
  document_id: number;
  number: string;
  partner_id: string;
}>;

/** Each first invoice with those of the same partner and currency after it. Documents are issued one after another. */
const readFrom = querying<JointInvoice & { readonly first: number }, { firsts: readonly number[]; most: number }>(`
  SELECT a.document_id AS first, d.document_id, d.number, d.partner_id
  FROM documents a CROSS JOIN LATERAL (
    SELECT d.document_id, d.number, d.partner_id FROM documents d
    WHERE d.document = 'invoice' AND d.partner_id = a.partner_id AND d.currency = a.currency
      AND d.document_id >= a.document_id
    ORDER BY d.document_id LIMIT :most) AS d
  WHERE a.document = 'invoice' AND a.document_id = ANY (:firsts::bigint[])
  ORDER BY d.document_id`);

/** One reference for invoices of one partner and currency. Undefined if they lie too far apart. */
export async function readJointReference(tx: Transaction, ids: readonly number[]): Promise<string | undefined> {
  const first = Math.min(...ids);
  const all = await readFrom(tx, { firsts: [first], most: JOINT_LATER + 1 });
  const places = all.flatMap(({ document_id }, at) => (ids.includes(document_id) && at > 0 ? [at] : []));
  return places.length === ids.length - 1 ? jointReferenceOf(first, places) : undefined;
}

/** The invoices that each body of a reference names. None if there is no such invoice. */
export async function readJointInvoices(
  tx: Transaction,
  bodies: readonly string[],
): Promise<ReadonlyMap<string, readonly JointInvoice[]>> {
  const read = [...new Set(bodies)].flatMap((body) => {
    const joint = readJointBody(body);
    return joint === undefined ? [] : [{ body, ...joint }];
  });
  const found = await readFrom(tx, { firsts: read.map(({ first }) => first), most: JOINT_LATER + 1 });
  return new Map(
    read.map(({ body, first, later }) => {
      const all = found.filter((each) => each.first === first);
      const named = [0, ...later].flatMap((place) => all[place] ?? []);
      return [body, named.length === later.length + 1 ? named : []];
    }),
  );
}
