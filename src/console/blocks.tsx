/** Draws what a report shows beside its sentences, and the e-mails that a previewed action would send. */
import { Block, Cell, Choice, isNumber, Table, Versions } from '#blocks';
import { Amount } from '#money';
import { ForeseenEmails } from '#month-end/foresee-emails';
import { capitalized, plural } from '#values';
import { ActionLink, Seer } from './action-link.tsx';
import { Card, Column, DataTable, Facts, Icon, Money } from './kit.tsx';

/** The form that confirms a preview. What is chosen in its blocks is sent with it. */
export const CONFIRM_FORM = 'confirm';

type User = { readonly user?: Seer | undefined };

/** `user`: whose permissions decide which remedies of rows are links. */
export const Blocks = ({ blocks, user }: { blocks: readonly Block[] } & User) =>
  blocks.map((block) =>
    block.folded ? (
      <details class="more">
        <summary>{block.title}</summary>
        <Drawn {...block} user={user} />
      </details>
    ) : (
      <Drawn {...block} user={user} />
    ),
  );

function Drawn({ title, tone, lines = [], table, versions, facts, user }: Block & User) {
  return (
    <Card title={title} flush={table !== undefined || versions !== undefined}>
      {lines.length > 0 && (
        <ul class={table === undefined && versions === undefined ? 'ticks' : 'ticks in'}>
          {lines.map((line) => (
            <li>
              <Icon kind={tone === 'warn' ? 'missing' : 'done'} tone={tone === 'warn' ? 'warn' : 'good'} />
              <span>
                <CellOf cell={line} />
              </span>
            </li>
          ))}
        </ul>
      )}
      {facts !== undefined && (
        <div class="in">
          <Facts facts={facts.map(([label, value]) => [capitalized(label), <CellOf cell={value} />])} />
        </div>
      )}
      {table !== undefined && (
        <DataTable
          columns={[...columnsOf(table.headings), ...(user === undefined ? [] : remediesFor(table, user))]}
          rows={table.rows.map((row, at) => ({
            ...{ row, at, remark: table.remarks?.[at] ?? null, choices: table.choices?.[at] ?? [] },
          }))}
          nothing="None."
          caption={title}
          foot={table.foot?.map((row) => (
            <tr class="total">
              {row.map((cell, at) => (
                <td class={isNumber(table.headings[at]) ? 'num' : undefined}>
                  <CellOf cell={cell} />
                </td>
              ))}
            </tr>
          ))}
        />
      )}
      {versions !== undefined && <SideBySide versions={versions} title={title} />}
    </Card>
  );
}

type Row = Readonly<{ row: readonly Cell[]; at: number; remark: Cell; choices: readonly Choice[] }>;

const remediesFor = ({ remedies = [] }: Table, user: Seer): Column<Row>[] =>
  remedies.every((each) => each === null)
    ? []
    : [
        {
          heading: '',
          cell({ at }) {
            const remedy = remedies[at];
            return (
              remedy && (
                <ActionLink user={user} action={remedy.action} partner={null} input={remedy.input} tone="small">
                  {remedy.label}
                </ActionLink>
              )
            );
          },
        },
      ];

const columnsOf = (headings: readonly string[]): Column<Row>[] =>
  headings.map((heading, at) => ({
    heading: capitalized(heading.replace(/^[>~]/, '')),
    number: isNumber(heading),
    cell: ({ row, remark, choices }) => (
      <>
        <CellOf cell={row[at] ?? null} />
        {at === 0 && remark !== null && remark !== '' && (
          <div class="small">
            <CellOf cell={remark} />
          </div>
        )}
        {at === headings.length - 1 &&
          choices.map(({ field, value, label, chosen }) => (
            <label class="check small">
              <input type="checkbox" form={CONFIRM_FORM} name={field} value={value} checked={chosen} /> {label}
            </label>
          ))}
      </>
    ),
  }));

/** A number or a day, which is not broken at its hyphens. */
const SHORT = /^[\w-]{6,24}$/;

const NEGATIVE = /^-[\d,.]+$/;

function CellOf({ cell }: { cell: Cell }) {
  if (cell instanceof Amount) return <Money amount={cell.toString()} currency={cell.currency} />;
  if (typeof cell === 'string' && SHORT.test(cell)) return <span class="number">{cell}</span>;
  if (typeof cell === 'string' && NEGATIVE.test(cell))
    return <span class="negative">{cell.replace('-', '\u2212')}</span>;
  if (cell === null || typeof cell !== 'object') return <>{cell ?? ''}</>;
  return [cell].flat().map(({ text, page }) => (
    <span class="line">
      <a class={SHORT.test(text) ? 'number' : undefined} href={page}>
        {text}
      </a>
    </span>
  ));
}

type VersionRow = Versions['rows'][number];

function SideBySide({ versions: { names, rows }, title }: { versions: Versions; title: string }) {
  const version = (row: VersionRow, which: 'before' | 'after') => {
    if (row.before === row.after) return <span class="soft">{row[which]}</span>;
    return row[which] === null ? <span class="soft">none</span> : <mark>{row[which]}</mark>;
  };
  const columns: Column<VersionRow>[] = [
    { heading: 'Field', cell: ({ field }) => <span class="soft">{field}</span> },
    { heading: names[0], cell: (row) => version(row, 'before') },
    { heading: names[1], cell: (row) => version(row, 'after') },
  ];
  const differ = ({ before, after }: VersionRow) => before !== after;
  const same = rows.filter((row) => !differ(row));
  return (
    <>
      <DataTable
        columns={columns}
        rows={rows.filter(differ)}
        nothing="No field of the document differs."
        caption={title}
      />
      {same.length > 0 && (
        <details class="more in">
          <summary>{`${plural(same.length, 'field')} the same`}</summary>
          <DataTable columns={columns} rows={same} nothing="None." caption={`${title}: the same`} />
        </details>
      )}
    </>
  );
}

const words = (kind: string) => kind.replaceAll('_', ' ');

/** The e-mails of a preview, with the text of the first of each kind. */
export function Emails({ emails }: { emails: readonly ForeseenEmails[] }) {
  if (emails.length === 0) return null;
  const all = emails.reduce((sum, { count }) => sum + count, 0);
  return (
    <Card title="E-mails" note={`${plural(all, 'e-mail')}, at the latest with the next delivery`}>
      <div class="stack">
        {emails.map(({ kind, count, first }) => (
          <>
            {first.map(({ to, subject, text, held }) => (
              <details>
                <summary>
                  {held !== null && <Icon kind="missing" tone="warn" />} {subject || words(kind)}
                  <br />
                  <span class="soft">{held === null ? `to ${to.join(', ')}` : `waits: ${held}`}</span>
                </summary>
                <p class="letter">{text}</p>
              </details>
            ))}
            {count > first.length && <p class="soft">{`and ${plural(count - first.length, `more ${words(kind)}`)}`}</p>}
          </>
        ))}
      </div>
    </Card>
  );
}
