/** The account statement as PDF: what a reader finds in it, over how many pages, and that it is the same each time. */
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { type AccountStatement, currencyAccount } from '../../src/reports/account-statement.ts';
import { renderAccountStatement } from '../../src/reports/account-statement-pdf.ts';

const pay = { accounts: [], links: new Map<string, string>() };
const issuer = { ...firstSettings('sandbox').issuer, logo: null } as Parameters<
  typeof renderAccountStatement
>[0]['issuer'];

function statementOf(lines: number): AccountStatement {
  const moved = Array.from({ length: lines }, (_, index) => ({
    ...{
      partner_id: 'p-1',
      date: '2026-09-04',
      dated_on: '2026-09-04',
      currency: 'EUR',
      reference: null,
      amount: '1000.50',
    },
    ...{ fact: 'document_issued' as const, kind: null, document: `INV-2026-${String(index + 1).padStart(6, '0')}` },
  }));
  const account = currencyAccount('EUR', { from: '2026-09-01', asOf: '2026-09-30' }, moved, [], '0');
  return {
    ...{ partner_id: 'p-1', name: 'Brisa Levante, S.L.', pays_for: [], from: '2026-09-01', as_of: '2026-09-30' },
    address: { line1: 'Calle Mayor 1', line2: '', city: 'Valencia', region: '', postal_code: '46001', country: 'ES' },
    accounts: [account],
    preliminary: true,
    books_closed_to: null,
    ties: account.ties,
  };
}

async function read(pdf: Buffer): Promise<{ pages: number; text: string }> {
  const document = await getDocument({ data: new Uint8Array(pdf), verbosity: 0 }).promise;
  const texts: string[] = [];
  for (let page = 1; page <= document.numPages; page += 1) {
    const content = await (await document.getPage(page)).getTextContent();
    texts.push(content.items.map((item) => ('str' in item ? item.str : '')).join(' '));
  }
  return { pages: document.numPages, text: texts.join('\n') };
}

test('it says whose account it is, of which time, and each movement in English', async () => {
  const { pages, text } = await read(
    await renderAccountStatement({ statement: statementOf(2), pay, issuer, sandbox: true }),
  );
  expect(pages).toBe(1);
  for (const said of [
    'Brisa Levante, S.L.',
    '46001 Valencia',
    'Brought forward',
    'INV-2026-000002',
    '2,001.00',
    'SANDBOX',
  ])
    expect(text).toContain(said);
});

test('the same statement is the same bytes, and in production it carries no mark', async () => {
  const draw = (sandbox: boolean) => renderAccountStatement({ statement: statementOf(2), pay, issuer, sandbox });
  expect((await draw(true)).equals(await draw(true))).toBe(true);
  expect((await read(await draw(false))).text).not.toContain('SANDBOX');
});

test('a long one goes on over pages that name the columns again and say how many there are', async () => {
  const { pages, text } = await read(
    await renderAccountStatement({ statement: statementOf(90), pay, issuer, sandbox: false }),
  );
  expect(pages).toBeGreaterThan(2);
  expect(text.match(/Brought forward/g)).toHaveLength(1);
  expect(text.match(/Description/g)).toHaveLength(pages);
  expect(text).toContain(`Page ${pages} of ${pages}`);
  expect(text.match(/INV-2026-/g)).toHaveLength(90);
});
