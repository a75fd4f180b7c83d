/** The receipts that need a decision, each with suggested documents and the reasons. */
import { Settings } from '#config/settings';
import { ActionLink, addressOf, Chip, Money, MoreActions, Pager, Screen, Seer, textAsked } from '#console/parts';
import { Transaction } from '#database/transaction';
import { describeExceptions, EXCEPTION_NAMES, ListedException } from '#payments/exceptions';
import { readExceptions } from '#payments/exceptions.sql';
import { Scope } from '#people/scope';
import { plural } from '#text';
import { Suggestion, suggestionsOf } from './suggestion.tsx';

type PaymentsView = Readonly<{
  exceptions: readonly ListedException[];
  total: number;
  after: string | undefined;
  next: string | null;
}>;

const PAGE = 50;

/** Returns one page. `after` is the last exception of the previous page. */
export async function readPayments(
  tx: Transaction,
  { after: asked, settings, scope }: Readonly<{ after?: string; settings: Settings; scope: Scope }>,
): Promise<PaymentsView> {
  const all = await readExceptions(tx, scope);
  const after = textAsked(asked);
  const begin = all.findIndex(({ exception }) => exception === after) + 1;
  const exceptions = await describeExceptions(tx, { settings, scope }, all.slice(begin, begin + PAGE));
  const more = begin + PAGE < all.length;
  return { exceptions, total: all.length, after, next: more ? (exceptions.at(-1)?.exception ?? null) : null };
}

const PATH = '/console/payments';

export const PaymentActions = ({ user }: { user: Seer }) => (
  <>
    <ActionLink user={user} action="payment.record" partner={null}>
      Record payment
    </ActionLink>
    <ActionLink user={user} action="payment.import" partner={null} tone="main">
      Import bank file
    </ActionLink>
    <MoreActions
      user={user}
      actions={[
        { action: 'payment.events', partner: null, name: "Process the processor's events" },
        { action: 'payment.forget_account', partner: null, name: "Forget a payer's bank account" },
      ]}
    />
  </>
);

export function paymentsScreen({ exceptions, total, after, next }: PaymentsView, { user }: { user: Seer }): Screen {
  return {
    place: 'payments',
    title: 'Payments',
    tab: PATH,
    lead: total === 0 ? 'nothing to decide' : `${plural(total, 'receipt')} to decide`,
    actions: <PaymentActions user={user} />,
    content: (
      <>
        <div class="stack">
          {exceptions.map((exception) => (
            <Receipt exception={exception} />
          ))}
          {exceptions.length === 0 && (
            <p class="nothing">All receipts are applied. New receipts appear here when a bank file is imported.</p>
          )}
        </div>
        <Pager
          first={after === undefined ? null : PATH}
          next={next === null ? null : addressOf(PATH, { after: next })}
        />
      </>
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
              {each.since} <Chip tone="warn">{EXCEPTION_NAMES[each.kind]}</Chip>
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
        {suggestionsOf(each).map((suggested) => (
          <Suggestion of={suggested} currency={each.currency}>
            <a class="button" href={href}>
              {suggested.numbers.length === 0 ? 'Compare' : 'Apply'}
            </a>
          </Suggestion>
        ))}
        {each.suggestions.length === 0 && (
          <li class="suggestion unsure">
            <span class="soft">{each.reason}</span>
            <a class="button" href={href}>
              Decide
            </a>
          </li>
        )}
      </ul>
    </section>
  );
}
