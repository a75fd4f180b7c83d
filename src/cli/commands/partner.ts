/** `reckoner partner list|show|history`. */
import type { Transaction } from '../../database/transaction.ts';
import { readTemplate } from '../../documents/pdf/template.ts';
import { addressLines } from '../../documents/present.ts';
import { type DocumentRow, readDocuments } from '../../documents/queries.ts';
import { refuse } from '../../errors/refusals.ts';
import { Amount, groupThousands } from '../../money.ts';
import { readPartnerChanges } from '../../partners/changes.ts';
import { type PartnerView, readPartners } from '../../partners/queries.ts';
import { readPayments } from '../../payments/queries.ts';
import type { Sheet } from '../../sheet.ts';
import { presentChanges } from '../changes.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { money, printable, table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (partner, act) => {
  partner
    .command('list')
    .description('List all partners')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(partnerList)));
  partner
    .command('show <id>')
    .description('Show a partner with its balance, open documents and policies')
    .action(act(reading(partnerShow)));
  partner
    .command('history <id>')
    .description('Show which fields of a partner changed, when and by whom')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(partnerHistory)));
};

async function partnerHistory({ database, output }: CommandContext, partnerId: string, options: PresentOptions) {
  const events = await database.reading(async (tx) => {
    if ((await readPartners(tx, partnerId))[0] === undefined)
      throw refuse('partner_unknown', { partner_id: partnerId });
    return readPartnerChanges(tx, partnerId);
  });
  await presentChanges(output, options, events, `No change of ${partnerId} is recorded.`);
}

async function partnerList({ database, output }: CommandContext, options: PresentOptions): Promise<void> {
  const partners = await database.reading((tx) => readPartners(tx));
  await present(
    output,
    options,
    partners.map(asFile),
    () => sheetOf(partners),
    () => (partners.length === 0 ? "No partners yet. Add them with 'reckoner partner import FILE'." : listed(partners)),
  );
}

const sheetOf = (partners: readonly PartnerView[]): Sheet => ({
  name: 'Partners',
  columns: {
    partner_id: 'text',
    name: 'text',
    ...ADDRESS,
    contact: 'text',
    email: 'text',
    cc: 'text',
    currency: 'text',
    time_zone: 'text',
    payment_terms_days: 'count',
    tax_id: 'text',
    purchase_order: 'text',
    arrangement: 'text',
    policies: 'count',
    active: 'text',
  },
  rows: partners.map(({ invoicing_contact: contact, address, ...partner }) => ({
    ...partner,
    ...address,
    contact: contact.name,
    email: contact.email,
    cc: contact.cc.join(' '),
    policies: partner.policies.filter((policy) => policy.active).length,
    active: partner.active ? 'yes' : 'no',
  })),
});

const ADDRESS = {
  line1: 'text',
  line2: 'text',
  city: 'text',
  region: 'text',
  postal_code: 'text',
  country: 'text',
} as const;

function listed(partners: readonly PartnerView[]): string {
  return table(
    ['~partner', '~name', 'currency', 'time zone', 'policies', ''],
    partners.map((partner) => [
      partner.partner_id,
      partner.name,
      partner.currency,
      partner.time_zone,
      partner.policies.filter((policy) => policy.active).length,
      partner.active ? '' : 'inactive',
    ]),
  );
}

async function partnerShow({ database, output }: CommandContext, partnerId: string): Promise<void> {
  const [partner, account] = await database.reading(
    async (tx) => [(await readPartners(tx, partnerId))[0], await readAccount(tx, partnerId)] as const,
  );
  if (partner === undefined) throw refuse('partner_unknown', { partner_id: partnerId });
  output.print({ ...asFile(partner), account: account.map(accountJson) }, () => describe(partner, account));
}

/** The shape of partners.json, without fields that do not apply. */
function asFile(partner: PartnerView): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries({
      ...partner,
      account_statement: partner.account_statement === 'none' ? null : partner.account_statement,
      policies: partner.policies.map(({ price, ...policy }) => (price === null ? policy : { ...policy, price })),
    }).filter(([, value]) => value !== null),
  );
}

/** What is open of a partner in one currency. */
interface Account {
  readonly currency: string;
  readonly open: Amount;
  readonly credit: Amount;
  readonly unapplied: Amount;
  readonly documents: readonly DocumentRow[];
}

const netOf = ({ open, credit, unapplied }: Account): Amount => open.minus(credit).minus(unapplied);

async function readAccount(tx: Transaction, partnerId: string): Promise<Account[]> {
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

function describe(partner: PartnerView, account: readonly Account[]): string {
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
    ['terms', partner.payment_terms_days === null ? "the issuer's" : `${partner.payment_terms_days} days`],
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
    policy.partner_cut_rate,
    policy.active ? '' : 'inactive',
  ]);
  return [
    `Partner ${partner.partner_id}`,
    ...facts.filter(([, value]) => value !== '').map(([label, value]) => `  ${label.padEnd(12)} ${printable(value)}`),
    ...(open.length === 0 ? [] : ['', table(['open', 'month', 'due', '>balance', '', ''], open)]),
    '',
    table(['~policy', '~name', 'kind', '>cut rate', ''], policies),
  ].join('\n');
}
