/** What an action would do, as its preview and a request for approval show it. */
import { Change } from '#actions/consequence';
import { Preview } from '#actions/run';
import { Blocks, Emails } from '#console/blocks';
import { Card, Column, DataTable, inOneLine, Joined, Money } from '#console/parts';
import { fieldWords } from '#field-names';
import { Amount } from '#money';

/** The page of a document, a partner or a payment, as facts name them. */
export function pageOf(of: string): string | undefined {
  const [, partner, payment] = /^(?:partner (\S+)|payment (\d+))$/.exec(of) ?? [];
  if (partner !== undefined) return `/console/partners/${encodeURIComponent(partner)}`;
  if (payment !== undefined) return `/console/payments/${payment}`;
  return /^[A-Z]{1,10}-\d{4}-\d{4,}$/.test(of) ? `/console/invoices/${of}` : undefined;
}

export const Thing = ({ of, href = pageOf(of) }: { of: string; href?: string | undefined }) =>
  href === undefined ? (
    <span class="number">{of}</span>
  ) : (
    <a class="number" href={href}>
      {of}
    </a>
  );

export const changeColumns = (now: string, then = 'Then'): readonly Column<Change>[] => [
  { heading: 'What', cell: ({ of }) => <Thing of={of} /> },
  { heading: 'Field', cell: ({ field }) => <span class="soft">{fieldWords(field)}</span> },
  { heading: now, cell: ({ before }) => before || <span class="soft">none</span> },
  { heading: then, cell: ({ after }) => <strong>{after || 'none'}</strong> },
];

/** What an action would do: what its report shows, who must approve it, and whom it would write to. */
export function Effect({ preview }: { preview: Preview }) {
  const { report, changes, amounts, emails, approvers } = preview;
  const blocks = report.blocks ?? [];
  const figures = (
    <DataTable columns={changeColumns('Now')} rows={changes} nothing="No figures would change." caption="Changes" />
  );
  return (
    <>
      {approvers.length > 0 && (
        <p class="notice">{`It needs approval. ${approvers.join(' or ')} may approve it, and gets an e-mail.`}</p>
      )}
      <Card title="When it is done" note={<Amounts amounts={amounts} />} flush={blocks.length === 0}>
        <div class={blocks.length === 0 ? 'in' : undefined}>
          <ReportText text={report.sentences} />
        </div>
        {blocks.length === 0 && figures}
      </Card>
      <Blocks blocks={blocks} />
      <Emails emails={emails} />
      {blocks.length > 0 && changes.length > 0 && (
        <details class="more">
          <summary>All figures that change</summary>
          <section class="card">{figures}</section>
        </details>
      )}
    </>
  );
}

/** Sentences, each line of its own. */
export const ReportText = ({ text }: { text: string }) => <p class="report">{inOneLine(text)}</p>;

export const Amounts = ({ amounts }: { amounts: readonly Amount[] }) => (
  <Joined>
    {amounts.map((each) => (
      <Money amount={each.toString()} currency={each.currency} />
    ))}
  </Joined>
);
