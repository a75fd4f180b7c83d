/** The exported journals and files of each month, and the months that are not exported yet. */

import { ActionLink, Card, Chip, Column, Instant, Money, Screen, Seer, TableCard, Tone } from '#console/parts';
import { Visit } from '#console/route';
import { Transaction } from '#database/transaction';
import { ListedExport, readExports, readUnexported } from '#general-ledger/exports.sql';
import { isInPeriod } from '#people/scope';
import { Month, monthName, plural } from '#values';

type GeneralLedgerView = Readonly<{
  exports: readonly ListedExport[];
  waiting: readonly Month[];
}>;

const SHOWN = 200;

export async function readGeneralLedger(
  tx: Transaction,
  { period }: Pick<Visit, 'period'>,
): Promise<GeneralLedgerView> {
  const exports = await readExports(tx, { limit: SHOWN });
  const waiting = await readUnexported(tx, { limit: SHOWN });
  return {
    exports: exports.filter(({ month }) => isInPeriod(period, month)),
    waiting: waiting.filter((month) => isInPeriod(period, month)),
  };
}

const fileHref = ({ gl_export_id: id }: Pick<ListedExport, 'gl_export_id'>, name: string) =>
  `/console/reports/general-ledger/${id}/${name}`;

const STATES: Readonly<Record<ListedExport['state'], readonly [tone: Tone, words: string]>> = {
  final: ['good', 'final'],
  preliminary: ['warn', 'preliminary'],
  outdated: ['bad', 'outdated: export it again'],
};

const columnsFor = (user: Seer): Column<ListedExport>[] => [
  {
    heading: 'Journal',
    cell: ({ format, part, kind }) => (
      <>
        <strong>{format}</strong>
        <span class="soft">{` part ${part}${kind === 'journal' ? '' : `, ${kind}`}`}</span>
      </>
    ),
  },
  {
    heading: 'Exported',
    cell: ({ recorded_at, login }) => (
      <span class="soft">
        <Instant at={recorded_at} />
        {login === null ? '' : ` by ${login}`}
      </span>
    ),
  },
  {
    heading: 'Debits, and credits',
    number: true,
    cell: ({ totals }) =>
      totals.map(({ currency, debit }, at) => (
        <>
          {at > 0 && <br />}
          <Money amount={debit} currency={currency} />
        </>
      )),
  },
  {
    heading: 'State',
    cell: ({ state, month, format }) => (
      <>
        <Chip tone={STATES[state][0]}>{STATES[state][1]}</Chip>
        {state === 'outdated' && (
          <>
            {' '}
            <ActionLink user={user} action="gl.export" partner={null} input={{ month, format }} tone="small">
              Export
            </ActionLink>
          </>
        )}
      </>
    ),
  },
  {
    heading: 'Files',
    cell: ({ files, ...each }) =>
      files.map(({ name }, at) => (
        <>
          {at > 0 && <br />}
          <a href={fileHref(each, name)} hx-boost="false" download>
            {name}
          </a>
        </>
      )),
  },
];

export function generalLedgerScreen(view: GeneralLedgerView, { user }: { user: Seer }): Screen {
  const { exports, waiting } = view;
  const months = [...new Set(exports.map(({ month }) => month))];
  return {
    place: 'aging',
    tab: '/console/reports/general-ledger',
    title: 'General ledger',
    lead: 'exports by month',
    actions: (
      <>
        <ActionLink user={user} action="gl.export" partner={null} tone="main">
          Export a month
        </ActionLink>
        <ActionLink user={user} action="settings.adopt" partner={null} input={{ section: 'accounts', edit: 'yes' }}>
          Accounts
        </ActionLink>
        <a class="button" href="/console/reports/general-ledger/entries">
          Entries
        </a>
      </>
    ),
    content: (
      <div class="stack">
        {waiting.length > 0 && (
          <Card title="To export" note={`${plural(waiting.length, 'month')} with closed books`}>
            <p>
              {waiting.map((month, at) => (
                <>
                  {at > 0 && ' '}
                  <ActionLink user={user} action="gl.export" partner={null} input={{ month }} tone="small">
                    {monthName(month)}
                  </ActionLink>
                </>
              ))}
            </p>
          </Card>
        )}
        {months.map((month) => (
          <TableCard
            title={monthName(month)}
            columns={columnsFor(user)}
            rows={exports.filter((each) => each.month === month)}
          />
        ))}
        {exports.length === 0 && <p class="nothing">No months have been exported for the general ledger.</p>}
      </div>
    ),
  };
}
