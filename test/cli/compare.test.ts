/**
 * `close --dry-run --compare`: a first close beside what the previous system invoiced, as people and scripts run it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command, type Ran, reckoner } from '../support/program.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([
    partner(),
    partner({ partner_id: 'p-2', name: 'Northwind Travel', currency: 'JPY' }),
    partner({ partner_id: 'p-3', name: 'Quiet Harbor' }),
  ]);
  const yen = { partner_id: 'p-2', currency: 'JPY', spotPrice: '1000', partnerCut: '300', invoiceAmount: '700' };
  const sale = quote({ partner_id: 'p-3', accepted_at: '2026-06-20T12:00:00Z' });
  await world.rows([quote(), quote(), quote({ policy_id: 'parking' }), quote(yen), sale]);
  await world.close('2026-06');
  await world.rows([reversal(sale, { accepted_at: '2026-07-20T12:00:00Z' })]);
});
afterAll(() => world.end());

const HEADER = 'partner_id,policy_id,currency,amount';
/** July has no sale of p-3, but a credit note. */
const EQUAL = [
  ...['p-1,ticket-protection,USD,6.00', 'p-1,ticket-protection,USD,8', 'p-1,parking,USD,7.00'],
  ...['p-2,ticket-protection,JPY,700', 'p-3,ticket-protection,USD,-7.00'],
];
const DIFFERENT = [
  ...['p-1,ticket-protection,USD,14.01', 'p-2,ticket-protection,JPY,700', 'p-3,ticket-protection,USD,-7'],
  ...['p-9,ticket-protection,EUR,-3.20'],
];
const CLOSE = ['close', '2026-07', '--dry-run', '--compare'];

const env = () => ({
  RECKONER_HOME: world.home,
  DATABASE_URL: world.databaseUrl,
  RECKONER_NOW: '2026-08-01T10:00:00Z',
});
const written = (text: string) => world.file('invoiced.csv', text);
const compare = (lines: readonly string[], ...options: string[]): Promise<Ran> =>
  command([...CLOSE, written(`${[HEADER, ...lines].join('\n')}\n`), ...options], { env: env() });
const documents = () => world.sql<{ month: string }>('SELECT month FROM documents ORDER BY document_id');

describe('a close compared with what the previous system invoiced', () => {
  test('exits 0 where every line is equal, and closes nothing', async () => {
    const { status, stdout, stderr } = await compare(EQUAL);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/p-1 +ticket-protection +14\.00 +14\.00 +0\.00 +USD +equal/);
    expect(stdout).toMatch(/p-3 +ticket-protection +-7\.00 +-7\.00 +0\.00 +USD +equal/);
    expect(stdout).toMatch(/2026-07: 4 lines, 4 equal\. Nothing was closed\.\n$/);
    expect(await documents()).toEqual([{ month: '2026-06' }]);
  });

  test('exits 4 where a line differs, is missing here or is missing there', async () => {
    const { status, stdout, stderr } = await compare(DIFFERENT);
    expect([status, stderr]).toEqual([4, '']);
    const cells = stdout.split('\n').map((line) => line.trim().replaceAll(/ {2,}/g, ' | '));
    expect(cells).toEqual([
      'partner | policy | here | there | difference | is',
      'p-1 | parking | 7.00 | 7.00 | USD | missing there',
      'p-1 | ticket-protection | 14.00 | 14.01 | -0.01 | USD | differs',
      'p-2 | ticket-protection | 700 | 700 | 0 | JPY | equal',
      'p-3 | ticket-protection | -7.00 | -7.00 | 0.00 | USD | equal',
      'p-9 | ticket-protection | -3.20 | 3.20 | EUR | missing here',
      '',
      '2026-07: 5 lines, 2 equal, 1 differs, 1 missing here, 1 missing there. Nothing was closed.',
      '',
    ]);
    expect(await documents()).toEqual([{ month: '2026-06' }]);
  });

  test('is CSV for a spreadsheet, also with a difference', async () => {
    const { status, stdout, stderr } = await compare(DIFFERENT, '--format', 'csv');
    expect([status, stderr]).toEqual([4, '']);
    expect(stdout).toBe(
      [
        '\uFEFFpartner_id,policy_id,currency,here,there,difference,result',
        'p-1,parking,USD,7.00,,7.00,missing there',
        'p-1,ticket-protection,USD,14.00,14.01,-0.01,differs',
        'p-2,ticket-protection,JPY,700,700,0,equal',
        'p-3,ticket-protection,USD,-7.00,-7.00,0.00,equal',
        'p-9,ticket-protection,EUR,,-3.20,3.20,missing here',
        '',
      ].join('\r\n'),
    );
    const out = join(world.home, 'comparison.csv');
    const file = await compare(DIFFERENT, '--format', 'csv', '--out', out);
    expect([file.status, file.stdout]).toEqual([4, '']);
    expect(readFileSync(out, 'utf8')).toBe(stdout);
  });

  test('is JSON for a program', async () => {
    const json = await compare(EQUAL, '--json');
    expect(json.status).toBe(0);
    expect(json.json()).toMatchObject({ month: '2026-07', equal: true, lines: [{ partner_id: 'p-1' }, {}, {}, {}] });
    const different = await compare(DIFFERENT, '--json');
    expect(different.status).toBe(4);
    expect(different.json()).toMatchObject({ equal: false, lines: [{ here: '7.00', there: null }, {}, {}, {}, {}] });
  });

  test('reads what a spreadsheet wrote from stdin', async () => {
    const input = `\uFEFF${[HEADER, ...EQUAL].join('\r\n')}\r\n`;
    const { status, stderr } = await reckoner([...CLOSE, '-'], { env: env(), input });
    expect([status, stderr]).toEqual([0, '']);
  });
});

describe('what cannot be compared is refused with exit 2', () => {
  test.each([
    ['a column is missing', 'partner_id,policy_id,currency\np-1,parking,USD\n', /line 1: has no column 'amount'/],
    ['a partner is missing', `${HEADER}\n,parking,USD,1\n`, /line 2: has no partner_id or no policy_id/],
    ['a currency is unknown', `${HEADER}\np-1,parking,USX,1\n`, /line 2: currency 'USX' is not an ISO 4217 currency/],
    ['an amount has too many decimals', `${HEADER}\np-1,parking,USD,1.001\n`, /line 2: amount '1\.001' /],
    [
      'a line has too few fields',
      `${HEADER}\np-1,parking,USD,1\np-1,parking,USD\n`,
      /line 3: has 3 fields, but the first line has 4/,
    ],
    ['a column is there twice', `${HEADER},amount\np-1,parking,USD,1,2\n`, /line 1: has the column 'amount' twice/],
    // Otherwise an export that failed would read as a system that invoiced nothing.
    ['it has no lines', `${HEADER}\n`, /has no lines below its first/],
    ['it is empty', '', /has no lines below its first/],
  ])('where %s', async (_name, text, says) => {
    const { status, stdout, stderr } = await command([...CLOSE, written(text)], { env: env() });
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(says);
    expect(stderr).toMatch(/Nothing was compared: .*invoiced\.csv cannot be read\./);
    expect(stderr).toContain('Correct the file and compare again.');
  });

  test('as JSON it has its code and its lines', async () => {
    const { status, stdout } = await compare(['p-1,parking,USD,1.001'], '--json');
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'comparison_invalid', problems: [{ line: 2 }] } });
  });

  test('without --dry-run it closes nothing and says why', async () => {
    const args = ['close', '2026-07', '--compare', written(`${HEADER}\n`)];
    const { status, stderr } = await command(args, { env: env() });
    expect(status).toBe(2);
    expect(stderr).toContain("'close --compare' needs a month and --dry-run");
    expect(await documents()).toEqual([{ month: '2026-06' }]);
  });
});
