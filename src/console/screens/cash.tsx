/** What a receipt may pay: suggestions with their evidence, open items to choose from, its payer, possible duplicates. */
import { Amount, groupThousands, minorDigits } from '../../money.ts';
import { daysBetween } from '../../month.ts';
import type { ListedException } from '../../payments/exceptions.ts';
import type { PaymentJson } from '../../payments/payment.ts';
import type { User } from '../../people/roles.ts';
import type { ToDo } from '../../remedy.ts';
import { plural } from '../../text.ts';
import { ActionLink, actionHref, mayDo } from '../action-link.tsx';
import { Form } from '../form.tsx';
import { Card, Chip, type Column, DataTable, Money } from '../kit.tsx';
import type { Reader } from '../page.tsx';
import { type CashItem, ITEMS_SHOWN, type LikelyPayer } from './cash.sql.ts';
import { Suggestion, suggestionsOf } from './suggestion.tsx';

/** What was filled in before more was searched for. */
export interface Kept {
  /** The numbers that are ticked. */
  readonly chosen: readonly string[];
  readonly fee: string;
  readonly amount: string;
}

export const NOTHING_KEPT: Kept = { chosen: [], fee: '', amount: '' };

export interface Choices extends Kept {
  readonly q: string | undefined;
  readonly payers: readonly LikelyPayer[];
  readonly items: readonly CashItem[];
  /** What the settings let a payment be short of an invoice in its currency. */
  readonly smallDifference: string | null;
}

interface Cash {
  readonly payment: PaymentJson;
  readonly user: User;
  readonly reader: Reader;
}

const mayApply = ({ user, payment }: Pick<Cash, 'user' | 'payment'>): boolean =>
  mayDo(user, 'payment.apply', payment.partner_id);

/** A button that shows what applying the payment to these would do. */
function Apply({
  numbers,
  accepts,
  payment,
  user,
  reader,
}: Cash & { numbers: readonly string[]; accepts: ToDo | null }) {
  if (!mayApply({ user, payment })) return <span />;
  return (
    <Form action={actionHref('payment.apply')} token={reader.formToken}>
      {Object.entries(accepts?.input ?? { paymentId: String(payment.payment_id), numbers }).map(([name, value]) =>
        [value].flat().map((each) => <input type="hidden" name={name} value={each} />),
      )}
      <button type="submit" name="step" value="preview" aria-label={`Apply to ${numbers.join(', ')}`}>
        Apply
      </button>
    </Form>
  );
}

/** Each with the reasons, the surest first. */
export function Suggestions({ exception, ...cash }: Cash & { exception: ListedException }) {
  const suggested = suggestionsOf(exception).filter(({ numbers }) => numbers.length > 0);
  if (suggested.length === 0) return null;
  return (
    <Card title="Suggested" note="nothing is applied until you confirm it" flush>
      <ul class="ticks in suggestions">
        {suggested.map((each) => (
          <Suggestion of={each} currency={cash.payment.currency}>
            <Apply numbers={each.numbers} accepts={each.accepts} {...cash} />
          </Suggestion>
        ))}
      </ul>
    </Card>
  );
}

/** The payments that it may be the same as: reversed as a duplicate, or kept. */
export function Duplicates({
  exception,
  payment,
  user,
}: Pick<Cash, 'payment' | 'user'> & { exception: ListedException }) {
  const same = exception.suggestions.filter(({ same_as }) => same_as !== null);
  if (exception.kind !== 'possible_duplicate' && exception.kind !== 'digits_swapped') return null;
  const partner = payment.partner_id;
  return (
    <Card title={exception.kind === 'digits_swapped' ? 'Digits may be swapped' : 'Possible duplicate'}>
      <div class="stack">
        {same.length === 0 && <p>{exception.reason}</p>}
        {same.map(({ same_as, why, accepts }) => (
          <div>
            <p>
              {'Perhaps the same as '}
              <a href={`/console/payments/${same_as}`}>{`payment ${same_as}`}</a>: <span class="soft">{why}</span>
            </p>
            {accepts !== null && (
              <p class="buttons">
                <ActionLink user={user} action={accepts.action} partner={partner} input={accepts.input} tone="main">
                  {accepts.label}
                </ActionLink>
              </p>
            )}
          </div>
        ))}
        <p class="buttons">
          <ActionLink
            user={user}
            action="payment.close_exception"
            partner={partner}
            input={{ exception: exception.exception }}
          >
            {exception.kind === 'digits_swapped' ? 'It was meant' : 'Keep it: it is another payment'}
          </ActionLink>
        </p>
      </div>
    </Card>
  );
}

/** Open invoices and credit to choose from: several invoices are paid one after another, in the order of the list. */
export function OpenItems({ choices, ...cash }: Cash & { choices: Choices }) {
  const { q, payers, items } = choices;
  const { payment, user, reader } = cash;
  const may = mayApply({ user, payment });
  const page = `/console/payments/${payment.payment_id}`;
  const table = (
    <>
      <DataTable
        columns={columnsOf(payment, may, choices.chosen)}
        rows={items}
        nothing={
          payers.length === 0 && q === undefined
            ? 'Its payer is unknown. Search for an invoice or a partner.'
            : `Nothing in ${payment.currency} is open there.`
        }
        caption="Open items"
      />
      {items.length === ITEMS_SHOWN && (
        <p class="in soft">{`The first ${ITEMS_SHOWN} are shown. Search for others.`}</p>
      )}
    </>
  );
  return (
    <Card title="Open items" note={q === undefined ? payersInWords(payers) : `found by “${q}”`} flush>
      {may ? (
        // One form, so that what is ticked and filled in survives a search for more.
        <Form action={page} token={reader.formToken}>
          <Find q={q} />
          <input type="hidden" name="paymentId" value={payment.payment_id} />
          {table}
          {items.length > 0 && <Submit payment={payment} choices={choices} />}
        </Form>
      ) : (
        <>
          <form action={page}>
            <Find q={q} />
          </form>
          {table}
        </>
      )}
    </Card>
  );
}

const Find = ({ q }: { q: string | undefined }) => (
  <div class="in filters">
    <label class="field">
      Number or partner
      <input name="q" value={q} type="search" />
    </label>
    <button type="submit">Find</button>
  </div>
);

/** An amount in minor units, for sum.js. */
const minorUnits = (amount: string, currency: string): string =>
  Amount.of(amount, currency).toString().replace('.', '');

function Submit({ payment, choices }: { payment: PaymentJson; choices: Choices }) {
  const { smallDifference, fee, amount } = choices;
  const { currency, unapplied } = payment;
  return (
    <div class="in stack">
      <Sum payment={payment} />
      <div class="beside">
        <div class="field">
          <label for="fee">
            Bank fee <span class="count">optional</span>
          </label>
          <input id="fee" name="fee" value={fee} inputMode="decimal" autocomplete="off" aria-describedby="fee-help" />
          <p class="help" id="fee-help">
            {smallDifference === null
              ? `What a bank kept of it. The setting small_difference allows none in ${currency} yet.`
              : `What a bank kept of it, at most ${smallDifference} ${currency}. It is written to bank charges, and the payment and the fee must be all that is open on the invoices.`}
          </p>
        </div>
        <div class="field">
          <label for="amount">
            Amount <span class="count">optional</span>
          </label>
          <input
            id="amount"
            name="amount"
            value={amount}
            inputMode="decimal"
            autocomplete="off"
            aria-describedby="amount-help"
          />
          <p class="help" id="amount-help">
            {`For one invoice. Without it, as much as possible of ${groupThousands(unapplied)} ${currency} is applied; the rest stays unapplied cash.`}
            {smallDifference !== null &&
              ` Of a payment that is short by a small difference (at most ${smallDifference} ${currency}), the rest is written to bank charges.`}
          </p>
        </div>
      </div>
      <p class="buttons">
        <button type="submit" class="main" name="step" value="preview" formAction={actionHref('payment.apply')}>
          See what it does
        </button>
      </p>
    </div>
  );
}

/** What is chosen against what arrived, kept up by sum.js. Without scripts the preview shows the same. */
const Sum = ({ payment: { currency, unapplied } }: { payment: PaymentJson }) => (
  <div aria-live="polite">
    <dl class="figures sum" hidden data-sum={minorUnits(unapplied, currency)} data-digits={minorDigits(currency)}>
      {(
        [
          ['Chosen', 'chosen'],
          ['Payment', 'paid'],
          ['Bank fee', 'fee'],
          ['Stays open', 'open'],
          ['Stays unapplied', 'unapplied'],
        ] as const
      ).map(([name, of]) => (
        <div>
          <dt>{name}</dt>
          <dd>
            <span data-of={of} />
            {'\u00a0'}
            <span class="currency">{currency}</span>
          </dd>
        </div>
      ))}
    </dl>
  </div>
);

const payersInWords = (payers: readonly LikelyPayer[]): string =>
  payers.length <= 3 ? payers.map(({ name }) => name).join(', ') : plural(payers.length, 'likely payer');

const columnsOf = (
  { unapplied, received_on }: PaymentJson,
  may: boolean,
  chosen: readonly string[],
): Column<CashItem>[] => [
  {
    heading: 'Number',
    cell: ({ number, document, balance, currency }) => (
      <span class="choose">
        {may && (
          <input
            type="checkbox"
            name={document === 'invoice' ? 'numbers' : 'creditNotes'}
            value={number}
            checked={chosen.includes(number)}
            data-minor={`${document === 'invoice' ? '' : '-'}${minorUnits(balance, currency)}`}
            aria-label={`Choose ${number}`}
          />
        )}
        <a class="row number" href={`/console/invoices/${number}`}>
          {number}
        </a>
      </span>
    ),
  },
  { heading: 'Partner', cell: ({ partner_name }) => <span class="wrap">{partner_name}</span> },
  {
    heading: 'Due',
    cell: ({ due_on }) =>
      due_on === null ? (
        <Chip>credit</Chip>
      ) : (
        <>
          <span class="day">{due_on}</span>{' '}
          {daysBetween(due_on, received_on) > 0 && (
            <span class="soft day">{`${plural(daysBetween(due_on, received_on), 'day')} late`}</span>
          )}
        </>
      ),
  },
  {
    heading: 'Balance',
    number: true,
    cell: ({ document, balance, currency }) => (
      <>
        {Amount.of(balance, currency).equals(Amount.of(unapplied, currency)) && <Chip tone="good">same amount</Chip>}{' '}
        <Money amount={document === 'credit_note' ? `-${balance}` : balance} currency={currency} />
      </>
    ),
  },
];

/** Names the payer without applying anything, or corrects it. */
export function Payer({ choices: { payers }, payment, user, reader }: Cash & { choices: Choices }) {
  const { partner_id, payment_id } = payment;
  if (!mayDo(user, 'payment.assign', partner_id)) return null;
  return (
    <Card title={partner_id === null ? 'Whose payment is it?' : 'Is it another partner’s?'}>
      <Form action={actionHref('payment.assign')} token={reader.formToken} class="filters">
        <input type="hidden" name="paymentId" value={payment_id} />
        <label class="field">
          Partner
          <input name="partnerId" list="payers" autocomplete="off" required />
        </label>
        <datalist id="payers">
          {payers
            .filter((each) => each.partner_id !== partner_id)
            .map(({ partner_id: id, name }) => (
              <option value={id}>{name}</option>
            ))}
        </datalist>
        <button type="submit" name="step" value="preview">
          Assign
        </button>
      </Form>
      <p class="help">It is kept as this partner’s unapplied cash, and later payments of the same account are known.</p>
    </Card>
  );
}
