/** The history of a document, in order, from its issue to its payment or its void. */
import { Transaction } from '#database/transaction';
import { Amount } from '#money';
import { Happening, readHappenings } from './history.sql.ts';

export type HistoryLine = Readonly<{
  /** An ISO instant. */
  at: string;
  /** The action as a fixed word for programs. */
  action: Action;
  /** The action as a sentence for people. */
  says: string;
  /** Hashes, ids and replies of servers, for who examines the action. */
  technical: string | null;
  /** Who approved the action, by which request. */
  approval: Readonly<{ by: string; request: number }> | null;
  /** The internal note, which partners never see. */
  note: string | null;
  /** The name given with `--by`, and the operating system's user and host. */
  by: Readonly<{ claimed_by: string | null; os_user: string; host: string }> | null;
}>;

type Action = keyof typeof SENTENCES;

/** The sentence of each action, from the facts that `readHappenings` returns. */
const SENTENCES = {
  issued: (f: Facts) =>
    f['carried']
      ? `carried over from the previous system, as of ${f['carried']}`
      : `issued${given(' to replace ', f['replaces'])}${given(' as a credit against ', f['credits'])}`,
  credit_used: (f: Facts) => `${f['amount']} of credit from ${f['other']} applied`,
  credit_given: (f: Facts) => `${f['amount']} applied to ${f['other']}`,
  credit_returned: (f: Facts) => `${f['amount']} of credit released to ${f['other']} by the void`,
  credit_reopened: (f: Facts) => `${f['amount']} released by the void of ${f['other']}`,
  credit_taken_back: (f: Facts) => `${f['amount']} of credit from ${f['other']} taken back`,
  credit_recovered: (f: Facts) => `${f['amount']} taken back from ${f['other']}`,
  credited: (f: Facts) => `${f['amount']} credited by ${f['other']}: ${f['reason']}`,
  // Anyone who has a link can open its page, so only `invoice link` shows it.
  linked: () => 'payment link made',
  link_rotated: (f: Facts) => `payment link replaced: ${f['reason']}`,
  link_revoked: (f: Facts) => `payment link taken back: ${f['reason']}`,
  link_made: (f: Facts) =>
    `link ${f['version']} ${f['found'] === 'true' ? 'found' : 'created'} at ${f['provider']} for ${f['amount']}`,
  link_closed: (f: Facts) =>
    `link ${f['version']} for ${f['amount']} ${CLOSINGS[f['why'] as keyof typeof CLOSINGS]}` +
    `${expired(Number(f['sessions']))}${given('; ', f['detail'])}`,
  checkout_made: (f: Facts) =>
    `${f['amount']} in a session at ${f['provider']} over ${f['total']}, begun by the partner's contact`,
  checkout_ended: (f: Facts) =>
    `session over ${f['amount']} ${CHECKOUT_ENDINGS[f['why'] as keyof typeof CHECKOUT_ENDINGS]}${given('; ', f['detail'])}`,
  payment_ordered: (f: Facts) => `bank debit of ${f['amount']} ordered`,
  payment_failed: (f: Facts) => `bank debit of ${f['amount']} failed`,
  link_waits: (f: Facts) => `payment link waits: ${f['reason']}`,
  drawn: () => 'PDF rendered',
  sending_asked: (f: Facts) =>
    `e-mail requested by ${REQUESTED_BY[f['asked_for'] as keyof typeof REQUESTED_BY]}${given(' to ', f['to'])}`,
  sending: (f: Facts) =>
    `e-mail ${f['status']}${given(' to ', f['to'])}${Number(f['attempts']) > 1 ? `, attempt ${f['attempts']}` : ''}` +
    (f['status'] === 'sent' ? '' : given('; ', f['reply'])),
  attempted: (f: Facts) => `attempt ${f['attempt']} to send the e-mail: ${f['outcome']}${given('; ', f['reply'])}`,
  bounced: (f: Facts) =>
    `e-mail returned from ${f['to']}: ${f['status']} ${f['reply']}${given(', reported by ', f['server'])}`,
  portal_delivered: (f: Facts) => `delivered by the partner's portal on ${f['on']}${given(': ', f['reference'])}`,
  held: (f: Facts) => `put on hold${given(': ', f['reason'])}`,
  released: () => 'hold released',
  disputed: (f: Facts) =>
    `${f['amount']} disputed: ${f['reason']}${given('; owner ', f['owner'])}${given('; promised for ', f['promised_on'])}`,
  dispute_closed: (f: Facts) => `dispute closed: ${f['reason']}`,
  written_off: (f: Facts) => `${f['amount']} written off: ${f['reason']}`,
  write_off_undone: (f: Facts) => `write-off of ${f['amount']} undone: ${f['reason']}`,
  paid: (f: Facts) => `${f['amount']} paid, reference ${f['reference']}: ${f['why']}`,
  small_difference: (f: Facts) => `${f['amount']} written to bank charges`,
  unpaid: (f: Facts) =>
    `payment of ${f['amount']}, reference ${f['reference']}, ${
      f['kind'] ? UNPAID_BECAUSE[f['kind'] as keyof typeof UNPAID_BECAUSE] : 'unapplied'
    }${given(': ', [f['code'], f['reason']].filter(Boolean).join(' '))}${given('; bank charges of ', f['charges'], ' reversed')}`,
  refunded: (f: Facts) => `${f['amount']} refunded on ${f['on']}${given(', reference ', f['reference'])}`,
  refund_returned: (f: Facts) => `refund of ${f['amount']} returned: ${f['reason']}`,
  voided: (f: Facts) => `voided: ${f['reason']}`,
  void_noticed: (f: Facts) =>
    `notice of the void ${f['status']}${given(' to ', f['to'])}${f['status'] === 'sent' ? '' : given('; ', f['reply'])}`,
  replaced: (f: Facts) => `replaced by ${f['other']}`,
} as const;

type Facts = Happening['facts'];

const given = (before: string, text: string | null | undefined, after = '') => (text ? `${before}${text}${after}` : '');

/** Why a payment no longer counts, by the kind of its reversal. */
const UNPAID_BECAUSE = {
  returned: 'returned by the bank',
  refunded: 'refunded',
  disputed: 'disputed',
  mistake: 'removed, recorded by mistake',
  duplicate: 'removed, recorded twice',
  other: "removed, not a customer's money",
} as const;

const expired = (sessions: number) =>
  sessions === 0 ? '' : `, with ${sessions} open ${sessions === 1 ? 'session' : 'sessions'}`;

const REQUESTED_BY = {
  close: 'the close',
  rerun: 'the rerun',
  credit: 'its issue',
  missing_shares: 'its issue',
  resend: 'a user',
} as const;

const CLOSINGS = {
  void: 'deactivated because the document is void',
  paid: 'deactivated because nothing is due',
  amount_changed: 'deactivated because the balance changed',
  used_up: 'completed without a payment',
  ordered: 'deactivated because a payment is ordered',
  refused: 'refused by the processor',
  not_made: 'canceled before it was created',
} as const;

const CHECKOUT_ENDINGS = {
  replaced: 'replaced by a different session',
  canceled: 'canceled by the contact',
  changed: 'ended because the balance of an invoice changed',
  expired: 'expired',
  failed: 'ordered a debit that failed',
} as const;

/** The technical details of some actions. */
const TECHNICAL: Readonly<Partial<Record<Action, (f: Facts) => string>>> = {
  drawn: (f) => `${f['bytes']} bytes, sha256 ${f['sha256']}`,
  sending_asked: (f) => `${f['message_id']}`,
  sending: (f) =>
    [f['status'] === 'sent' && f['reply'], f['sha256'] && `sha256 ${f['sha256']}`].filter(Boolean).join('; '),
};

/** Sendings name the event of the action whose e-mail they send. The action's own line has its approval. */
const FOLLOWING: readonly string[] = ['sending_asked', 'sending', 'attempted', 'bounced', 'drawn', 'small_difference'];

export async function readHistory(tx: Transaction, documentId: number): Promise<HistoryLine[]> {
  const happenings = await readHappenings(tx, { documentId });
  return happenings.map(({ at, action, currency, facts, claimed_by, os_user, host, ...event }) => {
    const shown: Record<string, string> = {
      ...(event.reason !== null && { reason: event.reason }),
      ...withoutNull(facts),
    };
    for (const name of ['amount', 'total', 'charges']) {
      if (shown[name]) shown[name] = Amount.of(shown[name], currency).forPeople();
    }
    const { request, approver: by } = FOLLOWING.includes(action) ? { request: null, approver: null } : event;
    return {
      at,
      action: action as Action,
      says: SENTENCES[action as Action](shown),
      technical: TECHNICAL[action as Action]?.(shown) || null,
      approval: request === null || by === null ? null : { by, request: Number(request) },
      note: FOLLOWING.includes(action) ? null : event.note,
      by: os_user === null || host === null ? null : { claimed_by, os_user, host },
    };
  });
}

const withoutNull = (facts: Facts): Record<string, string> =>
  Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null));

/** What follows the sentence of an action: its internal note, and who approved it. */
export const afterwords = ({ note, approval }: Pick<HistoryLine, 'note' | 'approval'>) =>
  given('; internal note: ', note) +
  (approval === null ? '' : `; approved by ${approval.by}, request ${approval.request}`);
