import { Settings } from '#config/settings';
import { ChangeLog } from '#console/change-log';
import { consoleHref, ListTable, ListView, readList } from '#console/list';
import {
  ActionLink,
  Card,
  Chip,
  Column,
  Facts,
  MoreActions,
  None,
  RareAction,
  Screen,
  Seer,
  TableCard,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import { clients } from '#lists/clients';
import { Webhook, webhookOf, withoutSecrets } from '#partner-events/webhook';
import { readWebhooks } from '#partner-events/webhooks.sql';
import { cancellationText, WITHOUT_TERMS } from '#partners/cancellation';
import { readPartnerChanges } from '#partners/changes';
import { cutRateText } from '#partners/cut-rate';
import { ALWAYS, Arrangement, PartnerView as Partner, readArrangements } from '#partners/partners.sql';
import { paymentTermsText } from '#partners/payment-terms';
import { Installation } from '#people/audit-events';
import { ChangeEvent } from '#people/audit-events.sql';
import { Scope } from '#people/scope';
import { names, plural } from '#text';
import { readInactivePolicies } from './partner.sql.ts';
import { ChangeLink, partnerFrame, readPartnerInScope } from './partner.tsx';

/** What was agreed with a partner. */
export type AgreedTerms = Readonly<{
  partner: Partner;
  issuerTerms: number;
  arrangements: readonly Arrangement[];
  inactive: ReadonlyMap<string, string>;
}>;

type PartnerTermsView = AgreedTerms &
  Readonly<{
    clients: ListView;
    webhook: Webhook | null;
    changes: readonly ChangeEvent[];
  }>;

export const readAgreedTerms = async (
  tx: Transaction,
  partnerId: string,
  { scope, settings }: { scope: Scope; settings: Settings },
): Promise<AgreedTerms> => ({
  partner: await readPartnerInScope(tx, partnerId, scope),
  issuerTerms: settings.payment_terms_days,
  arrangements: (await readArrangements(tx, partnerId)).reverse(),
  inactive: await readInactivePolicies(tx, partnerId),
});

export async function readPartnerTerms(
  tx: Transaction,
  partnerId: string,
  { scope, today, ...context }: Installation & Readonly<{ scope: Scope; today: string }>,
): Promise<PartnerTermsView> {
  const agreed = await readAgreedTerms(tx, partnerId, { scope, settings: context.settings });
  const [webhook] = await readWebhooks(tx, partnerId);
  return {
    ...agreed,
    clients: await readList(tx, clients, { partner: partnerId }, { scope, period: null, today, context }),
    webhook: webhook === undefined ? null : { ...webhookOf(webhook), url: withoutSecrets(webhook.url ?? '') },
    changes: await readPartnerChanges(tx, partnerId),
  };
}

export function partnerTermsScreen(view: PartnerTermsView, { user }: { user: Seer }): Screen {
  const { partner, changes } = view;
  return {
    ...partnerFrame(partner, '/terms').frame,
    content: (
      <div class="columns">
        <div class="stack">
          <Policies view={view} user={user} />
          <Card title="Changes" note="latest first">
            <ChangeLog events={changes} nothing="No changes are recorded." />
          </Card>
        </div>
        <div class="stack">
          <Agreed view={view} user={user} />
          <Clients view={view} user={user} />
        </div>
      </div>
    ),
  };
}

type Shown = Readonly<{ view: AgreedTerms; user: Seer }>;

/** The terms, tax and way of payment. Users without a role get no links to change them. */
export const Agreed = ({ view, user }: Shown) => (
  <>
    <Terms view={view} user={user} />
    <TaxAndEInvoice partner={view.partner} user={user} />
    <Arrangements view={view} user={user} />
  </>
);

export const Policies = ({ view, user }: Shown) => (
  <TableCard
    title="Policies"
    note={plural(view.partner.policies.length, 'policy', 'policies')}
    actions={
      <ActionLink
        {...{ user, action: 'partner.change', partner: null, tone: 'small' }}
        input={{ partnerId: view.partner.partner_id, section: 'new_policy' }}
      >
        Add a policy
      </ActionLink>
    }
    columns={policyColumns(view, user)}
    rows={view.partner.policies}
    nothing="No policies."
  />
);

type Policy = Partner['policies'][number];

const policyColumns = ({ inactive, partner }: AgreedTerms, user: Seer): readonly Column<Policy>[] => [
  {
    heading: 'Policy',
    cell: ({ policy_id, name, active, purchase_order: purchaseOrder }) => (
      <>
        {name} <span class="count">{policy_id}</span>{' '}
        {purchaseOrder !== '' && <span class="soft">{`PO ${purchaseOrder} `}</span>}
        {!active && <Chip>{`inactive since ${inactive.get(policy_id)}`}</Chip>}
        {user.roles.length > 0 && (
          <p>
            {[
              ['policy', 'Change'],
              ['rate', 'Cut'],
              ['cancellation', 'Cancellation'],
            ].map(([section = '', name = '']) => (
              <>
                <ActionLink
                  {...{ user, action: 'partner.change', partner: null, tone: 'plain' }}
                  input={{ partnerId: partner.partner_id, policyId: policy_id, section }}
                >
                  {name}
                </ActionLink>{' '}
              </>
            ))}
          </p>
        )}
      </>
    ),
  },
  {
    heading: 'Kind',
    cell: ({ kind }) => <span class="soft">{kind === 'insurance' ? 'insurance' : 'not insurance'}</span>,
  },
  { heading: "Partner's cut", number: true, cell: ({ partner_cut_rate }) => cutRateText(partner_cut_rate, percent) },
  { heading: 'Price', number: true, cell: ({ price }) => (price == null ? <None /> : percent(price.rate)) },
  { heading: 'Minimum price', number: true, cell: ({ price }) => (price == null ? <None /> : price.minimum) },
  {
    heading: 'Cancellation',
    cell: ({ cancellation }) =>
      cancellation === null || cancellation.length === 0 ? (
        <span class="soft">{WITHOUT_TERMS}</span>
      ) : (
        cancellation.map((terms) => <span class="line">{cancellationText([terms])}</span>)
      ),
  },
];

/** Shows `0.30` as `30 %`. Shifts digits instead of calculating, so no digit is rounded. */
export function percent(rate: string): string {
  const [whole = '0', fraction = ''] = rate.split('.');
  const digits = fraction.padEnd(2, '0');
  const shown = `${whole}${digits.slice(0, 2)}`.replace(/^0+(?=\d)/, '');
  const rest = digits.slice(2).replace(/0+$/, '');
  return `${shown}${rest === '' ? '' : `.${rest}`}\u00a0%`;
}

const Terms = ({ view: { partner, issuerTerms }, user }: Shown) => (
  <Card title="Terms" actions={<ChangeLink user={user} partner={partner} section="terms" />}>
    <Facts
      facts={[
        ['Currency', partner.currency],
        ['Time zone', partner.time_zone],
        ['Due after', paymentTermsText(partner, issuerTerms)],
        ['Purchase order', partner.purchase_order],
        ['Legal note', partner.legal_note],
        ['Feed', partner.feed === 'strict' ? 'strict: unusual rows stop the close' : ''],
        ['Account statement', partner.account_statement === 'monthly' ? 'by e-mail each month' : 'on request'],
      ]}
    />
  </Card>
);

const TaxAndEInvoice = ({ partner, user }: { partner: Partner; user: Seer }) => (
  <Card title="Tax and e-invoice" actions={<ChangeLink user={user} partner={partner} section="tax" />}>
    <Facts
      facts={[
        ['Tax id', partner.tax_id],
        ['E-invoice', partner.e_invoice === 'none' ? '' : partner.e_invoice],
        ['Buyer reference', partner.buyer_reference],
        ['Electronic address', partner.electronic_address],
      ]}
    />
  </Card>
);

const Arrangements = ({ view: { arrangements, partner }, user }: Shown) => (
  <Card title="How it pays" actions={<ChangeLink user={user} partner={partner} section="payment" />}>
    <ol class="changes">
      {arrangements.map((each) => (
        <li>
          <p class="soft">{each.from_month === ALWAYS ? 'from the start' : `from ${each.from_month}`}</p>
          <Facts
            facts={[
              ['Arrangement', each.arrangement === 'invoicing' ? 'invoiced monthly' : 'through the processor'],
              ['Connected account', each.connected_account_id],
              ['State', each.connected_account_state],
              ['Merchant of record', each.merchant_of_record?.replace('_', ' ')],
              ['Split', each.split === 'real_time' ? 'in real time' : each.split],
              ['Platform is paid out in', each.settlement_currencies?.join(', ')],
              [
                'Balance transactions',
                each.balance_transactions_from && `from the ${each.balance_transactions_from.replace('_', ' ')}`,
              ],
            ]}
          />
        </li>
      ))}
    </ol>
  </Card>
);

function webhookActions({ webhook, partner: { partner_id: partnerId } }: PartnerTermsView): RareAction[] {
  const names: [action: string, name: string][] = [
    ['webhook.set', webhook === null ? 'Set a webhook' : 'Change the webhook'],
    ...(webhook === null
      ? []
      : ([
          ['webhook.rotate', 'New webhook secret'],
          ['webhook.resume', 'Resume the webhook'],
          ['webhook.remove', 'Remove the webhook'],
        ] as [string, string][])),
  ];
  return names.map(([action, name]) => ({ action, name, partner: partnerId, input: { partnerId } }));
}

function Clients({ view, user }: { view: PartnerTermsView; user: Seer }) {
  const { webhook, partner } = view;
  const { partner_id: partnerId } = partner;
  return (
    <Card
      title="API"
      actions={
        <>
          <ActionLink user={user} action="client.create" partner={partnerId} input={{ partnerId }}>
            New client
          </ActionLink>
          <MoreActions user={user} actions={webhookActions(view)} />
        </>
      }
      flush
    >
      <ListTable
        {...{ view: view.clients, user, path: '/console/settings/clients', hrefOf: consoleHref }}
        face={names('client_id used secrets_mark')}
        nothing="No API clients."
      />
      {webhook !== null && (
        <div class="in">
          <Facts
            facts={[
              ['Webhook', webhook.url],
              [
                'State',
                <Chip tone={webhook.state === 'active' ? 'good' : webhook.state === 'failing' ? 'warn' : 'bad'}>
                  {webhook.state}
                </Chip>,
              ],
              ['Events', `${webhook.acknowledged} acknowledged, ${webhook.waiting} waiting`],
              ['Last failure', webhook.last_failure],
            ]}
          />
        </div>
      )}
    </Card>
  );
}
