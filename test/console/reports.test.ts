/** The console's reports: the figures of the commands, only the partners that the reader may see, and no markup of theirs. */
import { h } from 'preact';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blocksText } from '../../src/blocks.ts';
import { Blocks } from '../../src/console/blocks.tsx';
import { agingScreen, readAging, sheetOfAging } from '../../src/console/screens/aging.tsx';
import { coverageScreen, readCoverage, readCoverageSheet } from '../../src/console/screens/coverage.tsx';
import type { Transaction } from '../../src/database/transaction.ts';
import { closeReport, trialBalance } from '../../src/lists/reports.ts';
import type { Month } from '../../src/month.ts';
import type { Scope } from '../../src/people/scope.ts';
import { readAging as agingReport } from '../../src/reports/aging.ts';
import { csvOf } from '../../src/sheet.ts';
import { reckoner } from '../support/program.ts';
import { type ConsoleBooks, html, openConsole, SCRIPT, TODAY, textOf } from './books.ts';

let books: ConsoleBooks;
beforeAll(async () => {
  books = await openConsole();
});
afterAll(() => books.end());

const reading = <Result>(read: (tx: Transaction) => Promise<Result>): Promise<Result> => books.database.reading(read);
const aging = (asked = {}, scope: Scope = null) => reading((tx) => readAging(tx, asked, books.seen(scope)));

/** What the command prints with `--format csv`. */
async function csvOfCommand(...report: string[]): Promise<string> {
  const env = { RECKONER_HOME: books.home, DATABASE_URL: books.databaseUrl, RECKONER_NOW: `${TODAY}T15:00:00Z` };
  return (await reckoner(['report', ...report, '--format', 'csv'], { env })).stdout;
}

describe('a download is the file that the command writes', () => {
  test('aging, by partner and by document', async () => {
    expect(csvOf(sheetOfAging(await aging()))).toBe(await csvOfCommand('aging'));
    const documents = await aging({ currency: 'EUR' });
    const whole = (await csvOfCommand('aging', '--detail')).split('\r\n');
    expect(csvOf(sheetOfAging(documents)).split('\r\n')).toEqual(
      whole.filter((line, at) => at === 0 || line.includes(',EUR,') || line === ''),
    );
  });

  test('trial balance, coverage and close report', async () => {
    const trial = await reading((tx) => trialBalance.read(tx, { detail: true }, books.seen()));
    expect(csvOf(trialBalance.sheet(trial))).toBe(await csvOfCommand('trial-balance', '--detail'));
    const coverage = await reading((tx) => readCoverageSheet(tx, {}, books.seen()));
    expect(csvOf(coverage)).toBe(await csvOfCommand('coverage'));
    const close = await reading((tx) => closeReport.read(tx, { month: '2026-07' as Month }, books.seen()));
    expect(csvOf(closeReport.sheet(close))).toBe(await csvOfCommand('close', '2026-07'));
  });
});

describe('a reader of some partners', () => {
  test('sees their aging alone, and it ties', async () => {
    const whole = await reading((tx) => agingReport(tx, { today: TODAY }));
    const { aging: own } = await aging({}, ['p-2']);
    expect(own.partners).toEqual(whole.partners.filter(({ partner_id }) => partner_id === 'p-2'));
    expect(own.documents).toEqual(whole.documents.filter(({ partner_id }) => partner_id === 'p-2'));
    expect(own).toMatchObject({ ties: true, totals: [{ currency: 'EUR', unapplied: '3.00', net: '11.00' }] });
    expect((await aging({ partner: 'p-1' }, ['p-2'])).documents).toEqual([]);
  });

  test('sees their coverage and lines of the close report, without the totals of all', async () => {
    const coverage = await reading((tx) => readCoverage(tx, {}, books.seen(['p-2'])));
    expect(coverage.coverage.partners.map(({ partner_id }) => partner_id)).toEqual(['p-2']);
    expect(html(coverageScreen(coverage))).not.toContain('Harbour');
    const close = await reading((tx) => closeReport.read(tx, {}, books.seen(['p-2'])));
    expect(close.report?.partners.map(({ partner_id }) => partner_id)).toEqual(['p-2']);
    const shown = blocksText(closeReport.blocks(close));
    expect(shown).toContain('Partners in EUR');
    expect(shown).not.toMatch(/Harbour|Totals|Documents/);
  });

  test('without any partner sees nothing', async () => {
    expect((await aging({}, [])).aging).toMatchObject({ partners: [], documents: [], ties: true });
    expect(textOf(agingScreen(await aging({}, [])))).toContain('Nothing is open on this day.');
  });
});

test('a bucket leads to its documents, in its currency and of its partner', async () => {
  const view = await aging({ bucket: 'days_31_60', currency: 'EUR', partner: 'p-2' });
  expect(view.documents.map(({ number, bucket }) => [number, bucket])).toEqual([['INV-2026-000003', 'days_31_60']]);
  expect(html(agingScreen(await aging()))).toContain(
    'href="/console/aging?as_of=2026-10-15&amp;partner=p-2&amp;currency=EUR&amp;bucket=days_31_60"',
  );
});

test('a day in the past shows what was open on it, a day to come is refused', async () => {
  const { aging: then } = await aging({ as_of: '2026-08-31' });
  expect(then.documents.map(({ number }) => number)).toEqual(['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003']);
  await expect(aging({ as_of: '2027-01-01' })).rejects.toMatchObject({ code: 'date_in_future' });
  await expect(aging({ as_of: '31/08/2026' })).rejects.toMatchObject({ code: 'argument_invalid' });
  await expect(aging({ bucket: 'ancient' })).rejects.toMatchObject({ code: 'argument_invalid' });
});

test('aging has pages inside each currency, and says how many partners stand above the total of all', async () => {
  const view = await aging();
  const [row] = view.aging.partners.filter(({ currency }) => currency === 'EUR');
  const partners = Array.from({ length: 450 }, (_, at) => ({
    ...(row as never as object),
    partner_id: `e-${at + 1000}`,
  }));
  const others = view.aging.partners.filter(({ currency }) => currency !== 'EUR');
  const many = { ...view, aging: { ...view.aging, partners: [...partners, ...others] as typeof view.aging.partners } };
  const shown = (after: string | null) => textOf(agingScreen({ ...many, after })).replaceAll(/\s+/g, ' ');
  expect(shown(null)).toContain('partners 1 to 200 of 450');
  expect(shown(null)).toContain('Total of all 450');
  expect(shown('EUR e-1199')).toContain('partners 201 to 400 of 450');
  expect(shown('EUR e-1399')).toContain('partners 401 to 450 of 450');
  // The other currencies are whole on each of these pages.
  for (const { partner_name } of others) expect(shown('EUR e-1399')).toContain(partner_name ?? 'Unknown payers');
  expect(html(agingScreen(many))).toContain('after=EUR+e-1199');
});

test('a partner named like a script is text on every report', async () => {
  const coverage = await reading((tx) => readCoverage(tx, {}, books.seen()));
  const close = await reading((tx) => closeReport.read(tx, {}, books.seen()));
  const screens = [
    agingScreen(await aging()),
    agingScreen(await aging({ partner: 'p-2' })),
    coverageScreen(coverage),
    { content: h(Blocks, { blocks: closeReport.blocks(close) }) } as never,
  ];
  for (const screen of screens) {
    expect(html(screen)).toContain('&lt;script>alert(1)');
    expect(html(screen)).not.toContain(SCRIPT);
  }
});
