/** What we are: supplier of our partners or principal. The journal follows it, and it stays once there is a row. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { settingsSchema } from '../../src/config/settings.ts';
import { documentSnapshot } from '../../src/documents/document.ts';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import { renderDocumentEmail } from '../../src/mail/document-text.ts';
import { templatesOf } from '../../src/mail/templates.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { expectPacksToHold, month } from '../audit/books.ts';
import { needs, tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
afterEach(() => world.end());

const CONNECTED = {
  ...{ partner_id: 'p-2', arrangement: 'connected_account', connected_account_id: 'acct_1' },
  ...{ merchant_of_record: 'platform', split: 'real_time', balance_transactions_from: 'settlement_file' },
};
const AMOUNTS = { spotPrice: '30.00', partnerCut: '9.00', invoiceAmount: '21.00' };

/** A sale of an invoiced partner and one of a connected account, and what July's postings add up to by account. */
async function sell(weAre: 'supplier_to_partner' | 'principal'): Promise<object> {
  world = await openWorld();
  world.settings = { ...world.settings, we_are: weAre };
  await recordSettingsChanges(world.database, world);
  await world.partners([partner(), partner(CONNECTED)]);
  await world.rows([quote(AMOUNTS), quote({ ...AMOUNTS, partner_id: 'p-2' })]);
  const sums = await world.sql<{ account: string; amount: string }>(
    'SELECT account, sum(amount)::numeric(9, 2)::text AS amount FROM journal GROUP BY account ORDER BY account',
  );
  return Object.fromEntries(sums.map(({ account, amount }) => [account, amount]));
}

const SUPPLIED = {
  'assets:receivable:processor:p-2': '21.00',
  'assets:receivable:unbilled:p-1': '21.00',
  'income:sales:ticket-protection': '-42.00',
};
const SOLD = {
  ...SUPPLIED,
  'expenses:partner-cut:p-1': '9.00',
  'expenses:partner-cut:p-2': '9.00',
  'income:sales:ticket-protection': '-60.00',
};

describe.each([
  [
    'the supplier of our partners sells at the invoice amount, whoever routes the money',
    'supplier_to_partner',
    SUPPLIED,
  ],
  ["a principal sells at the whole price, and the partners' cuts are an expense", 'principal', SOLD],
] as const)('%s', (_name, weAre, accounts) => {
  test('in the journal, and in the packs that both verifiers accept', async () => {
    expect(await sell(weAre)).toEqual(accounts);
    await world.close();
    await world.closeBooks('2026-07');
    const [stored] = await world.sql(
      'SELECT sum(amount)::numeric(9, 2)::text AS amount FROM book_balances WHERE control = $1',
      ['income:sales'],
    );
    expect(stored).toEqual({ amount: accounts['income:sales:ticket-protection'] });
    await expectPacksToHold(world, month('2026-07'), month('2026-07'));
  }, 240_000);

  test('on the document and in its e-mail', async (context) => {
    needs('pdfinfo', context); // and pdftotext, of the same package
    await sell(weAre);
    await world.close();
    await world.deliver();
    const number = 'INV-2026-000001';
    const [row] = await world.sql<{ pdf: Buffer }>(
      'SELECT pdf FROM document_pdfs JOIN documents USING (document_id) WHERE number = $1',
      [number],
    );
    const file = join(world.home, 'invoice.pdf');
    writeFileSync(file, row?.pdf ?? '');
    const [found] = await world.database.reading((tx) => readDocuments(tx, { number }));
    const additions = { paymentLink: null, instructions: null, instructionsChanged: false };
    const facts = { contactName: '', attachments: [], rowsOmitted: false };
    const snapshot = documentSnapshot(found as NonNullable<typeof found>, additions);
    const { text } = renderDocumentEmail(snapshot, facts, templatesOf(world.environment));
    const cut = weAre === 'principal' ? 'commission' : 'share';
    expect(execFileSync(tool('pdftotext'), [file, '-'], { encoding: 'utf8' })).toContain(`Your ${cut}`);
    expect(text).toContain(`Less your ${cut}: USD 9.00`);
  });
});

test('it can change until there is a row, and never after', async () => {
  world = await openWorld();
  await world.partners([partner()]);
  world.settings = { ...world.settings, we_are: 'principal' };
  await world.partners([partner()]);
  expect(await world.sql('SELECT we_are FROM presentation')).toEqual([{ we_are: 'principal' }]);
  await world.rows([quote(AMOUNTS)]);
  world.settings = { ...world.settings, we_are: 'supplier_to_partner' };
  await expect(world.partners([partner()])).rejects.toThrow(/posted as principal, .* Set "we_are" to "principal"/);
  await expect(world.close()).rejects.toThrow(/posted as principal/);
  await expect(world.sql(`UPDATE presentation SET we_are = 'supplier_to_partner'`)).rejects.toThrow(/append-only/);
  await expect(world.sql('DELETE FROM presentation')).rejects.toThrow(/append-only/);
});

test('a principal with tax on invoice amounts, or with sales over cover, is refused with the reason', async () => {
  world = await openWorld();
  const file = { issuer: {}, time_zone: 'UTC', instructions: {} };
  const tax = { from: '2026-07', rules: [{ category: 'standard', rate: '19' }] };
  const read = (we_are: string) => settingsSchema.safeParse({ ...file, tax, we_are });
  expect(read('supplier_to_partner').success).toBe(true);
  expect(read('principal').error?.issues).toMatchObject([
    {
      path: ['we_are'],
      message: expect.stringMatching(/^cannot be principal where tax is configured: a principal owes tax/),
    },
  ]);
  const overCover = settingsSchema.safeParse({ ...file, we_are: 'principal', recognition: 'over_cover' });
  expect(overCover.error?.issues).toMatchObject([
    { path: ['recognition'], message: expect.stringMatching(/the partners' cuts would be costs of later months/) },
  ]);
});
