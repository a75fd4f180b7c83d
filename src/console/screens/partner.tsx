/** The overview of a partner. A partner's statement, terms and e-mails have their own pages. */

import {
  ActionLink,
  addressOf,
  amountColumn,
  balanceColumns,
  Card,
  Chip,
  Column,
  Facts,
  InvoiceLink,
  Money,
  mayDo,
  None,
  owedColumns,
  Screen,
  Seer,
  TableCard,
  Tabs,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import { OpenDispute, readOpenDisputes } from '#documents/disputes.sql';
import { refuse } from '#errors/refusals';
import { PartnerView as Partner, readPartners } from '#partners/partners.sql';
import { ReminderPause, readReminderPause } from '#payments/reminder-pauses.sql';
import { scopeOf } from '#people/roles';
import { isInScope, Scope } from '#people/scope';
import { OpenItem } from '#reports/open-items.sql';
import { PartnerBalance, readPartnerBalances } from '#reports/partner-balances';
import { plural } from '#text';
import { Child, HeldDocument, readChildren, readHeld, readUnapplied, UnappliedPayment } from './partner.sql.ts';

type PartnerOverview = Readonly<{
  partner: Partner;
  as_of: string;
  balances: readonly PartnerBalance[];
  /** Open invoices by due date, and then open credit. */
  items: readonly OpenItem[];
  unapplied: readonly UnappliedPayment[];
  held: readonly HeldDocument[];
  disputes: readonly OpenDispute[];
  children: readonly Child[];
  pause: ReminderPause | undefined;
}>;

/** Throws partner_unknown, also for a partner outside the user's scope. */
export async function readPartnerInScope(tx: Transaction, partnerId: string, scope: Scope): Promise<Partner> {
  const [partner] = isInScope(scope, partnerId) ? await readPartners(tx, partnerId) : [];
  if (partner === undefined) throw refuse('partner_unknown', { partner_id: partnerId });
  return partner;
}

export async function readPartner(
  tx: Transaction,
  partnerId: string,
  { today, scope }: { today: string; scope: Scope },
): Promise<PartnerOverview> {
  const partner = await readPartnerInScope(tx, partnerId, scope);
  const { as_of, balances, items } = await readPartnerBalances(tx, { today, scope: [partnerId] });
  return {
    partner,
    as_of,
    balances,
    items: items.toSorted((one, other) => ((one.due_on ?? '9') < (other.due_on ?? '9') ? -1 : 1)),
    unapplied: await readUnapplied(tx, { partnerId }),
    held: await readHeld(tx, { partnerId }),
    disputes: await readOpenDisputes(tx, { scope: [partnerId] }),
    children: await readChildren(tx, { partnerId, scope }),
    pause: await readReminderPause(tx, { partnerId, today }),
  };
}

const TABS = [
  ['', 'Overview'],
  ['/statement', 'Account statement'],
  ['/terms', 'Terms'],
  ['/emails', 'E-mails'],
] as const;

export function partnerFrame(partner: Partner, tab: (typeof TABS)[number][0]) {
  const path = `/console/partners/${partner.partner_id}`;
  return {
    frame: {
      place: 'partners' as const,
      title: partner.name,
      crumbs: [{ name: 'Partners', href: '/console/partners' }],
      tabs: (
        <Tabs
          label={`About ${partner.name}`}
          tabs={TABS.map(([each, name]) => ({ name, href: `${path}${each}`, current: each === tab }))}
        />
      ),
      lead: (
        <>
          {[partner.partner_id, partner.currency, partner.time_zone].join(' · ')}{' '}
          {!partner.active && <Chip>inactive</Chip>}
        </>
      ),
    },
    path: `${path}${tab}`,
  };
}

export function partnerScreen(view: PartnerOverview, { user }: { user: Seer }): Screen {
  const { partner } = view;
  return {
    ...partnerFrame(partner, '').frame,
    actions: (
      <>
        <a class="button" href={addressOf('/console/invoices', { partner: partner.partner_id })}>
          All documents
        </a>
        <a class="button" href={addressOf('/console/rows', { partner: partner.partner_id })}>
          This month’s rows
        </a>
        <a class="button" href={addressOf('/console/payments/all', { partner: partner.partner_id })}>
          All payments
        </a>
        <a class="button" href={addressOf('/console/queue/reversals', { view: 'all', partner: partner.partner_id })}>
          All reversals
        </a>
        <ActionLink
          user={user}
          action="payment.record"
          partner={partner.partner_id}
          input={{ partnerId: partner.partner_id }}
        >
          Record payment
        </ActionLink>
        {view.pause === undefined && (
          <ActionLink
            user={user}
            action="reminder.pause"
            partner={partner.partner_id}
            input={{ partnerId: partner.partner_id }}
          >
            Pause reminders
          </ActionLink>
        )}
      </>
    ),
    content: (
      <div class="stack">
        <Balances view={view} />
        <div class="columns">
          <OpenItems view={view} />
          <div class="stack">
            <Contact partner={partner} user={user} />
            <Waiting view={view} user={user} />
            {(partner.parent != null || view.children.length > 0) && <Family view={view} user={user} />}
          </div>
        </div>
      </div>
    ),
  };
}

/** Opens a form for a part of the partner. Its action's role covers all partners. */
export const ChangeLink = ({ user, partner, section }: { user: Seer; partner: Partner; section: string }) => (
  <ActionLink
    {...{ user, action: 'partner.change', partner: null, tone: 'small' }}
    input={{ partnerId: partner.partner_id, section }}
  >
    Change
  </ActionLink>
);

const Balances = ({ view: { balances, as_of } }: { view: PartnerOverview }) => (
  <TableCard
    title="Balance"
    note={`as of ${as_of}`}
    columns={BALANCE_COLUMNS}
    rows={balances}
    nothing="Nothing is open."
  />
);

const BALANCE_COLUMNS = [...balanceColumns('Unapplied cash'), amountColumn('Balance', 'net', { bare: true })];

const LISTED = 50;

function OpenItems({ view: { items, as_of, partner } }: { view: PartnerOverview }) {
  const columns: Column<OpenItem>[] = [
    {
      heading: 'Number',
      cell: ({ number }) => <InvoiceLink number={number} first />,
    },
    ...owedColumns(as_of),
  ];
  return (
    <TableCard
      title="Open items"
      note={plural(items.length, 'document')}
      columns={columns}
      rows={items.slice(0, LISTED)}
      nothing="All documents are settled."
    >
      {items.length > LISTED && (
        <div class="pager">
          <span />
          <a href={addressOf('/console/aging', { partner: partner.partner_id })}>{`All ${items.length}`}</a>
        </div>
      )}
    </TableCard>
  );
}

export function Contact({ partner, user }: { partner: Partner; user: Seer }) {
  const { invoicing_contact: contact, address } = partner;
  const place = [address.line1, address.line2, address.city, address.region, address.postal_code, address.country];
  return (
    <>
      <Card title="Contact" actions={<ChangeLink user={user} partner={partner} section="contact" />}>
        <Facts
          facts={[
            ['Name', contact.name],
            ['E-mail', contact.email === '' ? <Chip tone="bad">no e-mail address</Chip> : contact.email],
            ['Copies', contact.cc.join(', ')],
            ['Reminders', partner.reminder_email],
            ['Statements', partner.statement_email],
            ['Disputes', partner.dispute_email],
          ]}
        />
      </Card>
      <Card title="Name and address" actions={<ChangeLink user={user} partner={partner} section="address" />}>
        <Facts
          facts={[
            ['Name', partner.name],
            ['Address', place.filter((each) => each !== '').join(', ')],
          ]}
        />
      </Card>
    </>
  );
}

function Waiting({ view: { held, disputes, unapplied, pause, partner }, user }: { view: PartnerOverview; user: Seer }) {
  if (held.length + disputes.length + unapplied.length === 0 && pause === undefined)
    return (
      <Card title="To do">
        <p class="soft">No holds, disputes or unapplied cash.</p>
      </Card>
    );
  const action = (name: string, input: Readonly<Record<string, string>>, text: string) => (
    <ActionLink user={user} action={name} partner={partner.partner_id} input={input}>
      {text}
    </ActionLink>
  );
  const number = (number: string) => <InvoiceLink number={number} />;
  return (
    <Card title="To do">
      <ul class="ticks plain">
        {pause !== undefined && (
          <li>
            <div>
              {'Reminders '} <Chip tone="warn">{`paused through ${pause.until}`}</Chip>
              <p class="soft">{pause.reason}</p>
            </div>
            {action('reminder.resume', { partnerId: partner.partner_id }, 'End')}
          </li>
        )}
        {held.map((each) => (
          <li>
            <div>
              {number(each.number)} <Chip tone="warn">on hold</Chip>
              <p class="soft">{each.reason === '' ? `since ${each.held_at.slice(0, 10)}` : each.reason}</p>
            </div>
            {action('invoice.release', { number: each.number }, 'Release')}
          </li>
        ))}
        {disputes.map((each) => (
          <li>
            <div>
              {number(each.number)} <Chip tone="warn">disputed</Chip>{' '}
              <Money amount={each.amount} currency={each.currency} />
              <p class="soft">
                {[each.reason, each.owner, each.promised_on && `promised for ${each.promised_on}`]
                  .filter(Boolean)
                  .join(' · ')}
              </p>
            </div>
            {action('dispute.close', { number: each.number }, 'Close')}
          </li>
        ))}
        {unapplied.map((each) => (
          <li>
            <div>
              <Money amount={each.amount} currency={each.currency} /> <Chip>unapplied</Chip>
              <p class="soft">{`received ${each.received_on}, ${each.reference}`}</p>
            </div>
            {mayDo(user, 'payment.apply', partner.partner_id) && (
              <a class="button" href={`/console/payments/${each.payment_id}`}>
                Apply
              </a>
            )}
          </li>
        ))}
      </ul>
      {unapplied.length > 0 && partner.parent != null && (
        <p class="soft">Its parent pays for it: cash may belong to the parent's account.</p>
      )}
    </Card>
  );
}

const Family = ({ view: { partner, children }, user }: { view: PartnerOverview; user: Seer }) => (
  <Card title="Parent and children">
    <Facts
      facts={[
        [
          'Parent',
          partner.parent != null &&
            (isInScope(scopeOf(user, 'viewer') ?? null, partner.parent) ? (
              <a href={`/console/partners/${partner.parent}`}>{partner.parent}</a>
            ) : (
              partner.parent
            )),
        ],
        [
          'Pays for',
          children.length === 0 ? (
            <None />
          ) : (
            children.map(({ partner_id, name }) => (
              <span class="line">
                <a href={`/console/partners/${partner_id}`}>{name}</a>
              </span>
            ))
          ),
        ],
      ]}
    />
  </Card>
);
