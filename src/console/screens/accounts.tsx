import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { Blocks } from '#console/blocks';
import {
  ActionLink,
  addressOf,
  amountColumn,
  Card,
  Chip,
  Column,
  choiceAsked,
  DataTable,
  Downloads,
  Instant,
  idAsked,
  MoreActions,
  monthAsked,
  None,
  Pager,
  RareAction,
  Screen,
  Seer,
  Tabs,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import { readPartnerNames } from '#partners/partners.sql';
import { isInScope, Scope } from '#people/scope';
import { partnersBlocks, payoutsBlocks } from '#reports/reconciliation';
import { reconciliationSheet } from '#reports/sheets';
import { Sheet } from '#sheet';
import { AccountHealth, readAccountReadings } from '#splits/account-health';
import { readAccountsInScope, readStatementMonths } from '#splits/accounts.sql';
import { needsWork, Reconciliation, ReconciliationException, reconcileMonth } from '#splits/reconcile-month';
import { payoutNeedsWork } from '#splits/verdicts';
import { Month, monthBefore, monthName, plural } from '#values';
import { ExceptionCell, ExceptionStatus } from './exception.tsx';

export type AccountsQuestion = Readonly<Partial<Record<'month' | 'show' | 'after', string>>>;

type AccountsReconciliation = Pick<
  Reconciliation,
  'month' | 'partners' | 'exceptions' | 'payouts' | 'not_paid_out' | 'other_balance_transactions' | 'not_billable'
>;

type AccountsView = Readonly<{
  found: AccountsReconciliation;
  months: readonly Month[];
  health: Pick<AccountHealth, 'accounts' | 'stale'>;
  names: ReadonlyMap<string, string>;
  /** The accounts that belong only to partners in the user's scope. */
  owned: ReadonlySet<string>;
  all: boolean;
  after: number;
}>;

const PATH = '/console/accounts';
const PAGE = 50;

export async function readAccounts(
  tx: Transaction,
  asked: AccountsQuestion,
  {
    today,
    scope,
    environment,
    settings,
  }: { today: string; scope: Scope; environment: Environment; settings: Settings },
): Promise<AccountsView> {
  const now = environment.now();
  const months = await readStatementMonths(tx);
  const [latest] = months;
  const month = monthAsked('month', asked.month) ?? latest ?? monthBefore(today.slice(0, 7) as Month);
  const { accounts, stale } = await readAccountReadings(tx, now);
  const accountsSeen = await readAccountsInScope(tx, scope);
  return {
    months,
    found: inScope(await reconcileMonth(tx, { settings, now }, month), scope, accountsSeen),
    health: {
      accounts: accounts.filter(({ account }) => accountsSeen.has(account)),
      stale: stale.filter((account) => accountsSeen.has(account)),
    },
    names: await readPartnerNames(tx),
    owned: accountsSeen,
    all: choiceAsked('show', asked.show, ['all']) !== undefined,
    after: idAsked('after', asked.after) ?? 0,
  };
}

/** Items without a known partner, or on a shared account, require access to all partners. */
function inScope(found: Reconciliation, scope: Scope, accounts: ReadonlySet<string>): AccountsReconciliation {
  if (scope === null) return found;
  const isOwn = ({ partner_id }: { partner_id: string | null }) => partner_id !== null && isInScope(scope, partner_id);
  const ofAccount = ({ account }: { account: string }) => accounts.has(account);
  return {
    month: found.month,
    partners: found.partners.filter(isOwn),
    exceptions: found.exceptions.filter(isOwn).map((each) => ({
      ...each,
      candidates: each.candidates.filter(isOwn),
      named: each.named.filter(isOwn),
      other_accounts: each.other_accounts.filter((account) => accounts.has(account)),
    })),
    payouts: found.payouts.filter(ofAccount),
    not_paid_out: found.not_paid_out.filter(ofAccount),
    other_balance_transactions: found.other_balance_transactions.filter(ofAccount),
    not_billable: found.not_billable.filter(isOwn),
  };
}

export const sheetOfAccounts = ({ found }: AccountsView): Sheet => reconciliationSheet(found.month, found.exceptions);

const RARE: readonly RareAction[] = [
  { action: 'processor.import', partner: null, name: 'Import a settlement file' },
  { action: 'processor.match', partner: null, name: 'Match a balance transaction' },
  { action: 'processor.unmatch', partner: null, name: 'Undo a match' },
  { action: 'processor.close', partner: null, name: 'Close unmatched transactions' },
  { action: 'processor.reverse', partner: null, name: 'Record one reversed transfer' },
];

export function accountsScreen(view: AccountsView, { user }: { user: Seer }): Screen {
  const { found, months, health } = view;
  const open = found.exceptions.filter(needsWork).length;
  const payouts = found.payouts.filter(({ status }) => payoutNeedsWork(status)).length + found.not_paid_out.length;
  return {
    place: 'accounts',
    title: 'Accounts',
    lead: `reconciliation of ${monthName(found.month)}`,
    actions: (
      <>
        <ActionLink user={user} action="processor.reverse_month" partner={null} input={{ month: found.month }}>
          Record reversals
        </ActionLink>
        <ActionLink user={user} action="shares.bill" partner={null} input={{ month: found.month }}>
          Bill missing shares
        </ActionLink>
        <Downloads path={PATH} question={{ month: found.month }} />
        <MoreActions user={user} actions={RARE} />
      </>
    ),
    content: (
      <>
        <form class="filters" action={PATH}>
          <label class="field">
            Month
            <input name="month" value={found.month} list="months" pattern="\d{4}-\d\d" size={9} />
            <datalist id="months">
              {months.map((month) => (
                <option value={month} />
              ))}
            </datalist>
          </label>
          <button type="submit">Show</button>
          <Chip tone={open === 0 ? 'good' : 'bad'}>{open === 0 ? 'reconciled' : `${open} open`}</Chip>
          {payouts > 0 && <Chip tone="bad">{`${plural(payouts, 'payout')} to check`}</Chip>}
          {health.stale.length > 0 && <Chip tone="warn">{`${plural(health.stale.length, 'account')} not read`}</Chip>}
        </form>
        <div class="stack">
          <Blocks blocks={partnersBlocks(found, view.names)} />
          {found.partners.length === 0 && (
            <p class="nothing">No partner with a connected account has rows in this month.</p>
          )}
          <Exceptions view={view} user={user} />
          <div class="columns">
            <div class="stack">
              <Blocks blocks={payoutsBlocks(found, PAGE)} />
              {found.payouts.length === 0 && <p class="nothing">No payouts this month.</p>}
            </div>
            <Health view={view} />
          </div>
        </div>
      </>
    ),
  };
}

function Exceptions({ view: { found, names, all, after, owned }, user }: { view: AccountsView; user: Seer }) {
  const { month } = found;
  const listed = found.exceptions
    .filter((each) => all || needsWork(each))
    .toSorted((one, other) => Number(needsWork(other)) - Number(needsWork(one)) || other.age_days - one.age_days);
  const shown = listed.slice(after, after + PAGE);
  const question = { month, show: all ? 'all' : undefined };
  const columns: Column<ReconciliationException>[] = [
    {
      heading: 'Quote or transaction',
      cell: (each) => (
        <ExceptionCell exception={each} names={names} user={user} owned={owned.has(each.account ?? '')} />
      ),
    },
    { heading: 'Status', cell: (each) => <ExceptionStatus exception={each} /> },
    { heading: 'Days', number: true, cell: ({ age_days }) => age_days },
    amountColumn('Expected', 'expected', { quiet: true, bare: true }),
    amountColumn('Transferred', 'routed', { quiet: true, bare: true }),
    amountColumn('Open', 'open', { quiet: true }),
  ];
  return (
    <Card title="Exceptions" note={plural(listed.length, all ? 'exception' : 'open exception')} flush>
      <div class="in">
        <Tabs
          label="Which exceptions"
          tabs={[
            { name: 'Open', href: addressOf(PATH, { month }), current: !all },
            { name: 'All', href: addressOf(PATH, { month, show: 'all' }), current: all },
          ]}
        />
      </div>
      <DataTable
        columns={columns}
        rows={shown}
        nothing={all ? 'All quotes are matched to the cent.' : 'Nothing is open.'}
        caption="Exceptions"
      />
      <Pager
        first={after === 0 ? null : addressOf(PATH, question)}
        next={after + PAGE < listed.length ? addressOf(PATH, { ...question, after: after + PAGE }) : null}
      />
    </Card>
  );
}

const Health = ({ view: { health, names } }: { view: AccountsView }) => (
  <Card title="Accounts" note={plural(health.accounts.length, 'account')}>
    {health.accounts.length === 0 && <p class="soft">No connected account is in use.</p>}
    <ol class="changes">
      {health.accounts.map(({ account, partners, balance_transactions_from, read_to, followed }) => (
        <li>
          <code class="hash">{account}</code>{' '}
          {health.stale.includes(account) && <Chip tone="bad">not read for two days</Chip>}{' '}
          {followed && <Chip>followed by another</Chip>}
          <p class="soft">
            {partners.map((id) => names.get(id) ?? id).join(', ')}
            {balance_transactions_from === 'processor'
              ? ' · read from the processor through '
              : ' · settlement files, latest from '}
            {read_to === null ? <None /> : <Instant at={read_to} />}
          </p>
        </li>
      ))}
    </ol>
  </Card>
);
