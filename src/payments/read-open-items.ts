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

/** `receipts` are the payments whose fields may name documents, and the accounts from which they came. */
export async function readOpenItems(
  tx: Transaction,
  { small_difference }: Pick<Settings, 'small_difference'>,
  receipts: Iterable<Readonly<{ references: readonly ReferenceField[]; payer_account?: string | null | undefined }>>,
) {
  const carried = await readCarried(tx);
  const [bodies, numbers] = [new Set<string>(), new Set<string>()];
  const [creditNumbers, paidFrom] = [new Set<string>(), new Set<string>()];
  for (const { references: fields, payer_account } of receipts) {
    for (const { body } of findJoint(fields)) bodies.add(body);
    for (const { number } of findReferences(fields).references) numbers.add(number);
    for (const { number } of carried.invoices.find(fields)) numbers.add(number);
    for (const { number } of findCreditNotes(fields)) creditNumbers.add(number);
    for (const { number } of carried.credits.find(fields)) creditNumbers.add(number);
    if (payer_account != null) paidFrom.add(payer_account);
  }
  const joint = await readJointInvoices(tx, [...bodies]);
  for (const { number } of [...joint.values()].flat()) numbers.add(number);
  const payables = (await readPayables(tx, { numbers: [...numbers] })).map(({ document: _, ...row }) => ({
    ...row,
    balance: Amount.of(row.balance, row.currency),
    due_on: row.due_on ?? '',
  }));
  const creditNotes = (await readCreditNotes(tx, { numbers: [...creditNumbers] })).map(({ balance, ...row }) => ({
    ...row,
    balance: Amount.of(balance, row.currency),
  }));
  const partners = await readPayers(tx);
  const accounts = (await readPayerAccounts(tx, [...paidFrom], partners)).flatMap(
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
