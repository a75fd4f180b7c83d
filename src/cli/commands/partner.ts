import { partnerIdOf } from '#actions/partner-names';
import { CommandContext, Definition, money, printable, reading, refuse, table } from '#cli/command';
import { Transaction } from '#database/transaction';
import { DocumentRow, readDocuments } from '#documents/documents.sql';
import { readTemplate } from '#documents/pdf/template';
import { addressLines } from '#documents/present';
import { Amount, groupThousands } from '#money';
import { cancellationText } from '#partners/cancellation';
import { partnerJson } from '#partners/change';
import { cutRateText } from '#partners/cut-rate';
import { PartnerView, readPartners } from '#partners/partners.sql';
import { paymentTermsText } from '#partners/payment-terms';
import { readPayments } from '#payments/payments.sql';

export const define: Definition = (partner, action) => {
  partner
    .command('show <id>')
    .description('Show a partner with its balance, open documents and policies')
    .action(action(reading(partnerShow)));
};

async function partnerShow({ database, output }: CommandContext, partnerId: string) {
  const [partner, account] = await database.reading(async (tx) => {
    const id = await partnerIdOf(tx, partnerId);
    return [(await readPartners(tx, id))[0], await readAccount(tx, id)] as const;
  });
  if (partner === undefined) throw refuse('partner_unknown', { partner_id: partnerId });
  output.print({ ...partnerJson(partner), account: account.map(accountJson) }, () => describe(partner, account));
}

type Account = Readonly<{
  currency: string;
  open: Amount;
  credit: Amount;
  unapplied: Amount;
  documents: readonly DocumentRow[];
}>;

const netOf = ({ open, credit, unapplied }: Account) => open.minus(credit).minus(unapplied);

async function readAccount(tx: Transaction, partnerId: string) {
  const documents = await readDocuments(tx, { partnerId, status: 'open' });
  const cash = (await readPayments(tx, { partnerId })).filter((each) => Number(each.unapplied) !== 0);
  const currencies = [...new Set([...documents, ...cash].map((each) => each.currency))].sort();
  return currencies.map((currency) => {
    const sum = (amounts: readonly string[]) =>
      amounts.reduce((total, each) => total.plus(Amount.of(each, currency)), Amount.zero(currency));
    const own = documents.filter((each) => each.currency === currency);
    const balances = (kind: DocumentRow['document']) =>
      own.filter((each) => each.document === kind).map((each) => each.balance);
    return {
      currency,
      open: sum(balances('invoice')),
      credit: sum(balances('credit_note')),
      unapplied: sum(cash.filter((each) => each.currency === currency).map((each) => each.unapplied)),
      documents: own,
    };
  });
}

const accountJson = (account: Account) => ({
  currency: account.currency,
  open: account.open.toString(),
  credit: account.credit.toString(),
  unapplied: account.unapplied.toString(),
  net: netOf(account).toString(),
  documents: account.documents.map(({ number, due_on, balance }) => ({
    number,
    due_on,
    balance: Amount.of(balance, account.currency).toString(),
  })),
});

function describe(partner: PartnerView, account: readonly Account[]) {
  const { address, invoicing_contact: contact } = partner;
  const place = addressLines(address, readTemplate(), (text) => text);
  const facts: [string, string][] = [
    ['name', partner.name],
    ['address', place.join(', ')],
    ['tax id', partner.tax_id],
    ['PO', partner.purchase_order],
    ...(partner.e_invoice === 'none' ? [] : [['e-invoice', partner.e_invoice] as [string, string]]),
    ['legal note', partner.legal_note],
    ['contact', [contact.name, contact.email, ...contact.cc].filter((part) => part !== '').join(', ') || 'none'],
    ['currency', partner.currency],
    ['time zone', partner.time_zone],
    ['terms', paymentTermsText(partner)],
    ['arrangement', partner.arrangement],
    ...(partner.parent === null ? [] : [['parent', `${partner.parent}, which pays for it`] as [string, string]]),
    ['active', partner.active ? 'yes' : 'no'],
  ];
  for (const each of account) {
    const { currency, credit, unapplied } = each;
    const parts = [
      `${money(each.open.toString(), currency)} open`,
      ...(credit.isZero() ? [] : [`${money(credit.toString(), currency)} of credit`]),
      ...(unapplied.isZero() ? [] : [`${money(unapplied.toString(), currency)} of unapplied cash`]),
    ];
    facts.push(['balance', `${money(netOf(each).toString(), currency)} (${parts.join(', ')})`]);
  }
  if (account.length === 0) facts.push(['balance', 'nothing open']);
  const open = account.flatMap(({ documents }) =>
    documents.map((row) => [
      row.number,
      row.month,
      row.due_on ?? '',
      groupThousands(Amount.of(row.balance, row.currency).toString()),
      row.currency,
      row.held_at === null ? '' : 'on hold',
    ]),
  );
  const policies = partner.policies.map((policy) => [
    policy.policy_id,
    policy.name,
    policy.kind,
    cutRateText(policy.partner_cut_rate),
    policy.active ? '' : 'inactive',
  ]);
  return [
    `Partner ${partner.partner_id}`,
    ...facts.filter(([, value]) => value !== '').map(([label, value]) => `  ${label.padEnd(12)} ${printable(value)}`),
    ...(open.length === 0 ? [] : ['', table(['open', 'month', 'due', '>balance', '', ''], open)]),
    '',
    table(['~policy', '~name', 'kind', '>cut rate', ''], policies),
    ...cancellationOf(partner),
  ].join('\n');
}

function cancellationOf({ policies }: PartnerView) {
  const lines = policies.flatMap(({ policy_id, cancellation }) =>
    (cancellation ?? []).map((terms, at) => [at === 0 ? policy_id : '', cancellationText([terms]) ?? '']),
  );
  return lines.length === 0 ? [] : ['', table(['~policy', '~cancellation'], lines)];
}
