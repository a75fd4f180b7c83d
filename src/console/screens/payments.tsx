/** Cash application: receipts that wait for a decision, each with the documents that it may pay and why. */
import type { Settings } from '../../config/settings.ts';
import type { Transaction } from '../../database/transaction.ts';
import { type ListedException, listExceptions } from '../../payments/exceptions.ts';
import { plural } from '../../text.ts';
import { Chip, Money } from '../kit.tsx';
import type { Screen } from '../page.tsx';

export const readPayments = (tx: Transaction, settings: Settings): Promise<ListedException[]> =>
  listExceptions(tx, settings);

const KINDS: Readonly<Record<ListedException['kind'], string>> = {
  unknown_payer: 'payer unknown',
  possible_duplicate: 'possible duplicate',
  digits_swapped: 'digits swapped',
  suggestion: 'suggestion',
  unapplied_cash: 'unapplied cash',
  payout: 'payout',
  bank_line: 'bank line',
  bank_statement: 'bank statement',
  event: 'event',
  waiting_event: 'waiting event',
};

export function paymentsScreen(exceptions: readonly ListedException[]): Screen {
  return {
    place: 'payments',
    title: 'Payments',
    lead: exceptions.length === 0 ? 'nothing waits' : `${plural(exceptions.length, 'receipt')} to decide`,
    acts: (
      <>
        <a class="button" href="/console/payments/record">
          Record payment
        </a>
        <a class="button main" href="/console/payments/import">
          Import bank file
        </a>
      </>
    ),
    content: (
      <div class="stack">
        {exceptions.map((exception) => (
          <Receipt exception={exception} />
        ))}
        {exceptions.length === 0 && (
          <p class="nothing">Every receipt is applied. New ones appear here when a bank file is imported.</p>
        )}
      </div>
    ),
  };
}

function Receipt({ exception: each }: { exception: ListedException }) {
  const href = `/console/payments/${each.exception}`;
  return (
    <section class="card match">
      <div class="receipt">
        <div class="figures">
          <dl>
            <dt>
              {each.since} <Chip tone="warn">{KINDS[each.kind]}</Chip>
            </dt>
            <dd>
              {each.amount !== null && each.currency !== null && (
                <Money amount={each.amount} currency={each.currency} />
              )}
            </dd>
          </dl>
        </div>
        <p>
          <a class="row" href={href}>
            {each.payer?.name ?? each.partner_name ?? 'Unknown payer'}
          </a>
        </p>
        <p class="soft">{each.text ?? each.reason}</p>
        {each.reference !== null && <p class="count">{each.reference}</p>}
      </div>
      <ul class="ticks">
        {each.suggestions.map(({ number, amount, why, confidence }) => (
          <li class="suggestion">
            <Chip
              tone={Number(confidence) >= 0.8 ? 'good' : 'plain'}
            >{`${Math.round(Number(confidence) * 100)} %`}</Chip>
            <span>
              {number !== null && (
                <a class="number" href={`/console/invoices/${number}`}>
                  {number}
                </a>
              )}{' '}
              {each.currency !== null && <Money amount={amount} currency={each.currency} />}
              <br />
              <span class="soft">{why}</span>
            </span>
            {number !== null && (
              <a class="button" href={`${href}/apply?to=${number}`}>
                Apply
              </a>
            )}
          </li>
        ))}
        {each.suggestions.length === 0 && (
          <li class="suggestion">
            <span />
            <span class="soft">{each.reason}</span>
            <a class="button" href={`${href}/apply`}>
              Choose
            </a>
          </li>
        )}
      </ul>
    </section>
  );
}
