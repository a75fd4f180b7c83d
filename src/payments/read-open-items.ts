import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { readJointInvoices } from '#documents/joint-references.sql';
import { refuse } from '#errors/refusals';
import { Amount } from '#money';
import { ReferenceField } from './bank/statement.ts';
import {
  PayableRow,
  readCarriedNumbers,
  readCreditNotes,
  readPayable,
  readPayables,
  readPayers,
} from './open-items.sql.ts';
import { OpenItems } from './open-items.ts';
import { readPayerAccounts } from './payer-accounts.ts';
import { CarriedNumbers, findCreditNotes, findJoint, findReferences } from './reference.ts';

/**
 * `remittances` are the fields of each payment that may name documents. `payers` are the accounts from which payments
 * came.
 */
export async function readOpenItems(
  tx: Transaction,
  { small_difference }: Pick<Settings, 'small_difference'>,
  remittances: readonly (readonly ReferenceField[])[],
  payers: readonly (string | null | undefined)[],
) {
  const carried = await readCarried(tx);
  const joint = await readJointInvoices(
    tx,
    remittances.flatMap((fields) => findJoint(fields).map(({ body }) => body)),
  );
  const numbers = [
    ...[...joint.values()].flat(),
    ...remittances.flatMap((fields) => [...findReferences(fields).references, ...carried.invoices.find(fields)]),
  ].map((each) => each.number);
  const payables = (await readPayables(tx, { numbers: [...new Set(numbers)] })).map(({ document: _, ...row }) => ({
    ...row,
    balance: Amount.of(row.balance, row.currency),
    due_on: row.due_on ?? '',
  }));
  const creditNumbers = remittances.flatMap((fields) =>
    [...findCreditNotes(fields), ...carried.credits.find(fields)].map((each) => each.number),
  );
  const creditNotes = (await readCreditNotes(tx, { numbers: [...new Set(creditNumbers)] })).map(
    ({ balance, ...row }) => ({
      ...row,
      balance: Amount.of(balance, row.currency),
    }),
  );
  const partners = await readPayers(tx);
  const paidFrom = [...new Set(payers)].filter((each) => each != null);
  const accounts = (await readPayerAccounts(tx, paidFrom, partners)).flatMap(
    ({ payer_account, partners: [only, ...others] }) =>
      only === undefined ? [] : [[payer_account, others.length > 0 ? null : only] as const],
  );
  return new OpenItems(payables, partners, new Map(accounts), small_difference, creditNotes, carried, joint);
}

async function readCarried(tx: Transaction) {
  const numbers = await readCarriedNumbers(tx);
  const of = (document: string) => new CarriedNumbers(numbers.filter((each) => each.document === document));
  return { invoices: of('invoice'), credits: of('credit_note') };
}

/** Refusal: document_unknown. */
export async function payableNumbered(tx: Transaction, number: string): Promise<PayableRow> {
  const document = await readPayable(tx, { number });
  if (document === undefined) throw refuse('document_unknown', { number });
  return document;
}
