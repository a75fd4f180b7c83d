/**
 * Checkouts in random histories: a contact pays several invoices at once, changes its mind, pays by a debit that fails, or
 * is too late. Each history keeps a plain list of its sessions and what the processor knows of each, which says beforehand
 * what is opened, ended and paid, in whole units of the currency.
 */
import { expect } from 'vitest';
import { endChangedCheckouts } from '../../../src/delivery/checkouts/end.ts';
import { type CheckoutContext, openCheckout } from '../../../src/delivery/checkouts/open.ts';
import { linkProvider } from '../../../src/delivery/payment-link.ts';
import type { DocumentJson } from '../../../src/documents/document.ts';
import { contactAsActor } from '../../../src/partners/sign-in.ts';
import { booksOf } from '../../payments/books.ts';
import { stripePayment } from '../../payments/stripe-events.ts';
import type { Action, History } from '../../property/actions.ts';

const MINUTE = 60_000;

interface Session {
  readonly reference: string;
  /** The processor's id. */
  readonly id: string;
  readonly currency: string;
  /** What is paid of each invoice, in units, in the order of payment. */
  readonly parts: ReadonlyMap<string, bigint>;
  readonly expiresAt: number;
  /** What its payer did at the processor, and whether we were told. */
  at: 'open' | 'ordered' | 'paid' | 'failed';
  told: boolean;
  /** Another amount came: finance has to find out why, and nobody hears of the session again. */
  short?: true;
  /** Why it is over in our books; null: it lives. */
  ending: string | null;
}

const known = new WeakMap<History, Session[]>();
const sessionsOf = (history: History): Session[] => {
  const there = known.get(history) ?? [];
  known.set(history, there);
  return there;
};

const pick = <Value>({ random }: History, values: readonly Value[]): Value | undefined =>
  values[Math.floor(random() * values.length)];
const nowOf = ({ world }: History): number => world.environment.now().toMillis();
const units = (amount: string): bigint => BigInt(amount.replace('.', ''));
const sum = (amounts: Iterable<bigint>): bigint => [...amounts].reduce((one, other) => one + other, 0n);

function contextOf({ world, stripe }: History, partnerId: string): CheckoutContext {
  const environment = { ...world.environment, stripeKey: 'sk_test_world', stripeBase: stripe.url };
  const settings = {
    ...world.settings,
    payment_link: { provider: 'stripe' as const, methods: ['us_bank_account', 'card'] },
  } as typeof world.settings;
  const contact = { contact_name: 'Accounts Payable', contact_email: 'ap@partner.example' };
  return {
    ...{ environment, settings, database: world.database, links: linkProvider(settings, environment) },
    actor: contactAsActor({ ...contact, partner_id: partnerId, partner_name: partnerId }),
  };
}

/** What becomes of a session that is ended now: an open one ends, and of another one the processor tells. */
function ended(history: History, session: Session, why: string): 'over' | 'ordered' | 'paid' {
  if (session.at === 'ordered' || session.at === 'paid') return session.at;
  session.ending = session.at === 'failed' ? 'failed' : session.expiresAt <= nowOf(history) ? 'expired' : why;
  return 'over';
}

/** The checkouts of the ledger are those of the list, and ended for the same reasons. */
async function expectCheckouts(history: History): Promise<void> {
  const found = await history.world.sql(
    `SELECT c.reference, s.provider_id AS id, e.why AS ending
     FROM checkouts c JOIN checkout_sessions s USING (checkout_id) LEFT JOIN checkout_endings e USING (checkout_id)
     ORDER BY checkout_id`,
  );
  expect(found).toEqual(sessionsOf(history).map(({ reference, id, ending }) => ({ reference, id, ending })));
}

/** The least that the processor takes; of dinars, it leaves out the last digit. */
const LEAST: Readonly<Record<string, bigint>> = { USD: 50n, JPY: 50n, KWD: 0n };
const isPayable = (parts: ReadonlyMap<string, bigint>, currency: string): boolean =>
  sum(parts.values()) >= (LEAST[currency] ?? 0n) &&
  (currency !== 'KWD' || [...parts.values()].every((amount) => amount % 10n === 0n));

/** Oldest due date first, as they are issued. */
function chooseInvoices(history: History, invoices: readonly DocumentJson[]): DocumentJson[] {
  const first = pick(history, invoices);
  if (first === undefined) return [];
  const alike = invoices.filter(
    (each) => each.partner_id === first.partner_id && (each.currency === first.currency || history.random() < 0.05),
  );
  const others = Array.from({ length: Math.floor(history.random() * 3) }, () => pick(history, alike) ?? first);
  const chosen = new Set([first, ...others]);
  return invoices
    .filter((each) => chosen.has(each))
    .sort((one, other) => String(one.due_on).localeCompare(String(other.due_on)));
}

/** Some invoices of a partner, for the most part such as can be paid. */
async function someInvoices(history: History): Promise<DocumentJson[]> {
  const invoices = (await history.world.documents()).filter((each) => each.document === 'invoice');
  const open = invoices.filter((each) => each.status === 'open' && units(each.balance) > 0n);
  return chooseInvoices(history, history.random() < 0.9 ? open : invoices);
}

/** What must come of paying these: the session that is there, a new one, or why not. */
function expectedOf(
  history: History,
  chosen: readonly DocumentJson[],
  byLink: ReadonlySet<string>,
): Session | 'new' | RegExp {
  const parts = new Map(chosen.map(({ number, balance }) => [number, units(balance)]));
  const [{ currency } = { currency: '' }] = chosen;
  if (chosen.some(({ status, balance }) => status !== 'open' || units(balance) <= 0n)) return /Nothing is due on/;
  if (chosen.some(({ number }) => byLink.has(number))) return /a bank debit is in progress/;
  if (chosen.some((each) => each.currency !== currency)) return /different currencies/;
  if (!isPayable(parts, currency)) return /cannot be paid online at once/;
  const live = sessionsOf(history).filter(
    (each) => each.ending === null && [...parts.keys()].some((number) => each.parts.has(number)),
  );
  const same = live.find(
    (each) =>
      each.parts.size === parts.size &&
      [...parts].every(([number, amount]) => each.parts.get(number) === amount) &&
      each.expiresAt - nowOf(history) > 10 * MINUTE,
  );
  for (const other of live.filter((each) => each !== same)) {
    const is = ended(history, other, 'replaced');
    if (is !== 'over') return is === 'paid' ? /has just been made/ : /a bank debit is in progress/;
  }
  return same ?? 'new';
}

async function begin(history: History): Promise<boolean> {
  const chosen = await someInvoices(history);
  const [first] = chosen;
  if (first === undefined) return false;
  const byLink = await history.world.sql<{ number: string }>(
    `SELECT number FROM payment_link_orders JOIN documents USING (document_id)
     WHERE (document_id, version) NOT IN (SELECT document_id, version FROM payment_link_outcomes)`,
  );
  const expected = expectedOf(history, chosen, new Set(byLink.map(({ number }) => number)));
  const opened = await openCheckout(contextOf(history, first.partner_id), {
    ...{ partnerId: first.partner_id, numbers: chosen.map(({ number }) => number) },
    backTo: (reference) => `https://bills.example/place/payments/${reference}`,
  });
  if (expected instanceof RegExp) {
    expect(opened).toEqual({ status: 'refused', reason: expect.stringMatching(expected) });
  } else if (expected === 'new') {
    expect(opened.status).toBe('opened');
    const reference = opened.status === 'opened' ? opened.reference : '';
    sessionsOf(history).push(await sessionMade(history, reference, chosen));
  } else {
    expect(opened).toEqual({ status: 'opened', reference: expected.reference });
  }
  await expectCheckouts(history);
  return expected === 'new';
}

/** The session at the processor, which asks for the sum of the balances. */
async function sessionMade(history: History, reference: string, chosen: readonly DocumentJson[]): Promise<Session> {
  const at = [...history.stripe.state.sessions.values()].find(
    ({ metadata }) => (metadata as { checkout?: string }).checkout === reference,
  );
  const [{ currency } = { currency: '' }] = chosen;
  const parts = await history.world.sql<{ number: string }>(
    `SELECT d.number FROM checkout_invoices i JOIN checkouts c USING (checkout_id)
     JOIN documents d ON d.document_id = i.document_id WHERE c.reference = $1 ORDER BY i.position`,
    [reference],
  );
  const balances = new Map(chosen.map(({ number, balance }) => [number, units(balance)]));
  expect(parts.map(({ number }) => number).sort()).toEqual([...balances.keys()].sort());
  expect([at?.['currency'], BigInt(Number(at?.['amount_total']))]).toEqual([
    ...[currency.toLowerCase(), sum(balances.values())],
  ]);
  return {
    ...{ reference, currency, id: String(at?.['id']), expiresAt: nowOf(history) + 60 * MINUTE },
    parts: new Map(parts.map(({ number }) => [number, balances.get(number) as bigint])),
    ...{ at: 'open', told: true, ending: null },
  };
}

/** What the payer does next at the processor: the name of the event that tells us of it. */
function payerActions(
  history: History,
  session: Session,
): 'completed' | 'ordered' | 'expired' | 'paidLater' | 'failedLater' {
  const { stripe } = history;
  if (session.at === 'paid') return session.told ? 'paidLater' : 'completed';
  if (session.at === 'failed') return 'failedLater';
  if (session.at === 'ordered') {
    const how = pick(history, ['paid', 'failed'] as const) ?? 'paid';
    stripe.settle(session.id, how);
    session.at = how;
    return how === 'paid' ? 'paidLater' : 'failedLater';
  }
  if (session.expiresAt <= nowOf(history)) return 'expired';
  const how = pick(history, ['paid', 'unpaid'] as const) ?? 'paid';
  expect(stripe.complete(session.id, how)).toBe(true);
  session.at = how === 'paid' ? 'paid' : 'ordered';
  return how === 'paid' ? 'completed' : 'ordered';
}

let payments = 0;
const keys = new WeakMap<Session, string>();
function keyOf(session: Session): string {
  if (!keys.has(session)) {
    payments += 1;
    keys.set(session, `Checkout${payments}`);
  }
  return keys.get(session) as string;
}

/** Something happens to a session at the processor; we hear of it at once or, now and then, only the next time. */
async function goOn(history: History): Promise<boolean> {
  const { world, random } = history;
  const session = pick(
    history,
    sessionsOf(history).filter(({ ending, short }) => ending === null && !short),
  );
  if (session === undefined) return false;
  const news = payerActions(history, session);
  session.told = random() < 0.85;
  if (!session.told) return true;
  const whole = sum(session.parts.values());
  // The processor may say that another amount came: that pays nothing by itself.
  const isShort = news === 'completed' && random() < 0.15 && whole > 100n;
  const received = isShort ? whole - 10n : whole;
  const key = keyOf(session);
  const event = stripePayment({
    ...{ amount: Number(received), currency: session.currency.toLowerCase(), session: session.id, link: null, key },
    on: world.environment.now().toISODate(),
    metadata: history.stripe.state.sessions.get(session.id)?.['metadata'] as Record<string, string>,
  })[news]();
  const before = await balancesOf(history, session);
  await booksOf(world).events([event]);
  const isPaid = news === 'completed' || news === 'paidLater';
  if (news === 'expired') session.ending = 'expired';
  if (news === 'failedLater') session.ending = 'failed';
  if (isPaid && !isShort) session.ending = 'paid';
  await expectPaid(history, session, { before, received: isPaid ? received : 0n, applies: isPaid && !isShort });
  if (isShort) session.short = true;
  await expectCheckouts(history);
  return true;
}

async function balancesOf({ world }: History, { parts }: Session): Promise<Map<string, bigint>> {
  const documents = (await world.documents()).filter(({ number }) => parts.has(number));
  return new Map(documents.map(({ number, status, balance }) => [number, status === 'open' ? units(balance) : 0n]));
}

/** Each invoice is paid what was recorded for it, and no more than was open; the rest is unapplied cash. */
async function expectPaid(
  history: History,
  session: Session,
  { before, received, applies }: { before: ReadonlyMap<string, bigint>; received: bigint; applies: boolean },
): Promise<void> {
  const after = await balancesOf(history, session);
  let applied = 0n;
  for (const [number, asked] of session.parts) {
    const open = before.get(number) ?? 0n;
    const paid = applies ? (asked < open ? asked : open) : 0n;
    applied += paid;
    expect([session.reference, number, after.get(number)]).toEqual([session.reference, number, open - paid]);
  }
  if (received === 0n) return;
  const receipts = await booksOf(history.world).payments();
  const receipt = receipts.find(({ reference }) => reference.endsWith(keyOf(session)));
  expect(receipt && [units(receipt.amount), units(receipt.applied), units(receipt.unapplied)]).toEqual([
    ...[received, applied, received - applied],
  ]);
}

/** As a delivery does once something else is owed than a session asks for. */
async function endChanged(history: History): Promise<boolean> {
  const live = sessionsOf(history).filter(({ ending }) => ending === null);
  for (const session of live) {
    const open = await balancesOf(history, session);
    const changed = [...session.parts].find(([number, asked]) => open.get(number) !== asked)?.[0];
    if (changed === undefined) continue;
    const [document] = await history.world.sql<{ id: string; partner_id: string }>(
      'SELECT document_id AS id, partner_id FROM documents WHERE number = $1',
      [changed],
    );
    const over = sessionsOf(history).filter((each) => each.ending === null && each.parts.has(changed));
    for (const each of over) ended(history, each, 'changed');
    await endChangedCheckouts(contextOf(history, document?.partner_id ?? ''), Number(document?.id));
    await expectCheckouts(history);
    return true;
  }
  return false;
}

export const CHECKOUT_ACTS: readonly Action[] = [
  { name: 'a contact begins to pay several invoices', weight: 3, run: begin },
  { name: 'a session at the processor goes on', weight: 3, run: goOn },
  { name: 'a session ends because something else is owed', weight: 1, rare: true, run: endChanged },
];
