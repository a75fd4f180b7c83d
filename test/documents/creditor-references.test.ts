/** The creditor reference of an invoice: the same on its PDF, e-mail, payment page, e-invoice and in its JSON. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ParsedMail, simpleParser } from 'mailparser';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Instructions } from '../../src/config/instructions.ts';
import { settingsSchema } from '../../src/config/settings.ts';
import { readInvoice } from '../../src/portal/invoice.ts';
import { startOver } from '../close/start-over.ts';
import { adopt } from '../support/adopting.ts';
import { BELGIAN, SELLER } from '../support/e-invoice-partners.ts';
import { internationalWire, wire } from '../support/snapshots.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let first: World['settings'];
beforeAll(async () => {
  world = await openWorld();
  first = world.settings;
});
afterAll(() => world.end());
beforeEach(() => startOver(world));

const euro: Instructions = { wire: internationalWire };
const instruct = (instructions: Record<string, Instructions>) => {
  const issuer = { ...first.issuer, tax_id: 'US-1', e_invoice: SELLER };
  world.settings = { ...first, instructions, issuer };
};

/** Closes a month with one invoice of a Belgian partner, delivers it, and returns its number. */
async function invoiced(currency: string, month = '2026-07'): Promise<string> {
  world.at(`2026-${String(Number(month.slice(-2)) + 1).padStart(2, '0')}-02T10:00:00Z`);
  await world.partners([partner({ ...BELGIAN, currency, tax_id: 'BE0843766574' })]);
  await world.rows([quote({ partner_id: BELGIAN.partner_id, currency, accepted_at: `${month}-15T12:00:00Z` })]);
  await world.close();
  expect((await world.deliver()).map(({ status, detail }) => `${status} ${detail}`)).toEqual([
    expect.stringMatching(/^sent/),
  ]);
  return (await world.documents()).at(-1)?.number as string;
}

async function mail(number: string): Promise<ParsedMail> {
  const folder = join(world.home, 'outbox');
  const name = readdirSync(folder).find((each) => each.startsWith(number)) as string;
  return simpleParser(readFileSync(join(folder, name)));
}

const page = (partnerId: string, number: string) =>
  world.database.reading((tx) => readInvoice(tx, { partnerId, number }, { ...world, today: '2026-08-03' }));

test('an invoice in euros to an account in the SEPA has it everywhere', async () => {
  instruct({ EUR: euro });
  const number = await invoiced('EUR');
  expect(number).toBe('INV-2026-000001');
  const [document] = await world.documents();
  const reference = 'RF94INV2026000001';
  expect(document?.creditor_reference).toBe(reference);
  const { text, html, attachments } = await mail(number);
  for (const said of [text, html]) expect(said).toContain('RF94 INV2 0260 0000 1');
  const xml = attachments.find(({ filename }) => filename?.endsWith('.xml'))?.content.toString();
  expect(xml).toContain(`<cbc:PaymentID>${reference}</cbc:PaymentID>`);
  expect((await page(BELGIAN.partner_id, number))?.pay?.creditorReference).toBe('RF94 INV2 0260 0000 1');
  const { checks } = await world.verify();
  expect(checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
});

test('an invoice of another currency, or to an account elsewhere, has none', async () => {
  for (const [currency, details] of [
    ['GBP', euro],
    ['EUR', { wire }],
    ['EUR', { wire: { ...internationalWire, creditor_reference: false } }],
  ] as const) {
    await startOver(world);
    instruct({ [currency]: details });
    const number = await invoiced(currency);
    expect((await world.documents())[0]).not.toHaveProperty('creditor_reference');
    const { text, html } = await mail(number);
    expect(`${text}${html}`).not.toContain('RF94');
    expect((await page(BELGIAN.partner_id, number))?.pay?.creditorReference).toBe('');
  }
});

test('a setting asks for it in another currency, and payers are not warned of changed bank details', async () => {
  instruct({ GBP: euro });
  await invoiced('GBP');
  await adopt(world, 'instructions', { GBP: { wire: { ...internationalWire, creditor_reference: true } } });
  const number = await invoiced('GBP', '2026-08');
  const [before, after] = await world.documents();
  expect([before?.creditor_reference, after?.creditor_reference]).toEqual([undefined, 'RF67INV2026000002']);
  expect((await mail(number)).text).not.toMatch(/bank details have changed/i);
  expect((await page(BELGIAN.partner_id, before?.number as string))?.pay?.changed).toBeNull();
  // Other details are warned of.
  const other = { ...internationalWire, iban: 'FR1420041010050500013M02606', creditor_reference: true };
  await adopt(world, 'instructions', { GBP: { wire: other } });
  expect((await mail(await invoiced('GBP', '2026-09'))).text).toMatch(/bank details have changed/i);
  const { checks } = await world.verify();
  expect(checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
});

test('the setting is a part of the wire instructions of a currency', () => {
  const { shape } = settingsSchema;
  const read = (creditor_reference: unknown) =>
    shape.instructions.safeParse({ CHF: { wire: { ...internationalWire, creditor_reference } } }).success;
  expect([read(true), read(false), read(undefined), read('yes')]).toEqual([true, true, true, false]);
});
