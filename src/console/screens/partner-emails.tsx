/** The e-mails to a partner, the latest first: what each was about, whether it arrived, and why not. */
import type { Transaction } from '../../database/transaction.ts';
import { type ListedEmail, nameOf, readEmails } from '../../mail/log.ts';
import type { PartnerView as Partner } from '../../partners/queries.ts';
import type { Scope } from '../../people/scope.ts';
import { plural } from '../../text.ts';
import { addressOf, Card, Chip, type Column, DataTable, Instant, Pager, type Tone } from '../kit.tsx';
import type { Screen } from '../page.tsx';
import { idAsked } from '../parameters.ts';
import { partnerFrame, readPartnerInScope } from './partner.tsx';

export type PartnerEmailsQuestion = Readonly<Partial<Record<'before', string>>>;

export interface PartnerEmailsView {
  readonly partner: Partner;
  readonly emails: readonly ListedEmail[];
  readonly before: number | null;
  readonly next: number | null;
}

const PAGE = 50;

export async function readPartnerEmails(
  tx: Transaction,
  partnerId: string,
  asked: PartnerEmailsQuestion,
  { scope }: { scope: Scope },
): Promise<PartnerEmailsView> {
  const before = idAsked('before', asked.before) ?? null;
  const partner = await readPartnerInScope(tx, partnerId, scope);
  const emails = await readEmails(tx, { scope: [partnerId], before, limit: PAGE + 1 });
  const shown = emails.slice(0, PAGE);
  return { partner, emails: shown, before, next: emails.length > PAGE ? (shown.at(-1)?.email_id ?? null) : null };
}

export function partnerEmailsScreen({ partner, emails, before, next }: PartnerEmailsView): Screen {
  const { frame, path, menu } = partnerFrame(partner, '/emails');
  return {
    ...frame,
    content: (
      <>
        {menu}
        <Card title={plural(emails.length, 'e-mail')} note="the latest first" flush>
          <DataTable columns={COLUMNS} rows={emails} labelled nothing="No e-mail was sent to it." caption="E-mails" />
          <Pager
            first={before === null ? null : path}
            next={next === null ? null : addressOf(path, { before: next })}
            names={['Newest', 'Older']}
          />
        </Card>
      </>
    ),
  };
}

export const emailTone = (status: ListedEmail['status']): Tone =>
  status === 'sent'
    ? 'good'
    : status === 'failed' || status === 'bounced'
      ? 'bad'
      : status === 'held' || status === 'uncertain'
        ? 'warn'
        : 'plain';

const COLUMNS: readonly Column<ListedEmail>[] = [
  {
    heading: 'About',
    cell: (email) =>
      email.document === null ? (
        nameOf(email)
      ) : (
        <a class="row number" href={`/console/invoices/${email.document}`}>
          {email.document}
        </a>
      ),
  },
  {
    heading: 'Status',
    cell: ({ status, dismissal_reason }) => (
      <>
        <Chip tone={emailTone(status)}>{status}</Chip>
        {dismissal_reason !== null && <span class="soft">{` dismissed: ${dismissal_reason}`}</span>}
      </>
    ),
  },
  { heading: 'To', cell: ({ to }) => to !== null && <span class="soft wrap">{to.join(', ')}</span> },
  {
    heading: 'At',
    cell: ({ sent_at, attempted_at, queued_at }) => (
      <span class="soft">
        <Instant at={sent_at ?? attempted_at ?? queued_at} />
      </span>
    ),
  },
  { heading: 'Reason', cell: ({ reason, status }) => status !== 'sent' && <span class="soft wrap">{reason}</span> },
];
