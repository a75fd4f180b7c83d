/** The partners: what each owes, what of it is overdue, when it was billed last, and whether it can be reached. */
import { query, type Transaction } from '../../database/transaction.ts';
import type { Month } from '../../month.ts';
import type { Scope } from '../../people/scope.ts';
import { type PartnerBalance, readPartnerBalances } from '../../reports/partner-balances.ts';
import { plural } from '../../text.ts';
import { ActLink, MoreActs, type Seer } from '../act-link.tsx';
import { addressOf, Card, Chip, type Column, DataTable, Money, None, Pager, Tabs, type Tone } from '../kit.tsx';
import type { Screen } from '../page.tsx';
import { choiceAsked, textAsked } from '../parameters.ts';

export type PartnersQuestion = Readonly<Partial<Record<'q' | 'show' | 'after', string>>>;

export interface PartnerLine {
  readonly partner_id: string;
  readonly name: string;
  readonly contact_email: string;
  readonly active: boolean;
  readonly arrangement: 'invoicing' | 'connected_account';
  /** The latest month with documents of it. */
  readonly last_billed: Month | null;
  /** Unfinished e-mails to it by their status. */
  readonly troubled: Readonly<Partial<Record<'held' | 'failed' | 'uncertain' | 'bounced', number>>>;
}

export interface PartnersView {
  readonly q: string | undefined;
  readonly show: Show | undefined;
  readonly after: string | undefined;
  readonly lines: readonly (PartnerLine & { readonly balances: readonly PartnerBalance[] })[];
  readonly next: string | null;
}

const SHOWN = ['active', 'inactive', 'contact'] as const;
type Show = (typeof SHOWN)[number];

const PATH = '/console/partners';
const PAGE = 50;

/** One page by name; balances are found for its partners alone. */
export async function readPartners(
  tx: Transaction,
  asked: PartnersQuestion,
  { today, scope }: { today: string; scope: Scope },
): Promise<PartnersView> {
  const [q, after] = [textAsked(asked.q), textAsked(asked.after)];
  const show = choiceAsked('show', asked.show, SHOWN);
  const lines = await query<PartnerLine>(
    tx,
    `WITH troubled AS (
       SELECT partner_id, json_object_agg(status, emails) AS troubled
       FROM (
         SELECT coalesce(e.partner_id, d.partner_id) AS partner_id, e.status, count(*) AS emails
         FROM unfinished_emails u JOIN emails e USING (email_id) LEFT JOIN documents d ON d.document_id = e.document_id
         WHERE e.status IN ('held', 'failed', 'uncertain', 'bounced')
         GROUP BY coalesce(e.partner_id, d.partner_id), e.status) AS counted
       WHERE partner_id IS NOT NULL GROUP BY partner_id
     )
     SELECT p.partner_id, p.name, p.contact_email, p.inactive_since IS NULL AS active, a.arrangement,
            (SELECT max(d.month) FROM documents d
             WHERE d.partner_id = p.partner_id AND d.purpose = 'month' AND d.replaces IS NULL) AS last_billed,
            coalesce(t.troubled, '{}') AS troubled
     FROM partners p
     LEFT JOIN troubled t USING (partner_id)
     CROSS JOIN LATERAL (
       SELECT a.arrangement FROM partner_arrangements a WHERE a.partner_id = p.partner_id
       ORDER BY a.from_month DESC LIMIT 1) AS a
     WHERE (:scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[]))
       AND (:q::text IS NULL OR strpos(lower(concat_ws(E'\\n', p.partner_id, p.name, p.contact_name, p.contact_email,
              array_to_string(p.contact_cc, E'\\n'), p.tax_id)), lower(:q)) > 0)
       AND (:show::text IS NULL OR CASE :show
              WHEN 'active' THEN p.inactive_since IS NULL
              WHEN 'inactive' THEN p.inactive_since IS NOT NULL
              ELSE p.contact_email = '' OR t.partner_id IS NOT NULL END)
       AND (:after::text IS NULL OR (lower(p.name), p.partner_id) > (
              SELECT lower(l.name), l.partner_id FROM partners l WHERE l.partner_id = :after))
     ORDER BY lower(p.name), p.partner_id LIMIT :limit`,
    { scope, q: q ?? null, show: show ?? null, after: after ?? null, limit: PAGE + 1 },
  );
  const shown = lines.slice(0, PAGE);
  const { balances } = await readPartnerBalances(tx, { today, scope: shown.map(({ partner_id }) => partner_id) });
  return {
    q,
    show,
    after,
    lines: shown.map((line) => ({
      ...line,
      balances: balances.filter(({ partner_id }) => partner_id === line.partner_id),
    })),
    next: lines.length > PAGE ? (shown.at(-1)?.partner_id ?? null) : null,
  };
}

const TABS: readonly (readonly [Show | undefined, string])[] = [
  [undefined, 'All'],
  ['active', 'Active'],
  ['contact', 'Contact problems'],
  ['inactive', 'Inactive'],
];

export function partnersScreen({ q, show, after, lines, next }: PartnersView, { user }: { user: Seer }): Screen {
  const question = { q, show };
  return {
    place: 'partners',
    title: 'Partners',
    acts: (
      <>
        <ActLink user={user} act="partner.import" partner={null}>
          Create and change partners
        </ActLink>
        <MoreActs
          user={user}
          acts={[
            { act: 'opening.import', partner: null, name: 'Carry over open items of the system before' },
            { act: 'opening.reverse', partner: null, name: 'Reverse what was carried over' },
          ]}
        />
      </>
    ),
    content: (
      <>
        <form class="filters" action={PATH}>
          <label class="field">
            Name, id, contact, tax id
            <input name="q" value={q} type="search" />
          </label>
          {show !== undefined && <input type="hidden" name="show" value={show} />}
          <button type="submit">Filter</button>
        </form>
        <Tabs
          label="Which partners"
          tabs={TABS.map(([each, name]) => ({
            name,
            href: addressOf(PATH, { q, show: each }),
            current: each === show,
          }))}
        />
        <Card title={plural(lines.length, 'partner')} note="by name" flush>
          <DataTable
            columns={COLUMNS}
            rows={lines}
            labelled
            nothing={q === undefined && show === undefined ? 'There are no partners yet.' : 'No partner matches.'}
            caption="Partners"
          />
          <Pager
            first={after === undefined ? null : addressOf(PATH, question)}
            next={next === null ? null : addressOf(PATH, { ...question, after: next })}
          />
        </Card>
      </>
    ),
  };
}

const COLUMNS: readonly Column<PartnersView['lines'][number]>[] = [
  {
    heading: 'Partner',
    cell: ({ partner_id, name, active }) => (
      <>
        <a class="row" href={`${PATH}/${partner_id}`}>
          {name}
        </a>{' '}
        {!active && <Chip>inactive</Chip>}
      </>
    ),
  },
  {
    heading: 'Contact',
    cell: (line) => <Contact line={line} />,
  },
  {
    heading: 'Last close',
    cell: ({ last_billed }) => (last_billed === null ? <None /> : <span class="soft">{last_billed}</span>),
  },
  { heading: 'Overdue', number: true, cell: ({ balances }) => <ByCurrency balances={balances} of="overdue" /> },
  { heading: 'Balance', number: true, cell: ({ balances }) => <ByCurrency balances={balances} of="net" /> },
];

/** One line for each currency; a dash where all are zero. */
const ByCurrency = ({ balances, of }: { balances: readonly PartnerBalance[]; of: 'overdue' | 'net' }) => {
  const open = balances.filter((each) => /[1-9]/.test(each[of]));
  if (open.length === 0) return <None />;
  return (
    <span class="lines">
      {open.map((each) => (
        <span class="line">
          <Money amount={each[of]} currency={each.currency} />
        </span>
      ))}
    </span>
  );
};

const TROUBLES: readonly (readonly [keyof PartnerLine['troubled'], Tone])[] = [
  ['bounced', 'bad'],
  ['failed', 'bad'],
  ['uncertain', 'warn'],
  ['held', 'warn'],
];

/** Its address, and what keeps e-mails from it. */
function Contact({ line: { partner_id, contact_email, troubled } }: { line: PartnerLine }) {
  return (
    <span class="lines">
      <span class="line">
        {contact_email === '' ? (
          <Chip tone="bad">no e-mail address</Chip>
        ) : (
          <span class="soft wrap">{contact_email}</span>
        )}
      </span>
      {TROUBLES.map(([status, tone]) => {
        const count = troubled[status];
        return count === undefined ? null : (
          <a class="line" href={`${PATH}/${partner_id}/emails`}>
            <Chip tone={tone}>{`${plural(count, 'e-mail')} ${status}`}</Chip>
          </a>
        );
      })}
    </span>
  );
}
