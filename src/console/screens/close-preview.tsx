/**
 * The page on which a month's close is signed: what would be issued, what is in doubt, who must approve it and what goes
 * out, with the button that closes. The dry run takes seconds in a large ledger, so the page first shows the feeds, and
 * then loads the result (`?exact=yes`).
 */
import { ActionContext } from '#actions/action';
import { digestOf } from '#actions/consequence';
import { loadAction } from '#actions/registry';
import { Preview, previewAction } from '#actions/run';
import { readNextFeeds } from '#close/close';
import { Doubt, Feeds, undecidedFeeds } from '#close/feeds';
import { actionHref, addressOf, Card, choiceAsked, Form, PageUser, Screen } from '#console/parts';
import { Transaction } from '#database/transaction';
import { Refusal } from '#errors/refusals';
import { Month, monthName, plural } from '#values';
import { DoubtLine, Tick } from './close.tsx';
import { Effect } from './effect.tsx';
import { LISTED, More } from './more.tsx';

type ClosePreview = Readonly<{
  month: Month;
  /** Whether the month has ended everywhere. */
  due: boolean;
  /** Of the month that closes next. */
  feeds: Feeds | undefined;
  /** Undefined before the dry run, and if the month cannot be closed. */
  preview?: Preview;
  refused?: string;
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
  const known = { month, due: isNext && next.due, feeds: isNext ? next : undefined };
  if (isNext && !exact) return known;
  try {
    const preview = await previewAction({ ...context, forecast: true }, await loadAction('month.close'), { month });
    const { months } = preview.report.json as { readonly months: readonly { readonly month: Month }[] };
    return months.some((each) => each.month === month)
      ? { ...known, preview }
      : { ...known, refused: `${monthName(month)} is closed.` };
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    return { ...known, refused: thrown.message };
  }
}

export function closePreviewScreen(
  { month, due, feeds, preview, refused }: ClosePreview,
  { reader }: { reader: PageUser },
): Screen {
  const before = feeds && <Before due={due} feeds={feeds} reader={reader} />;
  return {
    place: 'close',
    title: `Closing ${monthName(month)}`,
    crumbs: [{ name: monthName(month), href: `/console/close/${month}` }],
    lead: 'nothing is issued yet',
    content:
      refused !== undefined ? (
        <p id="preview" class="problem" role="alert">
          {refused}
        </p>
      ) : preview === undefined ? (
        <div id="preview" class="columns">
          <Awaiting month={month} />
          {before}
        </div>
      ) : (
        <div id="preview" class="columns">
          <div class="stack">
            <Effect preview={withoutDoubts(preview)} />
          </div>
          <div class="stack">
            {before}
            <Close month={month} due={due} feeds={feeds} preview={preview} reader={reader} />
          </div>
        </div>
      ),
  };
}

/** The page lists the doubts, each with the link that accepts it. */
const withoutDoubts = (preview: Preview): Preview => ({
  ...preview,
  report: { ...preview.report, blocks: (preview.report.blocks ?? []).filter(({ of }) => of !== 'doubts') },
});

function Awaiting({ month }: { month: Month }) {
  const exact = addressOf(`/console/close/${month}/preview`, { exact: 'yes' });
  return (
    <Card title="When it is done">
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
    <More count={doubts.length - LISTED}>the report of the close lists all</More>
    {doubts.length > 0 && (
      <p class="buttons">
        <a class="button" href={actionHref('ledger.import')}>
          Import rows
        </a>
      </p>
    )}
  </Card>
);

function Close({
  month,
  due,
  feeds,
  preview: { report, approvers, ...figures },
  reader,
}: {
  month: Month;
  due: boolean;
  feeds: Feeds | undefined;
  preview: Preview;
  reader: PageUser;
}) {
  if (!due) return <p class="soft">The month can be closed once it has ended in every partner's time zone.</p>;
  const { doubts, empty } = feeds === undefined ? { doubts: [], empty: false } : undecidedFeeds(feeds);
  return (
    <Form
      action={actionHref('month.close')}
      token={reader.formToken}
      hidden={{
        month,
        ...acceptedBy(doubts),
        ...(empty && { allowEmpty: 'yes' }),
        shown: digestOf(figures),
      }}
    >
      <p class="buttons">
        <button type="submit" class="main" name="step" value="confirm">
          {approvers.length > 0 && 'Request approval: '}
          {report.button}
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

function acceptedBy(doubts: readonly Doubt[]) {
  const of = (isMissing: boolean) => [
    ...new Set(doubts.filter(({ kind }) => (kind === 'missing') === isMissing).map(({ partner_id }) => partner_id)),
  ];
  return { without: of(true), acceptFeed: of(false) };
}
