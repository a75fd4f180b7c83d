/**
 * The preview of a month's close by a dry run: what would be issued, what blocks the close, and which documents would
 * be held. It takes seconds in a large ledger, so the page first shows the feeds, and then loads the result
 * (`?exact=yes`).
 */
import type { ActionContext } from '../../actions/action.ts';
import { readNextFeeds } from '../../close/close.ts';
import { type Doubt, type Feeds, undecidedFeeds } from '../../close/feeds.ts';
import { previewClose } from '../../close/run.ts';
import type { Transaction } from '../../database/transaction.ts';
import { type ForeseenHold, foreseeHolds } from '../../delivery/foresee.ts';
import { Refusal } from '../../errors/refusals.ts';
import { type CloseFigures, type CloseReport, readCloseFigures, readLateRows } from '../../reports/close.ts';
import { type Month, monthName, plural } from '../../values.ts';
import { actionHref, addressOf, Card, choiceAsked, Form, Icon, Money, type PageUser, type Screen } from '../parts.ts';
import { DoubtLine, Tick, Totals } from './close.tsx';
import { LISTED, MonthChanges, More } from './month-changes.tsx';

type ClosePreview = Readonly<{
  month: Month;
  /** Whether the month has ended everywhere. */
  due: boolean;
  /** The result of the dry run. Null before the dry run, and if the month cannot be closed. */
  seen: Readonly<{
    report: CloseFigures & Pick<CloseReport, 'late'>;
    feeds: Feeds | undefined;
    holds: readonly ForeseenHold[];
  }> | null;
  refused: string | null;
  /** The state of the feeds, until the dry run has ended. */
  awaiting: Feeds | null;
}>;

type ClosePreviewQuestion = Readonly<Partial<Record<'exact', string>>>;

/**
 * The feeds, or the dry run with `exact`. A month that is not the next to close always gets it, because its close is
 * refused or depends on earlier months.
 */
export async function readClosePreview(
  tx: Transaction,
  context: ActionContext,
  month: Month,
  asked: ClosePreviewQuestion,
): Promise<ClosePreview> {
  const exact = choiceAsked('exact', asked.exact, ['yes']) !== undefined;
  const next = await readNextFeeds(tx, context);
  const isNext = next?.month === month;
  if (isNext && !exact) return { month, due: next.due, seen: null, refused: null, awaiting: next };
  return readExactPreview(context, month, isNext && next.due);
}

async function readExactPreview(context: ActionContext, month: Month, due: boolean): Promise<ClosePreview> {
  const refusal = (refused: string): ClosePreview => ({ month, due, seen: null, refused, awaiting: null });
  try {
    const { months, feeds, seen } = await previewClose(
      context.database,
      context,
      { month },
      async (own, { documents }) => ({
        report: await readFigures(own, month),
        holds: await foreseeHolds(own, context, documents),
      }),
    );
    const report = seen?.report;
    if (report === undefined || !months.some((each) => each.month === month)) {
      return refusal(`${monthName(month)} is closed.`);
    }
    const holds = seen?.holds ?? [];
    return { month, due, seen: { report, feeds: feeds.at(-1), holds }, refused: null, awaiting: null };
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    return refusal(thrown.message);
  }
}

async function readFigures(tx: Transaction, month: Month) {
  const figures = await readCloseFigures(tx, month);
  return figures && { ...figures, late: await readLateRows(tx, figures) };
}

export function closePreviewScreen(
  { month, due, seen, refused, awaiting }: ClosePreview,
  { reader }: { reader: PageUser },
): Screen {
  return {
    place: 'close',
    title: `Closing ${monthName(month)}`,
    crumbs: [{ name: monthName(month), href: `/console/close/${month}` }],
    lead: 'nothing is issued yet',
    content:
      awaiting !== null ? (
        <Awaiting due={due} feeds={awaiting} reader={reader} />
      ) : seen === null ? (
        <p id="preview" class="problem" role="alert">
          {refused}
        </p>
      ) : (
        <div id="preview" class="columns">
          <div class="stack">
            <Card
              title="Would issue"
              note={`${plural(seen.report.invoices, 'invoice')}, ${plural(seen.report.credit_notes, 'credit note')}, ${plural(seen.report.statements, 'statement')} from ${plural(seen.report.entries, 'row')}`}
            >
              <Totals
                totals={Object.entries(seen.report.totals).map(([currency, { invoiceAmount }]) => ({
                  currency,
                  invoice_amount: invoiceAmount,
                }))}
              />
            </Card>
            <MonthChanges
              month={month}
              partners={seen.report.partners}
              linked={false}
              nothing="No documents would be issued."
              all={
                <>
                  <code>{`reckoner close ${month} --dry-run`}</code> lists all
                </>
              }
            />
          </div>
          <div class="stack">
            <Blockers due={due} seen={seen} reader={reader} />
            <Close month={month} due={due} feeds={seen.feeds} reader={reader} />
          </div>
        </div>
      ),
  };
}

function Awaiting({ due, feeds, reader }: { due: boolean; feeds: Feeds; reader: PageUser }) {
  const exact = addressOf(`/console/close/${feeds.month}/preview`, { exact: 'yes' });
  return (
    <div id="preview" class="columns">
      <Card title="Would issue">
        <p
          class="soft computing"
          role="status"
          hx-get={exact}
          hx-trigger="load"
          hx-target="#preview"
          // A problem page has no element `#preview`.
          hx-select="#preview, main > .problem"
          hx-swap="outerHTML"
        >
          Computing what it would issue…
        </p>
        <noscript>
          <p class="buttons">
            <a class="button" href={exact}>
              Compute the documents
            </a>
          </p>
        </noscript>
      </Card>
      <Before due={due} feeds={feeds} reader={reader} />
    </div>
  );
}

const Before = ({ due, feeds: { month, doubts }, reader }: { due: boolean; feeds: Feeds; reader: PageUser }) => (
  <Card title="Before it closes">
    <ul class="ticks">
      <Tick done={due} text={due ? 'The month has ended everywhere' : 'The month has not ended everywhere'} />
      {doubts.length === 0 && <Tick done text="All expected feeds have arrived, and none is in doubt" />}
      {doubts.slice(0, LISTED).map((doubt) => (
        <DoubtLine month={month} doubt={doubt} user={reader} />
      ))}
    </ul>
    <More count={doubts.length - LISTED}>
      <code>{`reckoner close ${month} --dry-run`}</code> lists all
    </More>
    {doubts.length > 0 && (
      <p class="buttons">
        <a class="button" href={actionHref('ledger.import')}>
          Import rows
        </a>
      </p>
    )}
  </Card>
);

function Blockers({ due, seen, reader }: { due: boolean; seen: NonNullable<ClosePreview['seen']>; reader: PageUser }) {
  const { feeds, holds, report } = seen;
  return (
    <>
      {feeds !== undefined && <Before due={due} feeds={feeds} reader={reader} />}
      <Card title="Would be held" note={holds.length === 0 ? undefined : plural(holds.length, 'document')}>
        <ul class="ticks">
          {holds.length === 0 && <Tick done text="All documents can be sent at once" />}
          {holds.map(({ number, partner_id, reason }) => (
            <li>
              <Icon kind="missing" tone="warn" />
              <span>
                <span class="number">{number}</span> of <a href={`/console/partners/${partner_id}`}>{partner_id}</a>
                <br />
                <span class="soft">{reason}</span>
              </span>
            </li>
          ))}
        </ul>
      </Card>
      {report.late.length > 0 && (
        <Card title="Late rows" note="of closed months">
          <ul class="ticks plain">
            {report.late.map(({ name, month, entries, invoice_amount, currency }) => (
              <li>
                <span>{`${name}: ${plural(entries, 'row')} of ${month}`}</span>
                <Money amount={invoice_amount} currency={currency} />
              </li>
            ))}
          </ul>
        </Card>
      )}
    </>
  );
}

function Close({
  month,
  due,
  feeds,
  reader,
}: {
  month: Month;
  due: boolean;
  feeds: Feeds | undefined;
  reader: PageUser;
}) {
  if (!due) return <p class="soft">The month can be closed once it has ended in every partner's time zone.</p>;
  const { doubts, empty } = feeds === undefined ? { doubts: [], empty: false } : undecidedFeeds(feeds);
  return (
    <Form action={actionHref('month.close')} token={reader.formToken}>
      <input type="hidden" name="month" value={month} />
      {acceptedBy(doubts).map(([field, id]) => (
        <input type="hidden" name={field} value={id} />
      ))}
      {empty && <input type="hidden" name="allowEmpty" value="yes" />}
      <p class="buttons">
        <button type="submit" class="main" name="step" value="preview">
          {`Close ${monthName(month)}`}
          {empty ? ' without any rows' : accepting(doubts)}
        </button>
      </p>
    </Form>
  );
}

function accepting(doubts: readonly Doubt[]) {
  if (doubts.length === 0) return '';
  const isMissing = doubts.every(({ kind }) => kind === 'missing');
  return isMissing ? ` without ${plural(doubts.length, 'feed')}` : ` and accept ${plural(doubts.length, 'doubt')}`;
}

const acceptedBy = (doubts: readonly Doubt[]): (readonly [field: string, partnerId: string])[] => [
  ...new Map(
    doubts
      .map(({ kind, partner_id }) => [kind === 'missing' ? 'without' : 'acceptFeed', partner_id] as const)
      .map((each) => [each.join(' '), each]),
  ).values(),
];
