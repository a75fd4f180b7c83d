/** The current settings, read-only and without secrets. */
import { ComponentChildren } from 'preact';
import { ACTIONS } from '#actions/loaded';
import { Environment, isThisMachine } from '#config/environment';
import { SECTION_NAMES, SECTIONS, Section, Settings } from '#config/settings';
import {
  ActionLink,
  addressOf,
  Card,
  Chip,
  Column,
  Facts,
  Icon,
  MoreActions,
  RareAction,
  Screen,
  Seer,
  TableCard,
} from '#console/parts';
import { Remedies } from '#console/remedies';
import { Transaction } from '#database/transaction';
import { addressLine, bankDetails, PaymentFact } from '#documents/present';
import { fieldWords } from '#field-names';
import { countDeliveries, countOtherEmails, EmailCounts, readMailFailure } from '#mail/outbox.sql';
import { changeText } from '#people/field-changes';
import { Differences, isFileOlder, proposedByFiles } from '#people/settings-in-force';
import { Gap, readReadiness } from '#reports/readiness';
import { counted, plural } from '#text';

type SettingsView = Readonly<{
  settings: Settings;
  environment: Environment['name'];
  /** The mail server's address, without user name and password. */
  mailServer: string | null;
  signsMail: boolean;
  signsCheckpoints: boolean;
  missing: readonly Gap[];
  differences: readonly Differences[];
  /** The sections whose file still states what was in force before the adoption. */
  older: readonly Section[];
  documents: EmailCounts;
  others: EmailCounts;
  mailFailing: Readonly<{ since: string; reason: string }> | null;
}>;

export async function readSettingsView(
  tx: Transaction,
  { environment, settings }: { environment: Environment; settings: Settings },
): Promise<SettingsView> {
  return {
    settings,
    environment: environment.name,
    mailServer: hostOf(environment.smtpUrl),
    signsMail: environment.dkimKey !== undefined,
    signsCheckpoints: environment.logKey !== undefined,
    missing: (await readReadiness(tx, { environment, settings })).missing,
    differences: proposedByFiles({ environment, settings }),
    older: SECTION_NAMES.filter((section) => isFileOlder({ environment, settings }, section)),
    documents: await countDeliveries(tx),
    others: await countOtherEmails(tx),
    mailFailing: await readMailFailure(tx),
  };
}

function hostOf(smtpUrl: string | undefined) {
  if (smtpUrl === undefined || !URL.canParse(smtpUrl)) return null;
  const { hostname, port } = new URL(smtpUrl);
  return isThisMachine(hostname) ? 'this machine' : `${hostname}${port === '' ? '' : `:${port}`}`;
}

const SETTINGS = '/console/settings';

const RARE: readonly RareAction[] = [
  { action: 'reminder.record', partner: null, name: 'Send the payment reminders that are due' },
  { action: 'delivery.retry', partner: null, name: 'Send unsent e-mails again' },
  { action: 'email.bounces', partner: null, name: 'Record returned e-mails' },
  { action: 'ledger.pause', partner: null, name: 'Pause the ledger' },
];

export function settingsScreen(view: SettingsView, { user }: { user: Seer }): Screen {
  const frame = { place: 'settings', title: 'Settings', tab: SETTINGS } as const;
  return {
    ...frame,
    lead: view.environment,
    actions: (
      <>
        <a class="button" href="/console/audit/settings">
          Changes
        </a>
        <MoreActions user={user} actions={RARE} />
      </>
    ),
    content: (
      <div class="columns">
        <div class="stack">
          <Missing missing={view.missing} environment={view.environment} user={user} />
          <Sections view={view} user={user} />
          <BankDetails settings={view.settings} />
        </div>
        <div class="stack">
          <Issuer settings={view.settings} />
          <Mail view={view} />
          <Approvals settings={view.settings} />
          <Rules view={view} />
        </div>
      </div>
    ),
  };
}

/** Longer lists are collapsed. */
const GAPS_SHOWN = 8;

function Missing({
  missing,
  environment,
  user,
}: {
  missing: readonly Gap[];
  environment: Environment['name'];
  user: Seer;
}) {
  const line = ({ scope, id, needs, partners, remedies = [] }: Gap) => (
    <li>
      <Icon kind="missing" tone="warn" />
      <div>
        <strong title={id}>{fieldWords(id)}</strong> <span class="count">{scope}</span>
        <p class="soft">
          {`needs ${needs}`}
          {partners !== undefined && ` (${plural(partners.length, 'partner')})`}{' '}
          <Remedies remedies={remedies} user={user} partner={null} tone="small" />
        </p>
      </div>
    </li>
  );
  return (
    <Card
      title={environment === 'production' ? 'What is missing' : 'What production still needs'}
      note={missing.length > 0 && plural(missing.length, 'thing')}
    >
      {missing.length === 0 && (
        <ul class="ticks">
          <li>
            <Icon kind="done" tone="good" />
            <span>Nothing: all settings, variables, currencies and partners are complete.</span>
          </li>
        </ul>
      )}
      <ul class="ticks">{missing.slice(0, GAPS_SHOWN).map(line)}</ul>
      {missing.length > GAPS_SHOWN && (
        <details>
          <summary>{`${missing.length - GAPS_SHOWN} more`}</summary>
          <ul class="ticks">{missing.slice(GAPS_SHOWN).map(line)}</ul>
        </details>
      )}
    </Card>
  );
}

/** Each section: since when it is in force, what its file states otherwise, and a form to propose a change. */
function Sections({ view: { settings, differences, older }, user }: { view: SettingsView; user: Seer }) {
  const isAdopted = (section: Section) => settings.sections?.adopted.includes(section);
  const columns: Column<Section>[] = [
    { heading: 'Settings', cell: (section) => <span class="number">{SECTIONS[section]}</span> },
    {
      heading: 'In force',
      cell: (section) => (
        <>
          {isAdopted(section) ? 'as adopted' : 'as in the file'}
          {older.includes(section) && <span class="line soft">The server's file is older.</span>}
          {differences
            .filter((each) => each.section === section)
            .flatMap(({ changes }) => changes)
            .map((change) => (
              <span class="line problem">{`The file states ${changeText(change)}`}</span>
            ))}
        </>
      ),
    },
    {
      heading: 'Actions',
      cell: (section) => (
        <>
          <ActionLink user={user} action="settings.adopt" partner={null} input={{ section, edit: 'yes' }} tone="small">
            Propose a change
          </ActionLink>{' '}
          {differences.some((each) => each.section === section) && (
            <ActionLink user={user} action="settings.adopt" partner={null} input={{ section }} tone="small">
              Adopt the file
            </ActionLink>
          )}
        </>
      ),
    },
  ];
  return <TableCard title="Settings in force" columns={columns} rows={SECTION_NAMES} />;
}

function BankDetails({ settings }: { settings: Settings }) {
  const currencies = Object.entries(settings.instructions);
  return (
    <Card
      title="Bank details"
      note="as documents print them"
      actions={
        <a class="button" href={addressOf('/console/audit', { action: 'settings.change' })}>
          Who changed them
        </a>
      }
    >
      {currencies.length === 0 && <p class="soft">No bank details are set: invoices will be held.</p>}
      <ol class="changes">
        {currencies.map(([currency, instructions]) => {
          const { ach, wire } = bankDetails(instructions);
          return (
            <li>
              <h3>{currency === '*' ? 'Any other currency' : currency}</h3>
              {ach !== null && <Account title="ACH" facts={ach} />}
              {wire !== null && <Account title="Wire" facts={wire} />}
              {ach === null && wire === null && <p class="soft">Not filled in.</p>}
            </li>
          );
        })}
      </ol>
    </Card>
  );
}

const Account = ({ title, facts }: { title: string; facts: readonly PaymentFact[] }) => (
  <>
    <p class="soft">{title}</p>
    <Facts
      facts={facts.map(({ label, value, address, kind }) => [
        label,
        <>
          {kind === 'number' ? <code>{value}</code> : value}
          {address !== null && <span class="line soft">{addressLine(address)}</span>}
        </>,
      ])}
    />
  </>
);

const Issuer = ({ settings: { issuer, public_url, time_zone } }: { settings: Settings }) => (
  <Card title="Issuer">
    <Facts
      facts={[
        ['Name', issuer.legal_name],
        ['Address', addressLine(issuer.address)],
        ['E-mail', issuer.email],
        ['Phone', issuer.phone],
        ['Tax id', issuer.tax_id],
        ['Logo', issuer.logo === null ? 'none' : `${issuer.logo.width} × ${issuer.logo.height} px`],
        ['Public address', public_url],
        ['Time zone', time_zone],
      ]}
    />
  </Card>
);

function Mail({ view: { settings, mailServer, signsMail, documents, others, mailFailing } }: { view: SettingsView }) {
  const howTheyStand = ({ sent, pending, held, failed, uncertain }: EmailCounts) =>
    [
      `${counted(sent)} sent`,
      ...(
        [
          [pending, 'pending'],
          [held, 'held'],
          [failed, 'failed'],
          [uncertain, 'uncertain'],
        ] as const
      )
        .filter(([count]) => count > 0)
        .map(([count, what]) => `${count} ${what}`),
    ].join(', ');
  return (
    <Card title="Mail">
      <Facts
        facts={[
          [
            'State',
            mailFailing === null ? (
              <Chip tone={mailServer === null ? 'warn' : 'good'}>
                {mailServer === null ? 'no mail server: kept in outbox/' : 'working'}
              </Chip>
            ) : (
              <>
                <Chip tone="bad">failing</Chip> {`since ${mailFailing.since.slice(0, 10)}: ${mailFailing.reason}`}
              </>
            ),
          ],
          ['Server', mailServer],
          ['From', settings.mail_from],
          ['Reply to', settings.reply_to],
          ['Signed', signsMail ? `DKIM, selector ${settings.dkim.selector}` : 'no DKIM key'],
          ['Documents', howTheyStand(documents)],
          ['Other e-mails', howTheyStand(others)],
          ['Finance', settings.finance_email],
          ['Auditor', settings.auditor_email],
          ['Operations', settings.operations_email],
        ]}
      />
    </Card>
  );
}

function Approvals({ settings }: { settings: Settings }) {
  const rules = Object.entries((settings as { approvals?: Readonly<Record<string, ApprovalRule>> }).approvals ?? {});
  return (
    <Card title="Approvals" note={rules.length > 0 && plural(rules.length, 'action')}>
      {rules.length === 0 ? (
        <p class="soft">No action needs a second person.</p>
      ) : (
        <Facts facts={rules.map(([action, rule]) => [ACTIONS.get(action)?.title ?? action, thresholdOf(rule)])} />
      )}
    </Card>
  );
}

type ApprovalRule = Readonly<{
  above?: Readonly<Record<string, string>>;
}>;

const thresholdOf = ({ above = {} }: ApprovalRule): ComponentChildren => {
  const amounts = Object.entries(above).map(([currency, amount]) => `above ${amount} ${currency}`);
  return amounts.length === 0 ? 'always' : amounts.join(', ');
};

function Rules({ view: { settings, signsCheckpoints } }: { view: SettingsView }) {
  const { small_difference: small, books_close_day, allow_empty } = settings;
  return (
    <Card title="Rules">
      <Facts
        facts={[
          ['Payment terms', plural(settings.payment_terms_days, 'day')],
          ['Dunning levels', settings.reminders.map((day) => (day > 0 ? `+${day}` : String(day))).join(', ')],
          ['Books close', books_close_day === null ? 'by hand' : `on day ${books_close_day} of the next month`],
          ['Checkpoint letters', settings.checkpoint_letters],
          ['Checkpoints', signsCheckpoints ? 'signed' : 'not signed: no key'],
          ['Credit at close', settings.credit_at_close],
          [
            'Small differences',
            Object.entries(small)
              .map(([name, limit]) => (name === 'percent' ? `at most ${limit}\u00a0%` : `${limit} ${name}`))
              .join(', ') || 'none',
          ],
          [
            'Without rows',
            allow_empty === true ? 'any partner' : allow_empty === false ? 'no one' : allow_empty.join(', '),
          ],
          ['Payment links', settings.payment_link.provider],
          ['Payment receipts', settings.payment_receipts ? 'by e-mail' : 'off'],
          ['Quotes valid', settings.quotes.valid_days === null ? 'forever' : plural(settings.quotes.valid_days, 'day')],
          ['API open to', settings.http.allow.join(', ') || 'any address'],
        ]}
      />
    </Card>
  );
}
