/** A preview is the close itself, rolled back: it shows what the run will issue, and leaves no trace. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { monthClose } from '../../src/actions/close.ts';
import { previewAction } from '../../src/actions/run.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import { readSettings } from '../../src/config/settings.ts';
import { documentJson } from '../../src/documents/document.ts';
import type { Month } from '../../src/month.ts';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());
beforeEach(() => startOver(world));

/** Three months of three partners: invoices, a credit note that is used later, another that is not, a statement. */
async function someMonths(): Promise<void> {
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([
    partner(),
    partner({ partner_id: 'p-2', payment_terms_days: null }),
    partner({ partner_id: 'p-3', arrangement: 'connected_account', ...connected }),
  ]);
  const at = (month: string) => ({ accepted_at: `2026-${month}-10T12:00:00Z` });
  const [may, june] = [quote({ ...at('05') }), quote({ partner_id: 'p-2', ...at('05') })];
  await world.rows([
    may,
    requote(may),
    june,
    reversal(june, at('06')),
    quote({ ...at('06'), currency: 'JPY', spotPrice: '1000', partnerCut: '300', invoiceAmount: '700' }),
    quote({ partner_id: 'p-2', ...at('07') }),
    quote({ partner_id: 'p-2', ...at('07') }),
    quote({ partner_id: 'p-3', ...at('07') }),
    reversal(may, at('07')),
  ]);
}

/** A fingerprint of every table. */
async function wholeDatabase(): Promise<Record<string, unknown>> {
  const tables = await world.sql<{ name: string }>(
    `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname = 'public' ORDER BY 1`,
  );
  expect(tables.length).toBeGreaterThan(15);
  const contents: Record<string, unknown> = {};
  for (const { name } of tables) {
    const [row] = await world.sql(
      `SELECT count(*), md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM ${name} t`,
    );
    contents[name] = row;
  }
  return contents;
}

test('one month: the preview shows every document exactly as the run then issues it', async () => {
  await someMonths();
  await world.close('2026-05');
  const preview = await world.preview('2026-06');
  expect(preview.documents.map(({ number }) => number)).toEqual(['CN-2026-000001', 'INV-2026-000003']);
  await world.close('2026-06');
  expect(preview.documents.map(documentJson)).toEqual(await world.documents({ months: ['2026-06' as never] }));
  expect(preview.months).toEqual(await world.months('2026-06'));
});

test('several months: credit and numbers carry over from one previewed month to the next', async () => {
  await someMonths();
  const preview = await world.preview();
  expect(preview.months.map(({ month }) => month)).toEqual(['2026-05', '2026-06', '2026-07']);
  expect(await world.close()).toEqual(['2026-05', '2026-06', '2026-07']);
  const issued = await world.documents();
  expect(issued.map(({ number, credit_applied }) => `${number} ${credit_applied}`)).toEqual([
    'CN-2026-000001 0.00',
    'CN-2026-000002 0.00',
    'INV-2026-000001 0.00',
    'INV-2026-000002 0.00',
    'INV-2026-000003 0',
    'INV-2026-000004 7.00',
    'ST-2026-000001 0.00',
  ]);
  expect(preview.documents.map(documentJson)).toEqual(issued);
  expect(preview.months).toEqual(await world.months('2026-05', '2026-06', '2026-07'));
});

test('a preview writes nothing, and the numbers that it showed are still free', async () => {
  await someMonths();
  await world.close('2026-05');
  const before = await wholeDatabase();
  await world.preview();
  await world.preview('2026-07').catch(() => undefined);
  expect(await wholeDatabase()).toEqual(before);
  await world.close();
  expect(
    (await world.documents()).filter(({ series }) => series === 'INV-2026').map(({ sequence }) => sequence),
  ).toEqual([1, 2, 3, 4]);
});

test('the current month can be previewed, and grows until it ends', async () => {
  await someMonths();
  await world.close();
  world.at('2026-08-15T12:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
  const running = await world.preview('2026-08');
  expect(
    running.documents.map(({ number, partner_id, issued_on, invoice_amount }) => [
      number,
      partner_id,
      issued_on,
      invoice_amount,
    ]),
  ).toEqual([['INV-2026-000005', 'p-1', '2026-08-15', '7']]);
  await world.rows([quote({ accepted_at: '2026-08-15T11:00:00Z' })]);
  expect((await world.preview('2026-08')).documents).toMatchObject([{ invoice_amount: '14' }]);
  expect(await refusalOf(world.close('2026-08'))).toMatchObject({ code: 'month_not_ended' });
  expect(await world.preview()).toEqual({ months: [], documents: [], feeds: [] });
});

test('the current month is previewed together with earlier ended months without rows', async () => {
  await world.partners([partner()]);
  await world.rows([quote({ accepted_at: '2026-06-10T12:00:00Z' })]);
  await world.close('2026-06');
  world.at('2026-08-15T12:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
  expect((await world.preview('2026-08')).months.map(({ month, entries }) => [month, entries])).toEqual([
    ['2026-07', 0],
    ['2026-08', 1],
  ]);
});

test('the current month cannot be previewed while an ended month has rows', async () => {
  await someMonths();
  world.at('2026-08-15T12:00:00Z');
  expect(await refusalOf(world.preview('2026-08'))).toMatchObject({
    code: 'earlier_month_open',
    facts: { open: '2026-05' },
  });
});

test('a closed month has no preview', async () => {
  await someMonths();
  await world.close('2026-05');
  expect(await world.preview('2026-05')).toEqual({ months: [], documents: [], feeds: [] });
});

test('the preview counts what would be held, and names the reason that delivery then finds', async () => {
  const unheard = String.fromCodePoint(0x13000);
  await world.partners([
    partner(),
    partner({ partner_id: 'p-2', name: `Nile ${unheard}` }),
    partner({ partner_id: 'p-3', invoicing_contact: { name: 'Accounts', email: '', cc: [] } }),
  ]);
  const at = { accepted_at: '2026-05-10T12:00:00Z' };
  await world.rows([
    quote(at),
    quote({ ...at, currency: 'CAD' }),
    quote({ ...at, partner_id: 'p-2' }),
    quote({ ...at, partner_id: 'p-3' }),
  ]);
  const settings = { ...firstSettings('sandbox'), allow_empty: true } as Record<string, unknown>;
  settings['instructions'] = { USD: (settings['instructions'] as Record<string, unknown>)['USD'] };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-06-01T12:00:00Z' };
  const ran = await command(['--json', 'close', '2026-05', '--dry-run'], { env });
  const preview = ran.json() as { months: { deliveries: object }[]; holds: { number: string; reason: string }[] };
  expect(preview.months[0]?.deliveries).toEqual({ sent: 0, pending: 1, held: 3, failed: 0, uncertain: 0 });
  expect(preview.holds.map(({ number }) => number)).toEqual(['INV-2026-000001', 'INV-2026-000003', 'INV-2026-000004']);
  expect(preview).toMatchObject({ other_currencies: [{ number: 'INV-2026-000001', partner_currency: 'USD' }] });
  const text = await command(['close', '2026-05', '--dry-run'], { env });
  expect(text.stdout).toContain('1 document goes out by e-mail, and 3 are held');
  expect(text.stdout).toContain('settings.json has no payment instructions for CAD');
  const closed = await command(['close', '2026-05'], { env });
  expect(closed.stderr).toContain('INV-2026-000001 bills p-1 (Harbour Lights Ticketing) 7.00 CAD.');
  const reasons = await world.sql<{ number: string; reason: string }>(
    `SELECT d.number, e.reason FROM latest_emails e JOIN documents d USING (document_id) WHERE e.status = 'held' ORDER BY 1`,
  );
  // An issued document names its rerun as well.
  const rerun = / Or correct these texts and replace the document.*/;
  expect(reasons.filter(({ reason }) => rerun.test(reason))).toHaveLength(1);
  expect(preview.holds.map(({ number, reason }) => ({ number, reason }))).toEqual(
    reasons.map(({ number, reason }) => ({ number, reason: reason.replace(rerun, '') })),
  );
  const again = await command(['close', '2026-05'], { env });
  expect(again.stdout).toContain('2026-05 was already closed on 2026-06-01; nothing was issued now');
});

test('a document that a rule holds counts once: the preview has as many pending and held as the close then has', async () => {
  await world.partners([
    partner(),
    partner({ partner_id: 'p-2' }),
    // Held by the rule and by what its e-mail lacks.
    partner({ partner_id: 'p-3', invoicing_contact: { name: 'Accounts', email: '', cc: [] } }),
    partner({ partner_id: 'p-4', invoicing_contact: { name: 'Accounts', email: '', cc: [] } }),
    partner({ partner_id: 'p-5' }),
  ]);
  const sold = (partner_id: string, price: string, cut: string, due: string) =>
    quote({ partner_id, accepted_at: '2026-05-10T12:00:00Z', spotPrice: price, partnerCut: cut, invoiceAmount: due });
  const large = ['9000.00', '2700.00', '6300.00'] as const;
  const small = ['10.00', '3.00', '7.00'] as const;
  await world.rows([
    sold('p-1', ...small),
    sold('p-2', ...large),
    sold('p-3', ...large),
    sold('p-4', ...small),
    sold('p-5', ...small),
  ]);
  const settings = { ...firstSettings('sandbox'), holds: { above: { USD: '5000.00' } } };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-06-01T12:00:00Z' };
  const asked = async (...args: string[]) => {
    const ran = await command(['--json', 'close', '2026-05', ...args], { env });
    return (ran.json() as { months: { deliveries: object }[] }).months[0]?.deliveries;
  };
  expect(await asked('--dry-run')).toEqual({ sent: 0, pending: 2, held: 3, failed: 0, uncertain: 0 });
  const shown = await previewAction({ ...world, settings: readSettings(world.environment) }, monthClose, {
    month: '2026-05' as Month,
  });
  expect(shown.report.text).toContain('2 documents go out by e-mail, and 3 are held');
  expect(await asked()).toEqual({ sent: 2, pending: 0, held: 3, failed: 0, uncertain: 0 });
});

test('a credit note stands in the preview as credit, and a month of nothing in another currency is named', async () => {
  await world.partners([partner()]);
  const [sold, wrong] = [
    quote({ accepted_at: '2026-05-10T12:00:00Z' }),
    quote({ accepted_at: '2026-06-10T12:00:00Z', currency: 'EUR' }),
  ];
  await world.rows([sold]);
  await world.close('2026-05');
  const imported = await world.rows([
    wrong,
    reversal(wrong, { accepted_at: '2026-06-11T12:00:00Z' }),
    reversal(sold, { accepted_at: '2026-06-11T12:00:00Z' }),
  ]);
  expect(imported.other_currencies).toEqual([{ partner_id: 'p-1', partner_currency: 'USD', currency: 'EUR', rows: 2 }]);
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-02T12:00:00Z' };
  const { stdout } = await command(['close', '2026-06', '--dry-run'], { env });
  expect(stdout).toContain('-7.00 USD');
  expect(stdout.replace(/\s+/g, ' ')).toContain(
    "0.00 EUR: its rows add up to zero. The partner's own currency is USD.",
  );
});
