/** One wire for several invoices: their sum, and a reference by which cash application finds them. */

import { Card, Facts, Figures, Money, owedColumns, TableCard } from '#console/parts';
import { Transaction } from '#database/transaction';
import { creditorReferenceOf, inFours } from '#documents/creditor-reference';
import { readJointInvoices, readJointReference } from '#documents/joint-references.sql';
import { readTemplate } from '#documents/pdf/template';
import { bankDetails } from '#documents/present';
import { refuse } from '#errors/refusals';
import { AccountPayment, readHowToPay } from '#reports/account-payment';
import { OpenItem } from '#reports/open-items.sql';
import { Amount, plural } from '#values';
import { pageFacts } from './invoice.ts';
import { chosenIn, isPayable, numberCell, openScreen, payableItems, readOpen } from './overview.tsx';
import { PartnerAnswer, PartnerScreen, PartnerVisit } from './route.ts';

/** Leads to the page of the reference. Invoices without a common reference are refused above the form. */
export async function wireInvoices(visit: PartnerVisit, fields: ReadonlyMap<string, string>): Promise<PartnerAnswer> {
  const chosen = chosenIn(fields);
  return visit.context.database.reading(async (tx) => {
    const view = await readOpen(tx, visit);
    const items = payableItems(view, fields);
    const refused = (problem: string) => ({ screen: openScreen(view, visit, { problem, chosen }), status: 422 });
    if (items.length === 0 || (!fields.has('all') && items.length < chosen.length))
      return refused('Choose invoices that are open and not being paid.');
    if (items.some((each) => each.currency !== items[0]?.currency))
      return refused('Choose invoices of one currency for a wire.');
    const reference = await readJointReference(
      tx,
      items.map((each) => each.document_id),
    );
    if (reference === undefined) return refused('These invoices are too far apart for one reference. Choose fewer.');
    return { to: `/place/wires/${reference}` };
  });
}

type WireView = Readonly<{
  reference: string;
  as_of: string;
  items: readonly OpenItem[];
  /** How many invoices of the reference are settled, void or being paid. */
  others: number;
  sum: Amount | undefined;
  pay: AccountPayment | undefined;
}>;

/** Refusal: page_unknown, also for a reference of another partner's invoices. */
export async function readWire(tx: Transaction, visit: PartnerVisit, reference: string): Promise<WireView> {
  const body = reference.slice(4);
  const isRight = creditorReferenceOf(body) === reference;
  const joint = (isRight && (await readJointInvoices(tx, [body])).get(body)) || [];
  if (joint.length === 0 || joint.some(({ partner_id: partnerId }) => partnerId !== visit.partnerId))
    throw refuse('page_unknown', { path: visit.request.url });
  const view = await readOpen(tx, visit);
  const items = view.items.filter(
    (item) => isPayable(view, item) && joint.some(({ document_id: id }) => id === item.document_id),
  );
  const [{ currency } = { currency: '' }] = items;
  const sum = currency === '' ? undefined : Amount.sum(currency, items, (each) => Amount.of(each.balance, currency));
  const accounts = sum === undefined ? [] : [{ currency, closing: sum.toString(), open_items: items }];
  const {
    accounts: [pay],
  } = await readHowToPay(tx, visit.context.settings, { accounts });
  return { reference, as_of: view.as_of, items, others: joint.length - items.length, sum, pay };
}

export function wireScreen(
  { reference, as_of, items, others, sum, pay }: WireView,
  { reader }: PartnerVisit,
): PartnerScreen {
  const { payment, payment_page: labels } = readTemplate().labels;
  const { ach, wire } = bankDetails(pay?.instructions ?? null);
  const details = [
    ['Wire transfer', wire],
    ['ACH', ach],
  ] as const;
  return {
    title: `Wire for ${plural(items.length, 'invoice')}`,
    crumbs: [{ name: reader.partner, href: '/place' }],
    content: (
      <div class="stack">
        {others > 0 && (
          <p class="problem" role="note">
            {`${plural(others, 'invoice')} of this reference ${others === 1 ? 'is' : 'are'} settled or being paid. `}
            <a href="/place">Choose again</a> if you have not sent the wire.
          </p>
        )}
        {pay?.changed && (
          <p class="problem" role="note">
            <strong>{payment.changed_title}</strong> {labels.changed}
          </p>
        )}
        {sum !== undefined && (
          <Card title="Payment">
            <Figures
              figures={[
                ['Amount', <Money amount={sum.toString()} currency={sum.currency} />],
                ['Reference', <span class="number">{inFours(reference)}</span>],
              ]}
            />
            <p class="soft">
              Wire exactly this amount, and quote the reference in full. The wire is then applied to these invoices
              alone.
            </p>
          </Card>
        )}
        {details.map(
          ([title, facts]) =>
            facts && (
              <Card title={title}>
                <Facts facts={facts.flatMap(pageFacts).map(({ label, value }) => [label, value])} />
              </Card>
            ),
        )}
        {sum !== undefined && !ach && !wire && <p>Please ask {reader.issuer} for the bank details.</p>}
        <TableCard
          title="Invoices"
          columns={[{ heading: 'Number', cell: numberCell }, ...owedColumns(as_of)]}
          rows={items}
          nothing="All of them are settled."
        />
      </div>
    ),
  };
}
