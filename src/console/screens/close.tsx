import { ComponentChildren } from 'preact';
import { openBooks } from '#close/books';
import { readBooksState } from '#close/books.sql';
import { dueMonths, endOfMonthEverywhere, readFeeds, readNextMonth } from '#close/close';
import { acceptFeed, Doubt, Feeds, missingFeeds, outstandingFeeds } from '#close/feeds';
import { readPartnerZones } from '#close/months.sql';
import { Blocks } from '#console/blocks';
import {
  ActionLink,
  actionHref,
  addressOf,
  Card,
  Chip,
  Facts,
  Form,
  Icon,
  Instant,
  InvoiceLink,
  liveAt,
  Meter,
  Money,
  mayDo,
  PageUser,
  PartnerLink,
  Screen,
  Seer,
  Tone,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import { Installation } from '#people/audit-events';
import { CloseFigures, readCloseFigures } from '#reports/close';
import { approvalsOf, changesBlocks } from '#reports/close-text';
import { readReadiness } from '#reports/readiness';
import { readWaitingApprovals, WaitingApproval } from '#reports/waiting-approvals';
import { counted, Month, monthName, monthOf, plural } from '#values';
import { ClosedMonth, MONTHS_SHOWN, readClosedMonths, readPostedSums } from './close.sql.ts';
import { MonthStrip } from './month-strip.tsx';
import { LISTED, More } from './more.tsx';
import { readSignOff, SignOff, SignOffCard, SignOffLine, WaitingRequest } from './sign-off.tsx';

type OpenMonth = Readonly<{
  month: Month;
  rows: number;
  totals: ClosedMonth['totals'];
  due: boolean;
}>;

type OpenMonthFacts = Readonly<{
  feeds: Feeds;
  ends_at: string;
  /** To close this month, or all that are due. */
  requests: readonly WaitingApproval[];
  /** What production still lacks; 0 in a sandbox. */
  missing: number;
}>;

/** The month that closes next, the current one, and later ones with rows. */
async function readOpenMonths(tx: Transaction, { environment, settings }: Installation): Promise<OpenMonth[]> {
  const now = environment.now();
  const next = await readNextMonth(tx, now);
  if (next === null) return [];
  const sums = await readPostedSums(tx, { month: next.month });
  const running = monthOf(now, settings.time_zone);
  const months = new Set([next.month, ...sums.map(({ month }) => month), ...(running > next.month ? [running] : [])]);
  const due = dueMonths(next.month, await readPartnerZones(tx), now);
  return [...months].sort().map((month) => {
    const totals = sums.filter((each) => each.month === month);
    const rows = totals.reduce((sum, each) => sum + each.rows, 0);
    return { month, due: due.includes(month), totals, rows };
  });
}

async function readExpected(
  tx: Transaction,
  context: Installation,
  { month, due }: OpenMonth,
): Promise<OpenMonthFacts> {
  const { environment, settings } = context;
  const requests = await readWaitingApprovals(tx, environment.now());
  const zones = await readPartnerZones(tx);
  const end = endOfMonthEverywhere(month, zones.length > 0 ? zones : [settings.time_zone]);
  return {
    feeds: await readFeeds(tx, context, month),
    ends_at: end.at.toISO(),
    requests: requests.filter(({ action, subject }) => action === 'month.close' && (due || subject === month)),
    missing: environment.name === 'production' ? (await readReadiness(tx, context)).missing.length : 0,
  };
}

type CloseView = Readonly<{
  closed: readonly ClosedMonth[];
  earlier: Month | null;
  /** Whether the strip ends before the latest month. */
  isEarlier: boolean;
  open: readonly OpenMonth[];
  shown: Month | null;
  /** Null if the month is closed. */
  expected: OpenMonthFacts | null;
  report: CloseFigures | null;
  signOff: SignOff | null;
  openBooks: readonly Month[];
}>;

/** Reads the cockpit of a month, by default the one that closes next. Undefined if the month has none. */
export async function readClose(
  tx: Transaction,
  context: Installation,
  asked: Month | undefined,
): Promise<CloseView | undefined> {
  const latest = await readClosedMonths(tx);
  const isEarlier = asked !== undefined && latest.length > MONTHS_SHOWN && asked <= (latest[0]?.month ?? asked);
  const found = isEarlier ? await readClosedMonths(tx, asked) : latest;
  const closed = found.slice(-MONTHS_SHOWN);
  const open = isEarlier ? [] : await readOpenMonths(tx, context);
  const shown = asked ?? open[0]?.month ?? closed.at(-1)?.month ?? null;
  const isClosed = closed.some(({ month }) => month === shown);
  const shownOpen = open.find(({ month }) => month === shown);
  if (shown !== null && !isClosed && shownOpen === undefined) return undefined;
  const report = isClosed && shown !== null ? ((await readCloseFigures(tx, shown)) ?? null) : null;
  return {
    ...{ closed, open, shown, report, isEarlier },
    earlier: found.length > closed.length ? (found[0]?.month ?? null) : null,
    expected: shownOpen === undefined ? null : await readExpected(tx, context, shownOpen),
    signOff: report !== null && shown !== null ? await readSignOff(tx, context, shown) : null,
    openBooks: openBooks(await readBooksState(tx)),
  };
}

export function closeScreen(view: CloseView, { user, reader }: { user: Seer; reader: PageUser }): Screen {
  const { shown, report, expected } = view;
  const [next] = view.open;
  const open = view.open.find(({ month }) => month === shown);
  return {
    place: 'close',
    title: shown === null ? 'Close' : monthName(shown),
    lead: open?.due ? (
      'has ended everywhere and is ready to close'
    ) : expected !== null ? (
      <>
        ends everywhere on <Instant at={expected.ends_at} />
      </>
    ) : (
      report !== null && (
        <>
          closed on <Instant at={report.closed_at} />
        </>
      )
    ),
    actions: open
      ? open === next &&
        mayDo(user, 'month.close', null) && (
          <Form action={actionHref('month.close')} token={reader.formToken} hidden={{ month: open.month }}>
            <button type="submit" class={open.due ? 'main' : undefined} name="step" value="preview">
              {open.due ? `Close ${monthName(open.month)}` : 'Preview'}
            </button>
          </Form>
        )
      : shown !== null && (
          <>
            <a class="button" href={addressOf('/console/reports/close', { month: shown })}>
              Report
            </a>
            <a class="button" href={`/console/audit/packs/${shown}`}>
              Auditor's pack
            </a>
            {!view.openBooks.includes(shown) && (
              <ActionLink user={user} action="gl.export" partner={null} input={{ month: shown }}>
                General ledger
              </ActionLink>
            )}
            {view.openBooks.includes(shown) && (
              <ActionLink
                user={user}
                action="books.close"
                partner={null}
                input={{ month: shown }}
                // The books of earlier months must close first.
                tone={view.openBooks[0] === shown ? 'main' : undefined}
              >
                Close the books
              </ActionLink>
            )}
          </>
        ),
    content: (
      <>
        <MonthStrip {...view} />
        {open && expected !== null && <Running open={open} next={next} expected={expected} user={user} />}
        {report !== null && <Closed report={report} view={view} user={user} />}
        {shown === null && (
          <p class="nothing">
            There are no rows yet. Import partners, then their rows; the first month then appears here.{' '}
            <ActionLink user={user} action="partner.import" partner={null} tone="plain">
              Import partners
            </ActionLink>{' '}
            <ActionLink user={user} action="ledger.import" partner={null} tone="plain">
              Import rows
            </ActionLink>
          </p>
        )}
      </>
    ),
  };
}

/** Our share, which is invoiced or, for connected accounts, routed by the processor. */
const Totals = ({ totals }: { totals: readonly Omit<ClosedMonth['totals'][number], 'rows'>[] }) => (
  <dl class="figures totals">
    {totals.map(({ currency, invoice_amount }) => (
      <div>
        <dt>Invoice amount</dt>
        <dd>
          <Money amount={invoice_amount} currency={currency} />
        </dd>
      </div>
    ))}
  </dl>
);

type RunningProps = Readonly<{
  open: OpenMonth;
  next: OpenMonth | undefined;
  expected: OpenMonthFacts;
  user: Seer;
}>;

function Running({ open, next = open, expected: { feeds, requests, missing: lacking }, user }: RunningProps) {
  const missing = missingFeeds(feeds);
  const { expected } = feeds;
  return (
    <div class="columns">
      <Card
        title="Expected feeds"
        note={`${counted(expected.length - missing.length)} of ${counted(expected.length)} have arrived`}
        actions={
          <ActionLink user={user} action="ledger.import" partner={null} tone="small">
            Import rows
          </ActionLink>
        }
        flush
      >
        {expected.length === 0 ? (
          <p class="nothing">No partners are expected to send rows.</p>
        ) : (
          <div class="in">
            <ul class="ticks">
              {[...expected]
                .sort(
                  (one, other) =>
                    Number(other.missing) - Number(one.missing) || Number(one.arrived) - Number(other.arrived),
                )
                .slice(0, LISTED)
                .map(({ partner_id, name, arrived, missing: late }) => (
                  <li>
                    <Icon
                      kind={arrived ? 'done' : late ? 'missing' : 'wait'}
                      tone={arrived ? 'good' : late ? 'warn' : 'plain'}
                    />
                    <PartnerLink id={partner_id}>{name}</PartnerLink>
                    {arrived ? (
                      <span class="soft">arrived</span>
                    ) : (
                      <Accept month={open.month} doubt={feeds.doubts.find(isMissing(partner_id))} user={user}>
                        {late ? <Chip tone="warn">missing</Chip> : <span class="soft">not here yet</span>}
                      </Accept>
                    )}
                  </li>
                ))}
            </ul>
            <More count={expected.length - LISTED}>
              {missing.length > LISTED ? `${counted(missing.length - LISTED)} have not arrived` : 'all have arrived'}
            </More>
          </div>
        )}
      </Card>
      <div class="stack">
        <Card title="So far" note={plural(open.rows, 'row')}>
          {open.totals.length === 0 ? <p class="soft">No rows have been recorded.</p> : <Totals totals={open.totals} />}
        </Card>
        <Card title="Before it closes">
          <ul class="ticks">
            <Tick done={open.due} text="The month has ended in every partner's time zone" />
            <Tick
              done={missing.length === 0}
              text={missing.length === 0 ? 'All expected feeds have arrived' : outstandingFeeds(feeds)}
            />
            {feeds.doubts
              .filter(({ kind }) => kind !== 'missing')
              .slice(0, LISTED)
              .map((each) => (
                <DoubtLine month={open.month} doubt={each} user={user} />
              ))}
            {next.month !== open.month && (
              <SignOffLine tone="warn">
                <a href={`/console/close/${next.month}`}>{monthName(next.month)}</a> closes first
              </SignOffLine>
            )}
            {requests.map((request) => (
              <WaitingRequest {...request} />
            ))}
            {lacking > 0 && (
              <SignOffLine tone="warn">
                Production still needs <a href="/console/settings">{plural(lacking, 'thing')}</a>
              </SignOffLine>
            )}
          </ul>
        </Card>
      </div>
    </div>
  );
}

/** A doubt about a partner's rows, with the link that accepts it. */
const DoubtLine = ({ month, doubt, user }: { month: Month; doubt: Doubt; user: Seer }) => (
  <li>
    <Icon kind={doubt.accepted ? 'done' : 'missing'} tone={doubt.accepted ? 'good' : 'warn'} />
    <span>
      <a href={`/console/partners/${doubt.partner_id}`}>{doubt.name}</a>
      <br />
      <span class="soft">
        {doubt.evidence}
        {!doubt.accepted && !doubt.stops && '. Its document will be held'}
      </span>
    </span>
    <Accept month={month} doubt={doubt} user={user} />
  </li>
);

const isMissing = (id: string) => (each: Doubt) => each.partner_id === id && each.kind === 'missing';

/** Whether a doubt was accepted; otherwise its state and the link that accepts it. */
function Accept({ month, doubt, user, children }: AcceptProps) {
  if (doubt === undefined) return children;
  if (doubt.accepted) return <span class="soft">accepted</span>;
  const { action, input } = acceptFeed(month, doubt);
  return (
    <span>
      {children}{' '}
      <ActionLink user={user} action={action} partner={doubt.partner_id} input={input} tone="plain">
        Accept
      </ActionLink>
    </span>
  );
}

type AcceptProps = Readonly<{
  month: Month;
  doubt: Doubt | undefined;
  user: Seer;
  children?: ComponentChildren;
}>;

const Tick = ({ done, text }: { done: boolean; text: string }) => (
  <li>
    <Icon kind={done ? 'done' : 'wait'} tone={done ? 'good' : 'plain'} />
    <span class={done ? undefined : 'soft'}>{text}</span>
  </li>
);

type ClosedProps = Readonly<{
  report: CloseFigures;
  view: CloseView;
  user: Seer;
}>;

function Closed({ report, view, user }: ClosedProps) {
  const { sent, pending, held, failed, uncertain } = report.deliveries;
  const size = view.closed.find(({ month }) => month === report.month)?.checkpoint ?? null;
  const unfinished = held + failed + uncertain;
  const inReport = <a href={addressOf('/console/reports/close', { month: report.month })}>the report lists all</a>;
  return (
    <div class="stack">
      <Card
        title="Issued"
        note={`${plural(report.invoices, 'invoice')}, ${plural(report.credit_notes, 'credit note')}, ${plural(report.statements, 'statement')} from ${plural(report.entries, 'row')}`}
      >
        <Totals
          totals={Object.entries(report.totals).map(([currency, { invoiceAmount }]) => ({
            currency,
            invoice_amount: invoiceAmount,
          }))}
        />
      </Card>
      <div class="columns">
        <div class="stack">
          <Blocks blocks={changesBlocks(report, LISTED)} />
          {report.partners.length === 0 && <p class="nothing">No documents were issued.</p>}
        </div>
        <div class="stack">
          <div
            id="deliveries"
            class="stack"
            {...(pending > 0 && liveAt(`/console/close/${report.month}`, 'deliveries'))}
          >
            <Card title="E-mails" note={`${counted(sent)} of ${counted(sent + pending + unfinished)} sent`}>
              <div class="stack">
                <Meter
                  parts={[
                    { tone: 'good', count: sent },
                    { tone: 'plain', count: pending },
                    { tone: 'warn', count: held + uncertain },
                    { tone: 'bad', count: failed },
                  ]}
                  label={`${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain`}
                />
                <ul class="ticks">
                  {report.held.slice(0, LISTED).map(({ number, name, status, reason }) => (
                    <li>
                      <Icon kind="missing" tone={toneOf(status)} />
                      <span>
                        <InvoiceLink number={number} /> {name}
                        <br />
                        <span class="soft">{reason}</span>
                      </span>
                      <Chip tone={toneOf(status)}>{status}</Chip>
                    </li>
                  ))}
                  {report.held.length === 0 && pending === 0 && <Tick done text="All documents have been sent" />}
                </ul>
                <More count={report.held.length - LISTED}>
                  <a href="/console/queue?queue=e-mails">the work queue lists all</a>
                </More>
              </div>
            </Card>
            {view.signOff !== null && (
              <SignOffCard month={report.month} signOff={view.signOff} deliveries={report.deliveries} user={user} />
            )}
          </div>
          <Card title="Proof">
            <Facts
              facts={[
                [
                  'Checkpoint',
                  size === null ? 'none' : <a href={`/console/audit/checkpoints/${size}`}>{plural(size, 'fact')}</a>,
                ],
                ['Issued on', report.issued_on],
                ...approvalsOf(report).map((each) => ['Approvals', each] as const),
                ['Program', report.program],
              ]}
            />
          </Card>
          {report.no_activity.length > 0 && (
            <Card title="Without rows" note={plural(report.no_activity.length, 'partner')}>
              <ul class="ticks">
                {report.no_activity.slice(0, LISTED).map(({ partner_id, name }) => (
                  <li>
                    <Icon kind="wait" tone="plain" />
                    <PartnerLink id={partner_id}>{name}</PartnerLink>
                  </li>
                ))}
              </ul>
              <More count={report.no_activity.length - LISTED}>{inReport}</More>
            </Card>
          )}
        </div>
      </div>
    </div>
  );
}

const toneOf = (status: string): Tone => (status === 'failed' ? 'bad' : 'warn');
