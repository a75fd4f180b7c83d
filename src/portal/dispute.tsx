/**
 * The form by which a partner's contact disputes an invoice. It runs the action `dispute.open`, which records the
 * contact's address.
 */
import { disputeOpen } from '#actions/dispute';
import { runAction } from '#actions/run';
import { Form } from '#console/form';
import { Refusal } from '#errors/refusals';
import { readOwnInvoice } from './document.tsx';
import { InvoiceView } from './invoice.ts';
import { PartnerAnswer, PartnerScreen, PartnerVisit } from './route.ts';

type DisputeForm = Readonly<{
  reason: string;
  amount: string;
  problem: string;
}>;

export function disputeScreen(
  { number, currency, balance }: InvoiceView,
  { reader }: PartnerVisit,
  { reason, amount, problem }: DisputeForm = { reason: '', amount: '', problem: '' },
): PartnerScreen {
  const path = `/place/documents/${number}`;
  return {
    title: `Dispute ${number}`,
    crumbs: [
      { name: reader.partner, href: '/place' },
      { name: number, href: path },
    ],
    content: (
      <div class="narrow stack">
        {problem !== '' && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <Form action={`${path}/dispute`} token={reader.formToken} class="card">
          <div class="in stack">
            <div class="field">
              <label for="reason">What is wrong</label>
              <input id="reason" name="reason" required maxLength={500} value={reason} />
            </div>
            <div class="field">
              <label for="amount">
                Amount in {currency}
                <span class="count"> optional</span>
              </label>
              <input id="amount" name="amount" inputMode="decimal" value={amount} aria-describedby="amount-help" />
              <p class="help" id="amount-help">
                The amount that you do not accept. If left empty, you dispute all that is open: {balance}.
              </p>
            </div>
            <p class="soft">
              {reader.issuer} receives this at once and will answer you. The disputed amount stays on the account,
              without reminders, until the dispute is closed.
            </p>
            <p class="buttons">
              <button type="submit" class="main">
                Send
              </button>
              <a class="button" href={path}>
                Cancel
              </a>
            </p>
          </div>
        </Form>
      </div>
    ),
  };
}

/** Refusal: page_unknown. Other problems are shown above the form. */
export async function disputeInvoice(
  visit: PartnerVisit,
  number: string,
  fields: ReadonlyMap<string, string>,
): Promise<PartnerAnswer> {
  const { context } = visit;
  const [reason = '', amount = ''] = [fields.get('reason'), fields.get('amount')?.trim()];
  await context.database.reading((tx) => readOwnInvoice(tx, visit, number));
  try {
    await runAction(context, disputeOpen, { number, reason, ...(amount !== '' && { amount }) });
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    const view = await context.database.reading((tx) => readOwnInvoice(tx, visit, number));
    const problem = problemOf(thrown, visit);
    return { screen: disputeScreen(view, visit, { reason, amount, problem }), status: 422 };
  }
  return { to: `/place/documents/${number}` };
}

/** Words a refusal for the contact, because the action's own refusals name commands. */
function problemOf(refusal: Refusal, { reader }: PartnerVisit) {
  switch (refusal.code) {
    case 'argument_invalid':
      return 'Describe what is wrong in one line of up to 500 characters.';
    case 'amount_invalid':
      return 'The amount must be above zero, with no more decimals than the currency has.';
    case 'dispute_exceeds_balance':
      return refusal.message;
    case 'invoice_disputed':
      return 'This invoice is already in dispute.';
    default:
      return `The dispute was not recorded. Please write to ${reader.issuer}.`;
  }
}
