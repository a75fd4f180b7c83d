import {
  ActionLink,
  actionHref,
  Card,
  Chip,
  Column,
  DataTable,
  Form,
  InvoiceLink,
  Money,
  mayDo,
  PageUser,
} from '#console/parts';
import { ListedException } from '#payments/exceptions';
import { PaymentJson } from '#payments/payment';
import { User } from '#people/roles';
import { ToDo } from '#remedy';
import { Amount, daysBetween, groupThousands, minorDigits, plural } from '#values';
import { CashItem, ITEMS_SHOWN, LikelyPayer } from './cash.sql.ts';
import { Suggestion, suggestionsOf } from './suggestion.tsx';

/** Entered before a further search. */
export type CashForm = Readonly<{
  chosen: readonly string[];
  fee: string;
  amount: string;
}>;

export const NOTHING_KEPT: CashForm = { chosen: [], fee: '', amount: '' };

export type Choices = CashForm &
  Readonly<{
    q: string | undefined;
    payers: readonly LikelyPayer[];
    items: readonly CashItem[];
    /** The shortfall that the settings accept as bank charges, in the payment's currency. */
    smallDifference: string | null;
  }>;

type Cash = Readonly<{
  payment: PaymentJson;
  user: User;
  reader: PageUser;
}>;

const mayApply = ({ user, payment }: Pick<Cash, 'user' | 'payment'>) =>
  mayDo(user, 'payment.apply', payment.partner_id);

function Apply({
  numbers,
  accepts,
  payment,
  user,
  reader,
}: Cash & { numbers: readonly string[]; accepts: ToDo | null }) {
  if (!mayApply({ user, payment })) return <span />;
  return (
    <Form
      action={actionHref('payment.apply')}
      token={reader.formToken}
      hidden={accepts?.input ?? { paymentId: String(payment.payment_id), numbers }}
    >
      <button type="submit" name="step" value="preview" aria-label={`Apply to ${numbers.join(', ')}`}>
        Apply
      </button>
    </Form>
  );
}

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

/** Payments that this one may duplicate. The user reverses it as a duplicate, or keeps it. */
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
              {'Possibly the same as '}
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
            {exception.kind === 'digits_swapped' ? 'It was meant' : 'Keep it: it is a separate payment'}
          </ActionLink>
        </p>
      </div>
    </Card>
  );
}

/** Lists open invoices and credit in the order in which the payment is applied. */
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
            ? 'The payer is unknown. Search for an invoice or a partner.'
            : `No open items in ${payment.currency} match.`
        }
        caption="Open items"
      />
      {items.length === ITEMS_SHOWN && <p class="in soft">{`Showing the first ${ITEMS_SHOWN}. Search for others.`}</p>}
    </>
  );
  return (
    <Card title="Open items" note={q === undefined ? payersInWords(payers) : `found by “${q}”`} flush>
      {may ? (
        // A single form keeps ticks and values during a further search.
        <Form action={page} token={reader.formToken} hidden={{ paymentId: String(payment.payment_id) }}>
          <Find q={q} />
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

const minorUnits = (amount: string, currency: string) => String(Amount.of(amount, currency).minorUnits());

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
              ? `The fee that a bank deducted. The setting small_difference does not allow a fee in ${currency} yet.`
              : `The fee that a bank deducted, at most ${smallDifference} ${currency}. It is posted to bank ` +
                'charges, and payment plus fee must equal what is open on the invoices.'}
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
            {`For a single invoice. Without an amount, as much as possible of ${groupThousands(unapplied)} ${currency} is ` +
              'applied; the rest stays unapplied cash.'}
            {smallDifference !== null &&
              ` If a payment is short by a small difference (at most ${smallDifference} ${currency}), the rest is ` +
                'posted to bank charges.'}
          </p>
        </div>
      </div>
      <p class="buttons">
        <button type="submit" class="main" name="step" value="preview" formAction={actionHref('payment.apply')}>
          Preview
        </button>
      </p>
    </div>
  );
}

/**
 * Compares the selected items with the amount received. Without the script sum.js, only the preview shows these
 * figures.
 */
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

const payersInWords = (payers: readonly LikelyPayer[]) =>
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
        <InvoiceLink number={number} first />
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

export function Payer({ choices: { payers }, payment, user, reader }: Cash & { choices: Choices }) {
  const { partner_id, payment_id } = payment;
  if (!mayDo(user, 'payment.assign', partner_id)) return null;
  return (
    <Card title={partner_id === null ? 'Set the payer' : 'Correct the payer'}>
      <Form
        action={actionHref('payment.assign')}
        token={reader.formToken}
        hidden={{ paymentId: String(payment_id) }}
        class="filters"
      >
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
      <p class="help">
        The payment becomes this partner’s unapplied cash. Later payments from the same account are attributed to this
        partner.
      </p>
    </Card>
  );
}
