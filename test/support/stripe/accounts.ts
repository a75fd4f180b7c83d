/**
 * The accounts of the stand-in: their objects, what is on their balances, and the balance transactions that say so. The
 * platform's own account is the empty one.
 */
import type { Stripe } from 'stripe';
import { decimalsOf } from './amounts.ts';
import { balanceTransaction, payout } from './shapes.ts';
import { type Call, found, page, type State, type StripeObject, StripeRefusal } from './state.ts';

/** Wrong parameters: found before the call begins, so that its idempotency key is not spent. */
export const refuse = (message: string, param: string, code?: string) =>
  new StripeRefusal(400, message, code === undefined ? { param } : { param, code });

/** What turns out while the call is done: its idempotency key repeats it for a day. */
export const fail = (message: string, param: string, code?: string, payment_intent?: StripeObject) =>
  new StripeRefusal(400, message, {
    ...(code === undefined ? {} : { code }),
    ...(payment_intent === undefined ? {} : { payment_intent }),
    ...{ param, begun: true },
  });

export function keep({ state, account }: Pick<Call, 'state' | 'account'>, object: StripeObject): StripeObject {
  state.connect.objects.set(object.id, object);
  state.connect.owners.set(object.id, account);
  return object;
}

/** An object of the account that the request is made on; another's is not there. */
export function own({ state, account }: Call, id: string, what: string): StripeObject {
  const object = found(state.connect.objects, id, what);
  if (state.connect.owners.get(id) !== account) throw found(new Map(), id, what);
  return object;
}

export const objectsOf = ({ state, account }: Pick<Call, 'state' | 'account'>, what: string): StripeObject[] =>
  [...state.connect.objects.values()].filter(
    ({ id, object }) => object === what && state.connect.owners.get(id) === account,
  );

export function listOf(call: Call, what: string, filters: readonly string[], url: string): object {
  const wanted = objectsOf(call, what).filter((each) =>
    filters.every((name) => call.params[name] === undefined || each[name] === call.params[name]),
  );
  return page(wanted, call.params, url);
}

export const seconds = (state: State): number => Math.floor(state.now().getTime() / 1000);

// --- Balances -----------------------------------------------------------------------------------------------------------

const balanceKey = (account: string, currency: string): string => `${account}/${currency}`;

export const balanceOf = (state: State, account: string, currency = 'usd'): number =>
  state.connect.balances.get(balanceKey(account, currency)) ?? 0;

/** An amount in the currency that the account settles in, at the day's rate. */
function settled(
  { connect }: State,
  account: string,
  { amount, fee, currency }: { amount: number; fee: number; currency: string },
): { amount: number; fee: number; currency: string; exchange_rate: number | null } {
  const to = connect.settles.get(account) ?? currency;
  if (to === currency) return { amount, fee, currency, exchange_rate: null };
  const exchange_rate = connect.rates.get(`${currency}/${to}`);
  if (exchange_rate === undefined) throw new Error(`the stand-in has no rate of ${currency} in ${to}`);
  const units = (of: number) => Math.round(of * exchange_rate * 10 ** (decimalsOf(to) - decimalsOf(currency)));
  return { amount: units(amount), fee: units(fee), currency: to, exchange_rate };
}

/** The balance transaction by which a charge or an application fee came to the account. */
export function arrival({ state, account }: Pick<Call, 'state' | 'account'>, source: StripeObject): StripeObject {
  const moved = { amount: source['amount'] as number, fee: 0, currency: String(source['currency']) };
  const { amount, fee, currency, exchange_rate } = settled(state, account, moved);
  const type = source.object === 'application_fee' ? 'application_fee' : 'charge';
  return movement(state, `txn_of_${source.id}`, { type, amount, fee, currency, exchange_rate, source: source.id });
}

/** What Stripe calls the types of balance transactions in its reports. */
const CATEGORIES: Readonly<Record<string, string>> = {
  ...{ payment: 'charge', adjustment: 'dispute', payment_refund: 'refund', application_fee: 'platform_earning' },
  application_fee_refund: 'platform_earning_refund',
};

function movement(
  state: State,
  id: string,
  moved: {
    readonly type: Stripe.BalanceTransaction.Type;
    readonly amount: number;
    readonly fee: number;
    readonly currency: string;
    readonly exchange_rate: number | null;
    readonly source: StripeObject | string;
  },
): StripeObject {
  const { type, amount, fee, currency, exchange_rate } = moved;
  const fee_details = [{ type: 'application_fee', amount: fee, currency, application: null, description: null }];
  return balanceTransaction({
    ...{ id, object: 'balance_transaction', type, reporting_category: CATEGORIES[type] ?? type, description: null },
    ...{ amount, fee, fee_details: fee === 0 ? [] : fee_details, net: amount - fee, currency, exchange_rate },
    ...{ balance_type: 'payments', source: moved.source as unknown as string | Stripe.BalanceTransactionSource },
    ...{ created: seconds(state), available_on: seconds(state), status: 'available' },
  });
}

/** Whether an amount is available, of a balance in its currency or of the one that the account converts it to. */
export function has(
  state: State,
  account: string,
  { converts, ...moved }: { amount: number; currency: string; converts: boolean },
): boolean {
  const { amount, currency } = converts ? settled(state, account, { ...moved, fee: 0 }) : moved;
  return balanceOf(state, account, currency) >= amount;
}

/** What is available on a connected account goes to its bank, as on every day. */
export function payOut(state: State, account: string, currency = 'usd'): void {
  const amount = -balanceOf(state, account, currency);
  const source = payout({
    ...{ id: state.newId('po'), object: 'payout', amount: -amount, currency, livemode: false, status: 'paid' },
    ...{ created: seconds(state), arrival_date: seconds(state) },
  });
  if (amount < 0) tell(state, account, { type: 'payout', amount, currency, source });
}

export function credit(state: State, account: string, currency: string, amount: number): void {
  const here = settled(state, account, { amount, fee: 0, currency });
  const before = balanceOf(state, account, here.currency);
  state.connect.balances.set(balanceKey(account, here.currency), before + here.amount);
}

/** The fees that were held back become available to the platform. */
export function releaseFees(state: State): void {
  for (const { currency, amount } of state.connect.heldFees.splice(0)) credit(state, '', currency, amount);
}

/** What moved on a connected account, in the currency that it settles in. */
export function tell(
  state: State,
  account: string,
  moved: { type: Stripe.BalanceTransaction.Type; amount: number; fee?: number; currency: string; source: StripeObject },
): void {
  const { type, source } = moved;
  const { amount, fee, currency, exchange_rate } = settled(state, account, { fee: 0, ...moved });
  const id = state.newId('txn');
  state.balanceTransactions.set(id, movement(state, id, { type, amount, fee, currency, exchange_rate, source }));
  state.connect.owners.set(id, account);
  const before = balanceOf(state, account, currency);
  state.connect.balances.set(balanceKey(account, currency), before + amount - fee);
}

export function destination(state: State, account: string, param: string): void {
  if (!state.connect.accounts.has(account)) throw fail(`No such destination: '${account}'`, param, 'resource_missing');
}
