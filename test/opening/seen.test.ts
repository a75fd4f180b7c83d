/** What a partner sees of what was carried over: its payment page, its place, and the receipt when it has paid. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openingImport } from '../../src/actions/opening.ts';
import { runAction } from '../../src/actions/run.ts';
import { sendOtherEmails } from '../../src/mail/outbox.ts';
import { paymentReceiptEmail } from '../../src/month-end/emails/payment-receipt.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { recordReminders } from '../../src/payments/remind.ts';
import { reminderEmail } from '../../src/payments/reminder-email.ts';
import { ask, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { cash, csvOf, invoice } from './file.ts';

let world: World;
let served: Served;
const paths = new Map<string, string>();
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-07-01T10:00:00Z');
  await world.partners([partner()]);
  const items = [
    invoice('R-10442', '100.00', { original_amount: '250.00' }),
    invoice('R-10443', '40.10', { date: '2026-06-15', due_on: '2026-07-15' }),
    cash('Z-1', '7.50', { date: '2026-06-28', reference: 'overpaid in June' }),
  ];
  const file = { name: 'open-items.csv', bytes: Buffer.from(csvOf(items)) };
  const input = { file, cutOver: '2026-06-30', control: ['USD=132.60'], count: 3 };
  await runAction(world, openingImport, input, { deliver: false });
  await world.deliver();
  world.at('2026-07-10T10:00:00Z');
  for (const { number, url } of await world.sql<{ number: string; url: string }>(
    `SELECT number, url FROM payment_links JOIN documents USING (document_id)`,
  ))
    paths.set(number, new URL(url).pathname);
  served = await serveWorld(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const page = async (number: string) => (await ask(`${served.url}${paths.get(number)}`)).text;
const wordsOf = (html: string) => html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');

test('its payment page asks for it by its old number, with what was open of it at the cut-over', async () => {
  const text = wordsOf(await page('R-10442'));
  expect(text).toContain('Invoice R-10442');
  expect(text).toContain('USD 100.00');
  expect(text).toContain('Overdue by 10 days');
  expect(text).toContain(
    'We issued it for USD 250.00 with our previous billing system, under the same number. USD 100.00 was open on June 30, 2026.',
  );
  expect(text).toContain('Payment reference R-10442');
  const whole = wordsOf(await page('R-10443'));
  expect(whole).toContain('We issued it with our previous billing system, under the same number.');
});

test('its payment page says nothing of it that is not known here', async () => {
  const html = await page('R-10442');
  // It was issued in May, and need not be for May.
  expect(html).not.toContain('May 2026,');
  expect(html).not.toContain('same bank details');
  expect(html).not.toMatch(/\.pdf|rows\.csv/);
  for (const file of ['invoice.pdf', 'rows.csv']) {
    const { status } = await ask(`${served.url}${paths.get('R-10442')}/${file}`);
    expect([file, status]).toEqual([file, 404]);
  }
});

test('a payment that names the old number pays it, and its payer gets a receipt', async () => {
  const wire = { currency: 'USD', method: 'wire', receivedOn: '2026-07-09', reference: 'R-10442' } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...wire, amount: '100.00', number: 'R-10442' }));
  const [document] = (await world.documents()).filter(({ number }) => number === 'R-10442');
  expect(document).toMatchObject({ status: 'paid', balance: '0.00' });
  const text = wordsOf(await page('R-10442'));
  expect(text).toContain('This invoice is paid.');
  expect(text).not.toContain('Payment reference');
  await sendOtherEmails({ ...world, composers: [paymentReceiptEmail], onEmail: () => {} });
  const outbox = join(world.home, 'outbox');
  const [receipt, ...more] = readdirSync(outbox).filter((name) => name.startsWith('receipt'));
  expect(more).toEqual([]);
  const mail = await simpleParser(readFileSync(join(outbox, receipt as string)));
  expect(mail.text).toContain('R-10442');
  expect(mail.text).toContain('100.00');
});

test('a reminder names it by its date, and sends its payer to its page for our bank details', async () => {
  world.at('2026-07-20T16:00:00Z');
  await world.database.transaction((tx) => recordReminders(tx, world));
  await sendOtherEmails({ ...world, composers: [reminderEmail], onEmail: () => {} });
  const outbox = join(world.home, 'outbox');
  const [reminder] = readdirSync(outbox).filter((name) => name.startsWith('reminder'));
  const { text = '', html } = await simpleParser(readFileSync(join(outbox, reminder as string)));
  expect(text).toContain('- R-10443: USD 40.10\nOf June 15, 2026, due July 15, 2026, overdue by 5 days\n');
  expect(text).toContain('Bank details are on the page of each invoice.');
  expect(html).toContain('Of June 15, 2026, due July 15, 2026');
});
