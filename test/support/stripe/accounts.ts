/**
 * The accounts of the stand-in: their objects, what is on their balances, and the balance transactions that say so. The
 * platform's own account is the empty one.
 */
import { decimalsOf } from './amounts.ts';
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
  moved: { type: string; amount: number; fee?: number; currency: string; source: StripeObject },
): void {
  const { type, source } = moved;
  const { amount, fee, currency, exchange_rate } = settled(state, account, { fee: 0, ...moved });
  const id = state.newId('txn');
  const rate = exchange_rate === null ? {} : { exchange_rate };
  state.balanceTransactions.set(id, {
    ...{ id, object: 'balance_transaction', type, currency, amount, fee, net: amount - fee, ...rate },
    ...{ created: seconds(state), source },
  });
  state.connect.owners.set(id, account);
  const before = balanceOf(state, account, currency);
  state.connect.balances.set(balanceKey(account, currency), before + amount - fee);
}

export function destination(state: State, account: string, param: string): void {
  if (!state.connect.accounts.has(account)) throw fail(`No such destination: '${account}'`, param, 'resource_missing');
}
