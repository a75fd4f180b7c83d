/** What an 80-column terminal shows: the help of every command, and the lists and reports that people read most. */
import stringWidth from 'string-width';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const long = { name: 'The Association of Open-Air Theatres and Concert Halls of the Eastern Seaboard and Inland' };
  await world.partners([
    partner({ ...long, invoicing_contact: { name: '', email: '', cc: [] } }),
    partner({ partner_id: 'p-2', currency: 'KWD' }),
  ]);
  await world.rows([
    quote({ spotPrice: '99999.99', partnerCut: '0.99', invoiceAmount: '99999.00' }),
    quote({ partner_id: 'p-2', currency: 'KWD', spotPrice: '3.000', partnerCut: '1.000', invoiceAmount: '2.000' }),
  ]);
  await world.close();
  await world.deliver();
  await takeCheckpoint(world.database, world);
  world.at('2026-09-20T10:00:00Z');
});
afterAll(() => world.end());

/** What a command prints in a terminal of 80 columns. */
async function shown(...args: string[]): Promise<string> {
  const own = { isTTY: process.stdout.isTTY, columns: process.stdout.columns };
  let text = '';
  const written = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  vi.stubEnv('RECKONER_HOME', world.home);
  vi.stubEnv('DATABASE_URL', world.databaseUrl);
  vi.stubEnv('RECKONER_NOW', '2026-09-20T10:00:00Z');
  Object.assign(process.stdout, { isTTY: true, columns: 80 });
  try {
    await runProgram(['node', 'reckoner', ...args]);
    return text;
  } finally {
    Object.assign(process.stdout, own);
    written.mockRestore();
    vi.unstubAllEnvs();
  }
}

const tooWide = (text: string) => text.split('\n').filter((line) => stringWidth(line) > 80);

/** The commands that a help lists. */
const commandsIn = (help: string): string[] =>
  (/^Commands:\n((?: {2}.*\n?)*)/m.exec(help)?.[1] ?? '')
    .split('\n')
    .flatMap((line) => /^ {2}([a-z][a-z-]*)/.exec(line)?.[1] ?? []);

test('the help of every command fits into 80 columns', async () => {
  const wide: string[][] = [];
  let inspected = 0;
  const inspect = async (...path: string[]): Promise<void> => {
    const help = await shown(...path, '--help');
    inspected += 1;
    // An example that is copied stays on its line.
    const lines = tooWide(help).filter((line) => !line.startsWith('  reckoner '));
    if (lines.length > 0) wide.push([path.join(' '), ...lines]);
    for (const name of commandsIn(help).filter((each) => each !== 'help')) await inspect(...path, name);
  };
  await inspect();
  expect(wide).toEqual([]);
  expect(inspected).toBeGreaterThan(70);
});

test.each([
  ['status'],
  ['checkpoint', 'list'],
  ['report', 'close'],
  ['report', 'aging'],
  ['report', 'coverage'],
  ['report', 'trial-balance'],
  ['report', 'cash-application'],
  ['report', 'roll-forward'],
  ['report', 'movements'],
  ['report', 'reserve'],
  ['invoice', 'list'],
  ['partner', 'list'],
])('%s %s fits into 80 columns, and cuts no figure', async (...args) => {
  const text = await shown(...args.filter((each) => each !== undefined));
  expect(text.length).toBeGreaterThan(20);
  expect(tooWide(text)).toEqual([]);
  // A figure that is cut ends with an ellipsis.
  expect(text).not.toMatch(/[\d.,]\d…/);
});

test('a comparison of a close with the previous system fits into 80 columns, and cuts no figure', async () => {
  const invoiced = world.file(
    'invoiced.csv',
    'partner_id,policy_id,currency,amount\np-1,ticket-protection,USD,99999.01\nanother-partner,a-policy-of-the-system-before,KWD,-1234567.891\n',
  );
  const text = await shown('close', '2026-08', '--dry-run', '--allow-empty', '--compare', invoiced);
  expect(text).toMatch(/2 missing here/);
  expect(tooWide(text)).toEqual([]);
  expect(text).not.toMatch(/[\d.,]\d…/);
});
