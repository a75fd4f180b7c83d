/** A reconciliation exception, why it is one, and how finance decides on it. */

import { ActionLink, Chip, Seer, Tone } from '#console/parts';
import { explained } from '#reports/reconciliation';
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

/** `owned`: the account belongs only to partners of the user. An action on another requires a role for all partners. */
export function ExceptionCell({
  exception,
  names,
  user,
  owned,
}: {
  exception: ReconciliationException;
  names: ReadonlyMap<string, string>;
  user: Seer;
  owned: boolean;
}) {
  const { partner_id, quote_id, account, balance_transactions, reason } = exception;
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
        {reason !== null && `: ${reason}`}
      </p>
      {explained(exception).map(({ text, remedies }) => (
        <p class="soft">
          {`It ${text}. `}
          {remedies.map(({ label, action, input }) => (
            <span class="line">
              <ActionLink
                user={user}
                action={action}
                partner={owned ? ((input['partnerId'] as string | undefined) ?? null) : null}
                input={input}
                tone="plain"
              >
                {label}
              </ActionLink>
            </span>
          ))}
        </p>
      ))}
    </div>
  );
}
