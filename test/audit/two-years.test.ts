/** Packs of one, two, three and 24 months of honest books: no verifier raises an alarm over any of them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { creditInvoice } from '../../src/documents/credit.ts';
import { rerunMonth } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { type Month, monthsBetween } from '../../src/month.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { someOf, times } from '../support/sweep.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { exported, verifyByPython, verifyTwice } from './books.ts';

const MONTHS = monthsBetween('2026-07' as Month, '2028-06' as Month);
const monthAfter = (at: number): Month => MONTHS[at + 1] ?? ('2028-07' as Month);

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-01T10:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2', currency: 'EUR' })]);
  const sold: Record<string, unknown>[] = [];
  for (const [at, month] of MONTHS.entries()) {
    world.at(`${monthAfter(at)}-01T10:00:00Z`);
    const accepted_at = `${month}-15T12:00:00Z`;
    const sale = quote({ accepted_at });
    const [before, long] = [sold.at(-1), sold.at(-3)];
    sold.push(sale);
    await world.rows([
      sale,
      quote({ partner_id: 'p-2', currency: 'EUR', accepted_at }),
      // What names quotes of earlier months, and what comes late.
      ...(before ? [requote(before, { accepted_at }), quote({ accepted_at: before['accepted_at'] })] : []),
      ...(long ? [reversal(long, { accepted_at })] : []),
    ]);
    await world.close();
    await correct(month, at);
    await world.deliver();
    if (at > 1) await world.closeBooks(MONTHS[at - 2] as Month);
  }
  await signCheckpoints({ ...world, environment: { ...world.environment, logKey: LOG_KEY } });
}, 240_000);
afterAll(() => world.end());

/** In turn: a payment, a credit note, a void invoice with its replacement. */
async function correct(month: Month, at: number): Promise<void> {
  const invoice = (await world.documents({ months: [month] })).find(
    ({ document, status, partner_id }) => document === 'invoice' && status === 'open' && partner_id === 'p-1',
  );
  if (invoice === undefined) return;
  const { number, currency, balance } = invoice;
  const reason = 'as agreed';
  await world.database.transaction(async (tx) => {
    if (at % 3 === 0) {
      const receivedOn = world.environment.now().toISODate() as string;
      await recordPayment(tx, world, {
        ...{ number, amount: balance, currency, method: 'wire', reference: `FT-${at}`, receivedOn },
      });
    } else if (at % 3 === 1) await creditInvoice(tx, world, { number, amount: '0.50', reason });
    else {
      await voidDocument(tx, world, { number, reason });
      await rerunMonth(tx, world, month, { newTerms: false, changed: true });
    }
  });
}

const held = (pack: string) => ['--allow', pack];

test('the pack of all 24 months is decided by every rule', async () => {
  const pack = await exported(world, { kind: 'ledger', from: MONTHS[0] as Month, to: MONTHS[23] as Month });
  const { status, output } = verifyTwice(held(pack));
  expect([status, output]).toEqual([0, expect.not.stringMatching(/WRONG|Not decidable/)]);
}, 120_000);

test.each([1, 2, 3])(
  'no pack of %i months raises an alarm, and those in a row are one log',
  async (length) => {
    const packs: string[] = [];
    const starts = MONTHS.map((_, at) => at).filter((at) => at % length === 0);
    const alone = new Set(someOf(starts, times({ few: 2, short: 3, long: 24 })));
    for (let at = 0; at + length <= MONTHS.length; at += length) {
      const months = { from: MONTHS[at] as Month, to: MONTHS[at + length - 1] as Month };
      const pack = await exported(world, { kind: 'invoices', ...months });
      packs.push(pack);
      if (!alone.has(at)) continue;
      const { status, output } = verifyByPython(held(pack));
      expect([months, status, output]).toEqual([months, 0, expect.not.stringContaining('WRONG')]);
    }
    const { status, output } = (length === 3 ? verifyTwice : verifyByPython)(['--allow', ...packs]);
    expect([status, output]).toEqual([0, expect.not.stringMatching(/WRONG|Not decidable/)]);
  },
  240_000,
);
