/**
 * The form by which a partner's contact disputes an invoice. It runs the action `dispute.open`, which records the
 * contact's address.
 */
import { disputeOpen } from '#actions/dispute';
import { runAction } from '#actions/run';
import { ListPager, ListTable, ListView, readList, TICK } from '#console/list';
import { addressOf, Form } from '#console/parts';
import { Transaction } from '#database/transaction';
import { Refusal } from '#errors/refusals';
import { rows } from '#lists/rows';
import { readOwnInvoice } from './document.tsx';
import { InvoiceView } from './invoice.ts';
import { chosenIn } from './overview.tsx';
import { PartnerAnswer, PartnerScreen, PartnerVisit } from './route.ts';

type DisputeView = Readonly<{
  invoice: InvoiceView;
  rows: ListView;
}>;

/** The invoice with its rows, which an id may filter. Refusal: page_unknown. */
export async function readDisputable(tx: Transaction, visit: PartnerVisit, number: string): Promise<DisputeView> {
  const invoice = await readOwnInvoice(tx, visit, number);
  const { partnerId, today, query, context } = visit;
  const { enrollment = '', quote = '', after = '' } = query;
  const question = { enrollment, quote, after, document: invoice.number };
  return { invoice, rows: await readList(tx, rows, question, { period: null, scope: [partnerId], today, context }) };
}

type DisputeForm = Readonly<{
  fields: ReadonlyMap<string, string>;
  problem: string;
}>;

export function disputeScreen(
  { invoice: { number, currency, balance }, rows: view }: DisputeView,
  { reader }: PartnerVisit,
  { fields, problem }: DisputeForm = { fields: new Map(), problem: '' },
): PartnerScreen {
  const path = `/place/documents/${number}`;
  return {
    title: `Dispute ${number}`,
    crumbs: [
      { name: reader.partner, href: '/place' },
      { name: number, href: path },
    ],
    content: (
      <div class="stack">
        {problem !== '' && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <form class="filters" action={`${path}/dispute`}>
          <label class="field" for="enrollment">
            Enrollment id begins with
            <input id="enrollment" name="enrollment" type="search" value={view.question['enrollment']} />
          </label>
          <button type="submit">Filter</button>
        </form>
        <Form action={`${path}/dispute`} token={reader.formToken} class="card">
          <p class="soft in">Select the rows that you do not accept, or none to dispute an amount.</p>
          <ListTable
            {...{
              view: { ...view, ticked: chosenIn(fields, TICK) },
              path: `${path}/dispute`,
              face: view.list.place ?? [],
              singly: true,
            }}
            hrefOf={(_place, at) => addressOf(`${path}/dispute`, typeof at === 'string' ? {} : at)}
            nothing="There are no rows."
          />
          <ListPager view={view} path={`${path}/dispute`} />
          <div class="in stack">
            <div class="field">
              <label for="reason">What is wrong</label>
              <input id="reason" name="reason" required maxLength={500} value={fields.get('reason')} />
            </div>
            <div class="field">
              <label for="amount">
                Amount in {currency}
                <span class="count"> optional</span>
              </label>
              <input
                id="amount"
                name="amount"
                inputMode="decimal"
                value={fields.get('amount')}
                aria-describedby="amount-help"
              />
              <p class="help" id="amount-help">
                The amount that you do not accept. If left empty, you dispute the selected rows, or else all that is
                open: {balance}.
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
  const ticked = chosenIn(fields, TICK).map(Number);
  try {
    await runAction(context, disputeOpen, {
      ...{ number, reason },
      ...(amount !== '' && { amount }),
      ...(ticked.length > 0 && { rows: ticked }),
    });
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    const view = await context.database.reading((tx) => readDisputable(tx, visit, number));
    return { screen: disputeScreen(view, visit, { fields, problem: problemOf(thrown, visit) }), status: 422 };
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
    case 'row_not_correctable':
      return 'A selected row is not one of this invoice, or was already credited or reversed.';
    case 'invoice_disputed':
      return 'This invoice is already in dispute.';
    default:
      return `The dispute was not recorded. Please write to ${reader.issuer}.`;
  }
}
