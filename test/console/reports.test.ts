/** The console's reports: the figures of the commands, only the partners that the reader may see, and no markup of theirs. */
import { h } from 'preact';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blocksText } from '../../src/blocks.ts';
import { Blocks } from '../../src/console/blocks.tsx';
import { ReportPage } from '../../src/console/report-route.tsx';
import type { Transaction } from '../../src/database/transaction.ts';
import type { Report } from '../../src/lists/report.ts';
import { aging, closeReport, coverage, trialBalance } from '../../src/lists/reports.ts';
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
const readAging = (asked = {}, scope: Scope = null) => reading((tx) => aging.read(tx, asked, books.seen(scope)));

/** The page of a report, as a screen. */
const screenOf = <Asked, Found>(report: Report<Asked, Found>, found: Found, after = 0) =>
  ({
    content: h(ReportPage, {
      ...{ report: report as Report, path: '/console/aging', user: { roles: [], limits: [] } as never },
      view: { found, question: report.inForce(found), partners: new Map(), after },
    }),
  }) as never;

/** What the command prints with `--format csv`. */
async function csvOfCommand(...report: string[]): Promise<string> {
  const env = { RECKONER_HOME: books.home, DATABASE_URL: books.databaseUrl, RECKONER_NOW: `${TODAY}T15:00:00Z` };
  return (await reckoner(['report', ...report, '--format', 'csv'], { env })).stdout;
}

describe('a download is the file that the command writes', () => {
  test('aging, by partner and by document', async () => {
    expect(csvOf(aging.sheet(await readAging()))).toBe(await csvOfCommand('aging'));
    const documents = csvOf(aging.sheet(await readAging({ currency: 'EUR' })));
    expect(documents).toBe(await csvOfCommand('aging', '--currency', 'EUR'));
    const whole = (await csvOfCommand('aging', '--detail')).split('\r\n');
    expect(documents.split('\r\n')).toEqual(
      whole.filter((line, at) => at === 0 || line.includes(',EUR,') || line === ''),
    );
  });

  test('trial balance, coverage and close report', async () => {
    const trial = await reading((tx) => trialBalance.read(tx, { detail: true }, books.seen()));
    expect(csvOf(trialBalance.sheet(trial))).toBe(await csvOfCommand('trial-balance', '--detail'));
    const covered = await reading((tx) => coverage.read(tx, {}, books.seen()));
    expect(csvOf(coverage.sheet(covered))).toBe(await csvOfCommand('coverage'));
    const close = await reading((tx) => closeReport.read(tx, { month: '2026-07' as Month }, books.seen()));
    expect(csvOf(closeReport.sheet(close))).toBe(await csvOfCommand('close', '2026-07'));
  });
});

describe('a reader of some partners', () => {
  test('sees their aging alone, and it ties', async () => {
    const whole = await reading((tx) => agingReport(tx, { today: TODAY }));
    const { found: own } = await readAging({}, ['p-2']);
    expect(own.partners).toEqual(whole.partners.filter(({ partner_id }) => partner_id === 'p-2'));
    expect(own.documents).toEqual(whole.documents.filter(({ partner_id }) => partner_id === 'p-2'));
    expect(own).toMatchObject({ ties: true, totals: [{ currency: 'EUR', unapplied: '3.00', net: '11.00' }] });
    expect((await readAging({ partner: 'p-1' }, ['p-2'])).found.documents).toEqual([]);
  });

  test('sees their coverage and lines of the close report, without the totals of all', async () => {
    const covered = await reading((tx) => coverage.read(tx, {}, books.seen(['p-2'])));
    expect(covered.partners.map(({ partner_id }) => partner_id)).toEqual(['p-2']);
    expect(html(screenOf(coverage, covered))).not.toContain('Harbour');
    const close = await reading((tx) => closeReport.read(tx, {}, books.seen(['p-2'])));
    expect(close.report?.partners.map(({ partner_id }) => partner_id)).toEqual(['p-2']);
    const shown = blocksText(closeReport.blocks(close, 'page'));
    expect(shown).toContain('Partners in EUR');
    expect(shown).not.toMatch(/Harbour|Totals|Documents/);
  });

  test('without any partner sees nothing', async () => {
    const nothing = await readAging({}, []);
    expect(nothing.found).toMatchObject({ partners: [], documents: [], ties: true });
    expect(textOf(screenOf(aging, nothing))).toContain('Nothing is open on this day.');
  });
});

test('a bucket leads to its documents, in its currency and of its partner', async () => {
  const { found } = await readAging({ bucket: 'days_31_60', currency: 'EUR', partner: 'p-2' });
  expect(found.documents.map(({ number, bucket }) => [number, bucket])).toEqual([['INV-2026-000003', 'days_31_60']]);
  expect(html(screenOf(aging, await readAging()))).toContain(
    'href="/console/aging?as_of=2026-10-15&amp;partner=p-2&amp;currency=EUR&amp;bucket=days_31_60"',
  );
});

test('a day in the past shows what was open on it, a day to come is refused', async () => {
  const { found } = await readAging({ as_of: '2026-08-31' });
  expect(found.documents.map(({ number }) => number)).toEqual([
    ...['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003'],
  ]);
  await expect(readAging({ as_of: '2027-01-01' })).rejects.toMatchObject({ code: 'date_in_future' });
});

test('a report has pages inside its long tables, and says how many rows are above the total of all', async () => {
  const view = await readAging();
  const [row] = view.found.partners.filter(({ currency }) => currency === 'EUR');
  const partners = Array.from({ length: 450 }, (_, at) => ({
    ...(row as never as object),
    partner_id: `e-${at + 1000}`,
  }));
  const others = view.found.partners.filter(({ currency }) => currency !== 'EUR');
  const many = { ...view, found: { ...view.found, partners: [...partners, ...others] as typeof others } };
  const shown = (after: number) => textOf(screenOf(aging, many, after)).replaceAll(/\s+/g, ' ');
  expect(shown(0)).toContain('EUR: 1 to 200 of 450');
  expect(shown(200)).toContain('EUR: 201 to 400 of 450');
  expect(shown(400)).toContain('EUR: 401 to 450 of 450');
  expect(shown(400)).not.toContain('Next page');
  // The other currencies are whole on each of these pages.
  for (const { partner_name } of others) expect(shown(400)).toContain(partner_name ?? '(payer unknown)');
  expect(html(screenOf(aging, many))).toContain('after=200');
});

test('a partner named like a script is text on every report', async () => {
  const covered = await reading((tx) => coverage.read(tx, {}, books.seen()));
  const close = await reading((tx) => closeReport.read(tx, {}, books.seen()));
  const screens = [
    screenOf(aging, await readAging()),
    screenOf(aging, await readAging({ partner: 'p-2' })),
    screenOf(coverage, covered),
    { content: h(Blocks, { blocks: closeReport.blocks(close, 'page') }) } as never,
  ];
  for (const screen of screens) {
    expect(html(screen)).toContain('&lt;script>alert(1)');
    expect(html(screen)).not.toContain(SCRIPT);
  }
});
