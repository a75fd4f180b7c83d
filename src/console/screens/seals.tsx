/** The seals of months, of their books and of checkpoints, each with the one before it, its signature and its letter. */
import { query, type Transaction } from '../../database/transaction.ts';
import { refuse } from '../../errors/refusals.ts';
import { readSealLetters, type SealLetter } from '../../reports/seal-letters.ts';
import { noteOf, readSignature, type SealName, sealTitle } from '../../seals/signature.ts';
import { plural } from '../../text.ts';
import { ActLink, type Seer } from '../act-link.tsx';
import { addressOf, Card, Chip, type Column, DataTable, Facts, Instant, None, Pager, Tabs } from '../kit.tsx';
import type { Screen } from '../page.tsx';
import { choiceAsked, textAsked } from '../parameters.ts';
import { AuditMenu } from './audit-menu.tsx';
import { emailTone } from './partner-emails.tsx';

const KINDS = ['month', 'books', 'checkpoint'] as const;
type Kind = (typeof KINDS)[number];

export type SealsQuestion = Readonly<Partial<Record<'kind' | 'after', string>>>;

/** A seal with the one of its kind before it: each record names that one's hash. */
export interface ChainedSeal extends SealLetter {
  readonly previous: Pick<SealLetter, 'name' | 'seal'> | null;
}

export interface SealsView {
  readonly kind: Kind;
  readonly counts: Readonly<Record<Kind, number>>;
  readonly seals: readonly ChainedSeal[];
  readonly after: string | undefined;
  readonly next: string | null;
}

const PATH = '/console/audit/seals';
const PAGE = 50;

export async function readSeals(tx: Transaction, asked: SealsQuestion): Promise<SealsView> {
  const kind = choiceAsked('kind', asked.kind, KINDS) ?? 'month';
  const after = textAsked(asked.after);
  const all = await readSealLetters(tx);
  const own = all.filter((each) => each.kind === kind);
  const chained = own.map((each, at): ChainedSeal => ({ ...each, previous: own[at - 1] ?? null })).reverse();
  const begin = after === undefined ? 0 : chained.findIndex(({ name }) => name === after) + 1;
  const seals = chained.slice(begin, begin + PAGE);
  return {
    kind,
    counts: Object.fromEntries(KINDS.map((each) => [each, all.filter((seal) => seal.kind === each).length])) as Record<
      Kind,
      number
    >,
    seals,
    after,
    next: begin + PAGE < chained.length ? (seals.at(-1)?.name ?? null) : null,
  };
}

const NAMES: Readonly<Record<Kind, string>> = { month: 'Months', books: 'Books', checkpoint: 'Checkpoints' };

export function sealsScreen({ kind, counts, seals, after, next }: SealsView, { user }: { user: Seer }): Screen {
  return {
    place: 'audit',
    title: 'Audit',
    lead: 'seals and their chain',
    acts: (
      <ActLink user={user} act="checkpoint.take" partner={null}>
        Seal the open month
      </ActLink>
    ),
    content: (
      <>
        <AuditMenu current="seals" />
        <Tabs
          label="Seals of"
          tabs={KINDS.map((each) => ({
            name: `${NAMES[each]} ${counts[each]}`,
            href: addressOf(PATH, { kind: each === 'month' ? undefined : each }),
            current: each === kind,
          }))}
        />
        <Card title={plural(counts[kind], 'seal')} note="the latest first" flush>
          <DataTable
            columns={COLUMNS}
            rows={seals}
            labelled
            nothing={kind === 'checkpoint' ? 'No checkpoint was taken yet.' : 'Nothing is sealed yet.'}
            caption="Seals"
          />
          <Pager
            first={after === undefined ? null : addressOf(PATH, { kind })}
            next={next === null ? null : addressOf(PATH, { kind, after: next })}
            names={['Latest', 'Earlier']}
          />
        </Card>
      </>
    ),
  };
}

const hashOf = (seal: string) => <code title={seal}>{`${seal.slice(0, 16)}…`}</code>;

const COLUMNS: readonly Column<ChainedSeal>[] = [
  {
    heading: 'Seal of',
    cell: ({ kind, name }) => (
      <a class="row" href={`${PATH}/${kind}/${name}`}>
        {name}
      </a>
    ),
  },
  { heading: 'SHA-256', cell: ({ seal }) => hashOf(seal) },
  {
    heading: 'Follows',
    cell: ({ previous }) =>
      previous === null ? (
        <span class="soft">the first</span>
      ) : (
        <>
          {hashOf(previous.seal)} <span class="count">{previous.name}</span>
        </>
      ),
  },
  { heading: 'Made', cell: ({ made_at }) => <Instant at={made_at} /> },
  {
    heading: 'Signed',
    cell: ({ signed_by }) =>
      signed_by === null ? <Chip tone="warn">not signed</Chip> : <Chip tone="good">signed</Chip>,
  },
  {
    heading: 'Time stamp',
    cell: ({ stamped_at }) => (stamped_at === null ? <None /> : <Instant at={stamped_at} />),
  },
  {
    heading: 'Letter',
    cell: ({ letter, to }) =>
      letter === null ? (
        <None />
      ) : (
        <span title={to?.join(', ')}>
          <Chip tone={emailTone(letter)}>{letter}</Chip>
        </span>
      ),
  },
];

// --- One seal -----------------------------------------------------------------------------------------------------------

export interface SealView {
  readonly seal: ChainedSeal;
  /** The text whose SHA-256 is the seal; where it is signed, as a signed note. */
  readonly note: string;
}

/** Refusal: argument_invalid. */
export async function readSeal(
  tx: Transaction,
  asked: { readonly kind: string; readonly name: string },
): Promise<SealView> {
  const own = (await readSealLetters(tx)).filter(({ kind }) => kind === asked.kind);
  const at = own.findIndex(({ name }) => name === asked.name);
  const seal = own[at];
  const [row] = await query<{ record: string }>(
    tx,
    `SELECT record FROM every_seal WHERE kind = :kind AND name = :name`,
    { kind: asked.kind.replaceAll('\0', ''), name: asked.name.replaceAll('\0', '') },
  );
  if (seal === undefined || row === undefined) {
    const value = `${asked.kind} ${asked.name}`;
    throw refuse('argument_invalid', { argument: 'seal', value, reason: 'is not the name of a seal' });
  }
  const signature = await readSignature(tx, seal as SealName);
  return {
    seal: { ...seal, previous: own[at - 1] ?? null },
    note: signature === undefined ? row.record : noteOf(row.record, signature),
  };
}

export function sealScreen({ seal, note }: SealView): Screen {
  const title = sealTitle(seal);
  return {
    place: 'audit',
    title: title.charAt(0).toUpperCase() + title.slice(1),
    crumbs: [{ name: 'Seals', href: addressOf(PATH, { kind: seal.kind }) }],
    content: (
      <div class="stack">
        <Card title="Seal">
          <Facts
            facts={[
              ['SHA-256', <code class="hash">{seal.seal}</code>],
              [
                'Follows',
                seal.previous === null ? (
                  'nothing: it is the first'
                ) : (
                  <a href={`${PATH}/${seal.kind}/${seal.previous.name}`}>
                    <code class="hash">{seal.previous.seal}</code>
                  </a>
                ),
              ],
              ['Made', <Instant at={seal.made_at} />],
              ['Signed by', seal.signed_by ?? 'nobody'],
              ['Time stamp', seal.stamped_at !== null && `${seal.stamped_at.slice(0, 19)}Z by ${seal.stamped_by}`],
              [
                'Letter',
                seal.letter === null ? 'none' : `${seal.letter}${seal.to === null ? '' : `, to ${seal.to.join(', ')}`}`,
              ],
            ]}
          />
        </Card>
        <Card
          title="Record"
          note={
            seal.signed_by === null ? 'its SHA-256 is the seal' : 'a signed note: the SHA-256 of its text is the seal'
          }
        >
          <pre>{note}</pre>
        </Card>
      </div>
    ),
  };
}
