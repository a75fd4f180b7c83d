import { Blocks } from '#console/blocks';
import {
  addressOf,
  BALANCE,
  Chip,
  Column,
  choiceAsked,
  DayInput,
  DISPUTED,
  Downloads,
  dayAsked,
  InvoiceLink,
  Pager,
  Question,
  Quiet,
  Screen,
  TableCard,
  textAsked,
  Verdict,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import { Scope } from '#people/scope';
import { Aging, AgingRow, BUCKETS, differencesOf, readAging as readAgingReport } from '#reports/aging';
import { refuseFutureDay } from '#reports/future-day';
import { agingDocumentsSheet, agingSheet } from '#reports/sheets';
import { Sheet } from '#sheet';
import { plural } from '#text';

type AgingQuestion = Readonly<Partial<Record<'as_of' | 'partner' | 'currency' | 'bucket' | 'after', string>>>;

type Document = Aging['documents'][number];

type AgingView = Readonly<{
  aging: Aging;
  /** The filter for the documents listed. If the filter is null, no documents are listed. */
  documentsOf: Readonly<{ partner?: string; currency?: string; bucket?: ListedAging }> | null;
  documents: readonly Document[];
  after: string | null;
}>;

const LISTED = [...BUCKETS, 'credit'] as const;
type ListedAging = (typeof LISTED)[number];

const PATH = '/console/aging';
const PAGE = 50;
/** The partners of a currency on a page. */
const PARTNERS = 200;

export async function readAging(
  tx: Transaction,
  asked: AgingQuestion,
  { today, scope }: { today: string; scope: Scope },
): Promise<AgingView> {
  const asOf = dayAsked('as_of', asked.as_of);
  await refuseFutureDay(tx, asOf, today);
  const aging = await readAgingReport(tx, { asOf, today, scope });
  const documentsOf = documentsAsked(asked);
  return {
    aging,
    documentsOf,
    documents: documentsOf === null ? [] : aging.documents.filter(isOf(documentsOf)),
    after: textAsked(asked.after) ?? null,
  };
}

function documentsAsked(asked: AgingQuestion): AgingView['documentsOf'] {
  const [partner, currency] = [textAsked(asked.partner), textAsked(asked.currency)];
  const bucket = choiceAsked('bucket', asked.bucket as string | undefined, LISTED);
  if ([partner, currency, bucket].every((each) => each === undefined)) return null;
  return {
    ...(partner !== undefined && { partner }),
    ...(currency !== undefined && { currency }),
    ...(bucket !== undefined && { bucket }),
  };
}

const isOf =
  ({ partner, currency, bucket }: NonNullable<AgingView['documentsOf']>) =>
  (document: Document) =>
    (partner === undefined || document.partner_id === partner) &&
    (currency === undefined || document.currency === currency) &&
    (bucket === undefined || (document.bucket ?? 'credit') === bucket);

export const sheetOfAging = ({ aging, documentsOf, documents }: AgingView): Sheet =>
  documentsOf === null ? agingSheet(aging) : agingDocumentsSheet({ documents });

const BUCKET_NAMES: Readonly<Record<ListedAging, string>> = {
  not_due: 'Not due',
  days_1_30: '1–30 days',
  days_31_60: '31–60 days',
  days_61_90: '61–90 days',
  over_90: 'Over 90 days',
  credit: 'Credit',
};

export function agingScreen(view: AgingView): Screen {
  const { aging, documentsOf } = view;
  const question = { as_of: aging.as_of, ...documentsOf };
  return {
    place: 'aging',
    tab: PATH,
    title: documentsOf === null ? 'Aging' : titleOf(view),
    ...(documentsOf !== null && { crumbs: [{ name: 'Aging', href: addressOf(PATH, { as_of: aging.as_of }) }] }),
    lead: `as of ${aging.as_of}`,
    actions: <Downloads path={PATH} question={question} />,
    content: (
      <>
        <form class="filters" action={PATH}>
          {Object.entries(documentsOf ?? {}).map(([name, value]) => (
            <input type="hidden" name={name} value={value} />
          ))}
          <DayInput label="As of" name="as_of" value={aging.as_of} />
          <button type="submit">Show</button>
          <Verdict good={aging.ties} preliminary={aging.preliminary}>
            {aging.ties ? 'ties to the journal' : 'does not tie to the journal'}
          </Verdict>
        </form>
        <div class="stack">
          {!aging.ties && (
            <Blocks
              blocks={[
                { title: 'Do not rely on these figures: verify the ledger', tone: 'warn', lines: differencesOf(aging) },
              ]}
            />
          )}
          {documentsOf === null ? <Currencies view={view} /> : <Documents view={view} question={question} />}
        </div>
      </>
    ),
  };
}

function titleOf({ aging, documentsOf }: AgingView) {
  const { partner, currency, bucket } = documentsOf ?? {};
  const name = aging.partners.find(({ partner_id }) => partner_id === partner)?.partner_name ?? partner;
  return [name, bucket === undefined ? 'Open documents' : BUCKET_NAMES[bucket], currency]
    .filter((each) => each !== undefined)
    .join(' · ');
}

/** Each currency has pages of its own: `after` is the currency and the last partner of its page before. */
function Currencies({ view: { aging, after } }: { view: AgingView }) {
  const [paged, last] = after?.split(/ (.*)/s) ?? [];
  return (
    <>
      {aging.totals.map((total) => {
        const all = aging.partners.filter(({ currency }) => currency === total.currency);
        const begin = paged === total.currency ? all.findIndex(({ partner_id }) => (partner_id ?? '') === last) + 1 : 0;
        return <Currency asOf={aging.as_of} all={all} begin={begin} total={total} />;
      })}
      {aging.totals.length === 0 && <p class="nothing">Nothing is open on this day.</p>}
    </>
  );
}

const SUMS = [...BUCKETS, 'credit', 'unapplied', 'net'] as const;
const SUM_NAMES: Readonly<Record<(typeof SUMS)[number], string>> = {
  ...BUCKET_NAMES,
  unapplied: 'Unapplied',
  net: 'Net',
};

type CurrencyProps = Readonly<{
  asOf: string;
  all: readonly AgingRow[];
  begin: number;
  total: Aging['totals'][number];
}>;

function Currency({ asOf, all, begin, total }: CurrencyProps) {
  const { currency } = total;
  const rows = all.slice(begin, begin + PARTNERS);
  const isPart = rows.length < all.length;
  const next = begin + PARTNERS < all.length ? `${currency} ${rows.at(-1)?.partner_id ?? ''}` : null;
  const linked = (row: Pick<AgingRow, (typeof SUMS)[number]>, column: (typeof SUMS)[number], partner?: string) => {
    const amount = <Quiet amount={row[column]} currency={currency} bare />;
    const isListed = (LISTED as readonly string[]).includes(column) && /[1-9]/.test(row[column]);
    if (!isListed) return amount;
    return <a href={addressOf(PATH, { as_of: asOf, partner, currency, bucket: column })}>{amount}</a>;
  };
  const columns: Column<AgingRow>[] = [
    {
      heading: 'Partner',
      cell: ({ partner_id, partner_name }) =>
        partner_id === null ? (
          <span class="soft">Unknown payers</span>
        ) : (
          <a class="row" href={addressOf(PATH, { as_of: asOf, partner: partner_id, currency })}>
            {partner_name}
          </a>
        ),
    },
    ...SUMS.map(
      (column): Column<AgingRow> => ({
        heading: SUM_NAMES[column],
        number: true,
        cell: (row) =>
          row.partner_id === null ? (
            <Quiet amount={row[column]} currency={currency} bare />
          ) : (
            linked(row, column, row.partner_id)
          ),
      }),
    ),
  ];
  return (
    <TableCard
      title={currency}
      note={
        <>
          {isPart && `partners ${begin + 1} to ${begin + rows.length} of ${all.length} `}
          <Shares total={total} />
        </>
      }
      columns={columns}
      rows={rows}
      nothing="Nothing is open."
      foot={
        <tr>
          <td>{isPart ? `Total of all ${all.length}` : 'Total'}</td>
          {SUMS.map((column) => (
            <td class="num" data-label={SUM_NAMES[column]}>
              {linked(total, column)}
            </td>
          ))}
        </tr>
      }
    >
      <Pager
        first={begin === 0 ? null : addressOf(PATH, { as_of: asOf })}
        next={next === null ? null : addressOf(PATH, { as_of: asOf, after: next })}
      />
    </TableCard>
  );
}

function Documents({ view, question }: { view: AgingView; question: Question }) {
  const { documents, after } = view;
  const begin = after === null ? 0 : documents.findIndex(({ number }) => number === after) + 1;
  const shown = documents.slice(begin, begin + PAGE);
  const next = begin + PAGE < documents.length ? (shown.at(-1)?.number ?? null) : null;
  return (
    <TableCard
      title={plural(documents.length, 'document')}
      note="by number"
      columns={DOCUMENT_COLUMNS}
      rows={shown}
      nothing="No documents of this kind are open on this day."
    >
      <Pager
        first={after === null ? null : addressOf(PATH, question)}
        next={next === null ? null : addressOf(PATH, { ...question, after: next })}
      />
    </TableCard>
  );
}

const DOCUMENT_COLUMNS: readonly Column<Document>[] = [
  {
    heading: 'Number',
    cell: ({ number }) => <InvoiceLink number={number} first />,
  },
  {
    heading: 'Due',
    cell: ({ days_due, due_on, bucket }) =>
      due_on === null || bucket === null ? (
        <Chip>credit</Chip>
      ) : days_due !== null && days_due > 0 ? (
        <>
          {due_on} <Chip tone="bad">{`${plural(days_due, 'day')} overdue`}</Chip>
        </>
      ) : (
        due_on
      ),
  },
  {
    heading: 'Partner',
    cell: ({ partner_id, partner_name }) => <a href={`/console/partners/${partner_id}`}>{partner_name}</a>,
  },
  { heading: 'Issued', cell: ({ issued_on }) => <span class="soft">{issued_on}</span> },
  DISPUTED,
  BALANCE,
];

/** Rounding errors in the widths do not matter. */
function Shares({ total }: { total: Aging['totals'][number] }) {
  const open = Number(total.open);
  let at = 0;
  return (
    <svg
      class="shares"
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label="The share of each aging bucket"
    >
      {open > 0 &&
        BUCKETS.map((bucket) => {
          const width = (Number(total[bucket]) * 100) / open;
          const x = at;
          at += width;
          return width === 0 ? null : <rect class={bucket} x={x} width={width} height="6" />;
        })}
    </svg>
  );
}
