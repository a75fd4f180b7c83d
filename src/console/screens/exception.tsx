/** A reconciliation exception and, for money without a quote, the quotes that it may belong to. */

import { actionHref, Chip, Money, Tone } from '#console/parts';
import { needsWork, ReconciliationException } from '#splits/reconcile-month';

const STATUS: Readonly<Record<ReconciliationException['status'], string>> = {
  short: 'short',
  over: 'over',
  held: 'held for the partner',
  missing: 'missing',
  late: 'late',
  other_account: 'on another account',
  misrouted: 'misrouted',
  reversed: 'transfer reversed',
  disputed: 'disputed',
  unknown: 'no quote',
  returned: 'returned',
  closed: 'closed',
};

const toneOf = (exception: ReconciliationException): Tone =>
  !needsWork(exception) ? 'plain' : exception.status === 'missing' || exception.status === 'unknown' ? 'bad' : 'warn';

export const ExceptionStatus = ({ exception }: { exception: ReconciliationException }) => (
  <Chip tone={toneOf(exception)}>{STATUS[exception.status]}</Chip>
);

type ExceptionProps = Readonly<{
  exception: ReconciliationException;
  names: ReadonlyMap<string, string>;
  /** Returns whether the user may act on the exception for one partner, or for all partners if the partner is null. */
  may: (action: string, partnerId: string | null) => boolean;
}>;

export function ExceptionCell({ exception, names, may }: ExceptionProps) {
  const { partner_id, quote_id, account, balance_transactions, other_accounts, reason } = exception;
  return (
    <div>
      <code class="hash">{account === null ? quote_id : balance_transactions[0]}</code>
      <p class="soft">
        {partner_id === null ? (
          'of an unknown partner'
        ) : (
          <a href={`/console/partners/${partner_id}`}>{names.get(partner_id) ?? partner_id}</a>
        )}
        {account !== null && ` on ${account}`}
        {other_accounts.length > 0 && `, received on ${other_accounts.join(', ')}`}
        {reason !== null && `: ${reason}`}
      </p>
      {exception.status === 'unknown' && <Choices exception={exception} names={names} may={may} />}
    </div>
  );
}

function Choices({ exception, names, may }: ExceptionProps) {
  const { candidates, named, quote_id, sent, balance_transactions, account } = exception;
  const transaction = balance_transactions[0] ?? '';
  const match = (quoteId: string, partnerId: string) =>
    actionHref('processor.match', { balance_transaction: transaction, quoteId, partnerId, account: account ?? '' });
  return (
    <p>
      {sent !== null && (
        <span class="soft">
          sent as <Money amount={sent.amount} currency={sent.currency} />.{' '}
        </span>
      )}
      {quote_id !== null && (
        <span class="soft">{`names ${quote_id}${named.length === 0 ? ', which is not in the ledger yet' : ''}. `}</span>
      )}
      {[...named.map((each) => ({ ...each, quote_id: quote_id ?? '' })), ...candidates].map((each) => (
        <span class="line">
          {may('processor.match', each.partner_id) ? (
            <a href={match(each.quote_id, each.partner_id)}>{`Match to ${each.quote_id}`}</a>
          ) : (
            `Possibly ${each.quote_id}`
          )}
          <span class="soft">{` of ${names.get(each.partner_id) ?? each.partner_id}`}</span>
        </span>
      ))}
      {may('processor.close', null) && (
        <span class="line">
          <a href={actionHref('processor.close', { balance_transactions: transaction, account: account ?? '' })}>
            Close without a quote
          </a>
        </span>
      )}
    </p>
  );
}
