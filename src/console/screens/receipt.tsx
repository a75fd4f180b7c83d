/**
 * A receipt or other payment exception: what was received and applied, and suggestions for the rest. Refusal:
 * page_unknown.
 */
import { Settings } from '#config/settings';
import {
  ActionLink,
  AffectedPartners,
  Card,
  Chip,
  Facts,
  Figures,
  Instant,
  InvoiceLink,
  Marks,
  Money,
  MoreActions,
  PageUser,
  Screen,
  textAsked,
} from '#console/parts';
import { Remedies } from '#console/remedies';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { standingOf } from '#lists/payments';
import { isZero } from '#money';
import { readPartners } from '#partners/partners.sql';
import { describeExceptions, EXCEPTION_NAMES, ListedException } from '#payments/exceptions';
import { readExceptions } from '#payments/exceptions.sql';
import { PaymentJson, paymentJson } from '#payments/payment';
import { readPayments } from '#payments/payments.sql';
import { User } from '#people/roles';
import { isInScope, Scope } from '#people/scope';
import { Report, readLikelyPayers, readOpenItems, readReports } from './cash.sql.ts';
import { CashForm, Choices, Duplicates, NOTHING_KEPT, OpenItems, Payer, Suggestions } from './cash.tsx';

type ReceiptView = Readonly<{
  exception: ListedException | null;
  payment: PaymentJson | null;
  partner_name: string | null;
  /** The payer, and the partners whose invoices it pays, also outside the user's scope. */
  whose: AffectedPartners;
  reports: readonly Report[];
  choices: Choices | null;
}>;

type ReceiptContext = Readonly<{
  settings: Settings;
  scope: Scope;
}>;
type ReceiptQuery = ReceiptContext &
  Readonly<{
    q: string | undefined;
  }>;

/** `12` and `payment-12` name a payment in any state; `line-7` and `payout-3` only an open exception. */
export async function readReceipt(
  tx: Transaction,
  name: string,
  { settings, scope, q, kept = NOTHING_KEPT }: ReceiptQuery & { readonly kept?: CashForm },
): Promise<ReceiptView> {
  const [, digits] = /^(?:payment-)?([1-9]\d{0,14})$/.exec(name) ?? [];
  if (digits === undefined) return readOther(tx, name, { settings, scope });
  const id = Number(digits);
  const [row] = await readPayments(tx, { ids: [id] });
  if (row === undefined || (scope !== null && (row.partner_id === null || !isInScope(scope, row.partner_id)))) {
    throw refuse('page_unknown', { path: `/console/payments/${name}` });
  }
  const payment = paymentJson(row);
  const exception = (await readException(tx, `payment-${id}`, { settings, scope })) ?? null;
  const applications = payment.applications.filter(({ partner_id }) => isInScope(scope, partner_id));
  return {
    exception,
    payment: { ...payment, applications },
    whose: partnersOf(payment),
    partner_name:
      row.partner_id === null ? null : ((await readPartners(tx, row.partner_id))[0]?.name ?? row.partner_id),
    reports: await readReports(tx, { id }),
    choices: isZero(payment.unapplied)
      ? null
      : await readChoices(tx, payment, exception, { settings, scope, q: textAsked(q), kept }),
  };
}

async function readException(tx: Transaction, name: string, asked: ReceiptContext) {
  const found = (await readExceptions(tx, asked.scope)).filter(({ exception }) => exception === name);
  const [described] = await describeExceptions(tx, asked, found);
  return described;
}

async function readOther(tx: Transaction, name: string, asked: ReceiptContext): Promise<ReceiptView> {
  const exception = await readException(tx, name, asked);
  if (exception === undefined || asked.scope !== null)
    throw refuse('page_unknown', { path: `/console/payments/${name}` });
  return { exception, payment: null, partner_name: null, whose: null, reports: [], choices: null };
}

async function readChoices(
  tx: Transaction,
  payment: PaymentJson,
  exception: ListedException | null,
  { settings, scope, q, kept }: ReceiptQuery & { readonly kept: CashForm },
): Promise<Choices> {
  const known = [payment.partner_id, ...(exception?.suggestions ?? []).map((each) => each.partner_id)];
  const payers = await readLikelyPayers(tx, { known, payer: payment.payer, scope });
  return {
    ...kept,
    q,
    payers,
    items: await readOpenItems(tx, {
      currency: payment.currency,
      partners: payers.map(({ partner_id }) => partner_id),
      ...{ q, scope, chosen: kept.chosen },
    }),
    smallDifference: settings.small_difference[payment.currency] ?? null,
  };
}

export function receiptScreen(view: ReceiptView, { user, reader }: { user: User; reader: PageUser }): Screen {
  const { exception, payment } = view;
  const crumbs = [{ name: 'Payments', href: '/console/payments' }];
  if (payment === null) {
    return {
      ...{ place: 'payments', crumbs, title: exception?.exception ?? '' },
      lead: exception !== null && <Chip tone="warn">{EXCEPTION_NAMES[exception.kind]}</Chip>,
      content: exception !== null && <Other exception={exception} user={user} />,
    };
  }
  const { payment_id } = payment;
  const id = String(payment_id);
  return {
    ...{ place: 'payments', crumbs, title: `Payment ${id}` },
    lead: (
      <>
        <Marks marks={standingOf(payment)} />{' '}
        {exception !== null && <Chip tone="warn">{EXCEPTION_NAMES[exception.kind]}</Chip>}
      </>
    ),
    actions: (
      <>
        {payment.status !== 'reversed' && (
          <ActionLink user={user} action="payment.reverse" partner={view.whose} input={{ paymentId: id }}>
            Reverse
          </ActionLink>
        )}
        {payment.payer.account !== null && (
          <MoreActions
            user={user}
            actions={[
              {
                ...{ action: 'payment.forget_account', partner: null, input: { account: payment.payer.account } },
                name: "Forget the payer's bank account",
              },
            ]}
          />
        )}
      </>
    ),
    content: (
      <div class="columns cash">
        <div class="stack">
          <Received view={view} payment={payment} />
          <History payment={payment} whose={view.whose} user={user} />
        </div>
        <div class="stack">
          {exception !== null && <Duplicates exception={exception} payment={payment} user={user} />}
          {view.choices === null ? (
            <p class="nothing">Nothing is unapplied.</p>
          ) : (
            <>
              {exception !== null && (
                <Suggestions exception={exception} payment={payment} user={user} reader={reader} />
              )}
              <OpenItems choices={view.choices} payment={payment} user={user} reader={reader} />
              <Payer choices={view.choices} payment={payment} user={user} reader={reader} />
            </>
          )}
        </div>
      </div>
    ),
  };
}

const partnersOf = ({ partner_id, applications }: PaymentJson): AffectedPartners =>
  partner_id === null
    ? null
    : [partner_id, ...applications.filter(({ unapplied_on }) => unapplied_on === null).map((each) => each.partner_id)];

function Received({ view: { partner_name, reports }, payment }: { view: ReceiptView; payment: PaymentJson }) {
  const { currency, payer, partner_id } = payment;
  return (
    <Card title="Received" note={payment.received_on}>
      <div class="stack">
        <Figures
          figures={[
            ['Amount', <Money amount={payment.amount} currency={currency} />],
            ['Unapplied', <Money amount={payment.unapplied} currency={currency} />],
          ]}
        />
        <Facts
          facts={[
            [
              'Partner',
              partner_id === null ? (
                <Chip tone="warn">unknown</Chip>
              ) : (
                <a href={`/console/partners/${partner_id}`}>{partner_name}</a>
              ),
            ],
            ['Payer', payer.name],
            ['Its account', payer.account],
            ['To our account', payment.account],
            ['Method', payment.method],
            ['Reference', payment.reference],
            ['In the books on', payment.entry_on === payment.received_on ? null : payment.entry_on],
          ]}
        />
        {reports.map((each) => (
          <div class="said">
            <p class="count">
              {`Reported by ${SOURCES[each.source] ?? each.source}, `}
              <Instant at={each.recorded_at} />
            </p>
            {each.text !== null && <p class="wrap">{each.text}</p>}
            <Facts
              facts={[
                ['reference', each.reference],
                ...each.fields
                  .filter(({ text }) => text !== each.text && text !== each.reference)
                  .map(({ field, text }) => [field.replaceAll('_', ' '), text] as const),
              ]}
            />
          </div>
        ))}
      </div>
    </Card>
  );
}

const SOURCES: Readonly<Record<string, string>> = { hand: 'hand', bank: 'the bank', processor: 'the processor' };

function History({ payment, whose, user }: { payment: PaymentJson; whose: AffectedPartners; user: User }) {
  const { currency, partner_id, applications, reversals, disputes } = payment;
  const id = String(payment.payment_id);
  const live = applications.filter(({ unapplied_on }) => unapplied_on === null);
  return (
    <Card
      title="History"
      actions={
        live.length > 1 && (
          <ActionLink user={user} action="payment.unapply" partner={whose} input={{ paymentId: id }} tone="small">
            Undo all
          </ActionLink>
        )
      }
    >
      <ol class="timeline">
        <li>
          <time>{payment.recorded_at.slice(0, 10)}</time>
          <span>
            Recorded <span class="soft">{`· ${payment.recorded_by}`}</span>
          </span>
        </li>
        {applications.map((each) => (
          <li>
            <time>{each.applied_on}</time>
            <span>
              <Money amount={each.amount} currency={currency} /> to <InvoiceLink number={each.number} />
              {each.small_difference !== null && (
                <>
                  {', and '}
                  <Money amount={each.small_difference} currency={currency} /> to bank charges
                </>
              )}
              <span class="soft">{` · ${each.evidence.why} · ${each.confirmed_by}`}</span>
              {each.unapplied_on === null ? (
                <>
                  {' '}
                  <ActionLink
                    user={user}
                    action="payment.unapply"
                    partner={partner_id === null ? null : [partner_id, each.partner_id]}
                    input={{ paymentId: id, number: each.number }}
                    tone="small"
                  >
                    Undo
                  </ActionLink>
                </>
              ) : (
                <>
                  {' '}
                  <Chip>{`undone on ${each.unapplied_on}`}</Chip>
                </>
              )}
            </span>
          </li>
        ))}
        {reversals.map((each) => (
          <li>
            <time>{each.reversed_on}</time>
            <span>
              {`${each.kind}: `}
              <Money amount={each.amount} currency={currency} />
              {each.duplicate_of !== null && (
                <>
                  {', the same as '}
                  <a href={`/console/payments/${each.duplicate_of}`}>{`payment ${each.duplicate_of}`}</a>
                </>
              )}
              {each.booked_to !== null && ` to ${each.booked_to}`}
              <span class="soft">{` · ${each.code === null ? '' : `${each.code} `}${each.reason}`}</span>
              {each.reinstated_on !== null && (
                <>
                  {' '}
                  <Chip>{`reinstated on ${each.reinstated_on}`}</Chip>
                </>
              )}
            </span>
          </li>
        ))}
        {disputes.map((each) => (
          <li>
            <time>{each.opened_on}</time>
            <span>
              {'Disputed with the processor: '}
              <Money amount={each.amount} currency={currency} />
              <span class="soft">{` · ${each.reason}`}</span> <Chip>{each.outcome ?? 'open'}</Chip>
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Other({ exception: each, user }: { exception: ListedException; user: User }) {
  return (
    <div class="narrow stack">
      <Card title="What it is" note={each.since}>
        <div class="stack">
          {each.amount !== null && each.currency !== null && (
            <Figures figures={[['Amount', <Money amount={each.amount} currency={each.currency} />]]} />
          )}
          {each.text !== null && <p class="soft wrap">{each.text}</p>}
          <p class="wrap">{each.reason}</p>
          <p class="buttons">
            <Remedies remedies={each.remedies} user={user} partner={null} />
          </p>
          {each.kind === 'waiting_event' && (
            <p class="soft">This exception resolves itself when the awaited event arrives.</p>
          )}
        </div>
      </Card>
    </div>
  );
}
