/** Actions of random histories, done as a person does them in the console: previewed, and confirmed as shown. */
import { expect } from 'vitest';
import type { Action, ActionContext } from '../../src/actions/action.ts';
import { bankBook } from '../../src/actions/bank.ts';
import { type Change, digestOf } from '../../src/actions/consequence.ts';
import { paymentApply, paymentUnapply } from '../../src/actions/payment/apply.ts';
import { paymentImport } from '../../src/actions/payment/import.ts';
import { paymentAssign } from '../../src/actions/payment/payer.ts';
import { paymentRecord } from '../../src/actions/payment/record.ts';
import { paymentReverse } from '../../src/actions/payment/reverse.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import { query, type Transaction } from '../../src/database/transaction.ts';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import type { EmailKind } from '../../src/mail/kinds.ts';
import { moneyText } from '../../src/money.ts';
import { COMPOSERS } from '../../src/month-end/emails/composers.ts';
import { BY_THEMSELVES } from '../../src/month-end/foresee-emails.ts';
import type { Books } from '../payments/books.ts';

/** The actions that were confirmed, by how often. */
export const confirmedActions = new Map<string, number>();

/**
 * Previews an action and confirms it. The run does what the preview showed, figure by figure, or it is refused; it
 * queues the e-mails that the preview foresaw; and what the preview refuses, the run refuses for the same reason.
 */
export async function confirmed<Input, Result, Followed, Json>(
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  input: Input,
): Promise<Json> {
  const foreseen = await queueDueEmails(context);
  const preview = await previewAction(context, action, input).catch(async (error: unknown) => {
    if (!(error instanceof Refusal)) throw error;
    const run = await runAction(context, action, input, { deliver: false }).then(
      () => 'done',
      (refusal: unknown) => (refusal instanceof Refusal ? refusal.code : Promise.reject(refusal)),
    );
    expect([action.name, 'refused by the preview, and by the run', run]).toEqual([
      ...[action.name, 'refused by the preview, and by the run', error.code],
    ]);
    throw error;
  });
  const { json } = await runAction(context, action, input, { deliver: false, shown: digestOf(preview) });
  await expectDocumentsAs(context, preview.changes);
  for (const { kind, count } of preview.emails) foreseen.set(kind, (foreseen.get(kind) ?? 0) + count);
  const queued = await context.database.preview((tx) => queuedEmails(tx, context));
  expect([action.name, Object.fromEntries(queued)]).toEqual([...[action.name, Object.fromEntries(foreseen)]]);
  confirmedActions.set(action.name, (confirmedActions.get(action.name) ?? 0) + 1);
  return json;
}

/** The documents have the status and the balance that the preview showed. */
async function expectDocumentsAs({ database }: ActionContext, changes: readonly Change[]): Promise<void> {
  const documents = new Map((await database.reading((tx) => readDocuments(tx, {}))).map((each) => [each.number, each]));
  for (const { of, field, after } of changes) {
    const document = documents.get(of);
    if (document === undefined) continue;
    if (field === 'status') expect([of, document.status]).toEqual([of, after]);
    if (field === 'balance' && document.document === 'invoice') {
      expect([of, moneyText(document.balance, document.currency)]).toEqual([of, after]);
    }
  }
}

/** Queues the e-mails that are due, as a delivery does. Returns how many of each kind there are. */
export const queueDueEmails = (context: ActionContext): Promise<Map<string, number>> =>
  context.database.transaction((tx) => queuedEmails(tx, context));

const FOLLOWING = COMPOSERS.filter(({ kind }) => !BY_THEMSELVES.has(kind));

async function queuedEmails(tx: Transaction, context: ActionContext): Promise<Map<string, number>> {
  for (const composer of FOLLOWING) await composer.queueDue?.(tx, context);
  const counted = await query<{ kind: EmailKind; count: string }>(
    tx,
    'SELECT kind, count(*) FROM emails GROUP BY kind ORDER BY kind',
  );
  return new Map(
    counted.filter(({ kind }) => !BY_THEMSELVES.has(kind)).map(({ kind, count }) => [kind, Number(count)]),
  );
}

export const contextOf = ({ acting, database }: Books): ActionContext => ({ ...acting, database });

/** Books whose actions on payments are confirmed. They return nothing but a recorded payment's id. */
export function confirmingBooks(books: Books): Books {
  const context = contextOf(books);
  const doing =
    <Input, Result, Followed, Json>(action: Action<Input, Result, Followed, Json>) =>
    (input: object): Promise<never> =>
      confirmed(context, action, input as Input) as Promise<never>;
  return {
    ...books,
    record: async (request) => {
      const { payment_id } = await confirmed(context, paymentRecord, {
        ...{
          amount: '100.00',
          currency: 'USD',
          method: 'wire',
          receivedOn: '2026-10-14',
          reference: 'FT-1',
          ...request,
        },
      } as never);
      return { paymentId: payment_id } as never;
    },
    apply: (paymentId, number, amount, creditNotes) =>
      doing(paymentApply)({ paymentId, numbers: [number].flat(), amount, creditNotes }),
    assign: (paymentId, partnerId) => doing(paymentAssign)({ paymentId, partnerId }),
    unapply: (paymentId, number) => doing(paymentUnapply)({ paymentId, number, reason: 'looked at again' }),
    reverse: (request) => doing(paymentReverse)({ kind: 'returned', reason: 'the bank says so', ...request }),
    book: ({ bankLineId, ...request }) =>
      doing(bankBook)({ kind: 'charges', reason: 'of the statement', bankLineId: [bankLineId], ...request }),
    bankText: (name, text, { map } = {}) => doing(paymentImport)({ file: { name, bytes: Buffer.from(text) }, map }),
  };
}
