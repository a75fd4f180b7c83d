/** Both verifiers refuse every forged pack by the same checks, and accept every honest one. */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EXPORT_KINDS, type ExportFormat, type ExportKind } from '../../src/audit/export.ts';
import type { Subject } from '../../src/audit/proof.sql.ts';
import { prove } from '../../src/audit/proof.ts';
import { packageRoot } from '../../src/package.ts';
import { booksOf } from '../payments/books.ts';
import { SEAL_KEY } from '../support/seal-keys.ts';
import { tool } from '../support/tools.ts';
import { openVerifiers } from '../support/verifiers.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { checkpoint, exported, month, openBooks } from './books.ts';
import { FORGED_DATA } from './forged-data.ts';
import { FORGED_PROOFS, type HonestProofs, textOf } from './forged-proofs.ts';
import { FORGED_SEALS } from './forged-seals.ts';
import { Forger, type Manifest } from './forger.ts';
import { FORGERIES, KINDS, type Kind, MORE_KINDS } from './forgeries.ts';

const ALL = [...FORGERIES, ...FORGED_DATA, ...FORGED_SEALS];

let world: World;
const packs = new Map<Kind, string>();
let proofs: HonestProofs;
const resident = openVerifiers();

beforeAll(async () => {
  world = await openBooks({ sealKey: SEAL_KEY });
  const books = booksOf(world);
  await checkpoint(world);
  world.at('2026-10-15T10:00:00Z');
  const paid = { amount: '5', number: 'INV-2026-000004', currency: 'USD', receivedOn: '2026-10-15' };
  const { paymentId } = await books.record({ ...paid, reference: 'FT-1' });
  await books.unapply(paymentId);
  await books.record({ ...paid, amount: '7', reference: '=FT-2' });
  await books.bank('ach-october-01.bai');
  await world.partners([partner({ payment_terms_days: 45 })]);
  await checkpoint(world);
  world.at('2026-11-01T10:00:00Z');
  await world.close();
  for (const kind of [...KINDS, ...MORE_KINDS]) {
    const [data, format] = kind.split('-') as [ExportKind, ExportFormat];
    // A pack to an open month has every change of partners.
    const to = month(data === 'partners' ? '2026-11' : '2026-10');
    packs.set(kind, await exported(world, { kind: data, format, to }));
  }
  const proved = async (subject: Subject) => (await world.database.reading((tx) => prove(tx, subject))).proof;
  const [event] = await world.sql<{ id: string }>(
    `SELECT min(event_id)::text AS id FROM audit_events WHERE action = 'payment.record'`,
  );
  proofs = {
    row: await proved({ row: 4 }),
    document: await proved({ document: 'INV-2026-000001' }),
    other: await proved({ document: 'INV-2026-000003' }),
    payment: await proved({ payment: paymentId }),
    event: await proved({ event: Number(event?.id) }),
  };
});
afterAll(async () => {
  resident.end();
  await world.end();
});

interface Verdict {
  readonly status: number | null;
  /** The checks that failed. */
  readonly failed: string;
  readonly output: string;
}

/** Runs a verifier as a stranger would, from a folder of its own. */
function verdictOf(program: 'node' | 'python3', args: readonly string[]): Promise<Verdict> {
  const file = program === 'node' ? 'verify.mjs' : 'verify.py';
  const alone = join(world.home, 'verifiers');
  mkdirSync(alone, { recursive: true });
  copyFileSync(join(packageRoot, 'templates/export', file), join(alone, file));
  return new Promise((resolve) => {
    const child = spawn(program === 'node' ? process.execPath : tool(program), [join(alone, file), ...args], {
      env: { PATH: process.env['PATH'] },
      timeout: 60_000,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('close', (status) => {
      resolve(withFailed({ status, output }));
    });
  });
}

/** What both say. They agree on the outcome and on the checks that failed. */
async function verdict(...args: readonly string[]): Promise<Verdict> {
  return agreed(await Promise.all([verdictOf('node', args), verdictOf('python3', args)]));
}

/** The same of verifiers that stay. */
async function verdictOfResident(...args: readonly string[]): Promise<Verdict> {
  const [one, other] = await Promise.all([resident.ask('node', args), resident.ask('python3', args)]);
  return agreed([withFailed(one), withFailed(other)]);
}

const withFailed = <Said extends { output: string }>(said: Said) => ({
  ...said,
  failed: /^\d+ problems?: (.*)\.$/m.exec(said.output)?.[1] ?? '',
});

function agreed([one, other]: readonly [Verdict, Verdict]): Verdict {
  expect([one.output, other.output].filter((text) => /Traceback|TypeError|^ +at .*:\d+/m.test(text))).toEqual([]);
  expect({ status: other.status, failed: other.failed, of: other.output }).toEqual({
    status: one.status,
    failed: one.failed,
    of: other.output,
  });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no control character of a pack reaches a terminal
  expect(`${one.output}${other.output}`).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/);
  return one;
}

const manifestOf = (pack: string) => JSON.parse(readFileSync(join(pack, 'manifest.json'), 'utf8')) as Manifest;

test('there are at least sixty, each with a name of its own', () => {
  expect(FORGERIES.length).toBeGreaterThanOrEqual(60);
  expect(new Set(ALL.map(({ name }) => name)).size).toBe(ALL.length);
});

describe('a forged pack is refused by the check that it is about:', () => {
  test.each(ALL.map((forgery, at) => [forgery.name, forgery.check, forgery, at] as const))(
    '%s: %s',
    async (_, check, { kind, forge, args }, at) => {
      const honest = packs.get(kind) as string;
      const forger = new Forger(honest, join(world.home, `forged-${at}`));
      forge(forger);
      const said = await verdictOfResident(
        forger.folder,
        ...(args?.({ previous: honest, manifest: manifestOf(honest) }) ?? []),
      );
      expect({ status: said.status, output: said.output }).toEqual({
        status: 1,
        output: expect.stringMatching(new RegExp(`^FAIL  ${check.replace('.', '\\.')} `, 'm')),
      });
    },
  );
});

describe('an honest pack holds:', () => {
  test.each([...KINDS, ...MORE_KINDS])('%s', async (kind) => {
    const pack = packs.get(kind) as string;
    const seals = manifestOf(pack).months.flatMap((each) => ['--seal', `${each.month}=${each.seal?.toUpperCase()}`]);
    expect(await verdict(pack, ...seals, '--previous', pack)).toMatchObject({ status: 0, failed: '' });
  });

  test.each(['hledger', 'beancount'] as const)('a journal for %s', async (format) => {
    const said = await verdict(await exported(world, { kind: 'journal', format, to: month('2026-10') }));
    expect(said).toMatchObject({ status: 0, output: expect.stringContaining('is not compared') });
  });

  test.each([
    ['2026-08', '2026-08'],
    ['2026-09', '2026-10'],
    ['2026-10', '2026-11'],
  ])('a part of the months, %s to %s, after the pack of those before it', async (from, to) => {
    for (const kind of EXPORT_KINDS) {
      const part = await exported(world, { kind, from: month(from), to: month(to) });
      expect([kind, await verdict(part, '--previous', packs.get('ledger-csv') as string)]).toMatchObject([
        kind,
        { status: 0 },
      ]);
    }
  });

  test('with Parquet beside each table, of which a note says that it is compared with its hash only', async () => {
    const pack = await exported(world, { kind: 'payments', to: month('2026-10'), parquet: true });
    expect(await verdict(pack)).toMatchObject({ status: 0, output: expect.stringMatching(/note .*[.]parquet/) });
    const forger = new Forger(pack, `${pack}-forged`);
    forger.remove('payments.parquet');
    forger.fit();
    expect(await verdict(forger.folder)).toMatchObject({ status: 1, failed: 'files' });
  });

  test('24 months', async () => {
    const long = await openWorld();
    await long.partners([partner(), partner({ partner_id: 'p-2', currency: 'EUR' })]);
    for (let at = 0; at < 24; at += 1) {
      const own = new Date(Date.UTC(2026, 6 + at, 15, 12)).toISOString();
      long.at(new Date(Date.UTC(2026, 7 + at, 1, 10)).toISOString());
      await long.rows([quote({ accepted_at: own }), quote({ partner_id: 'p-2', currency: 'EUR', accepted_at: own })]);
      await long.close();
    }
    await long.closeBooks(
      ...Array.from({ length: 23 }, (_, at) => new Date(Date.UTC(2026, 6 + at)).toISOString().slice(0, 7)),
    );
    for (const kind of EXPORT_KINDS)
      expect([kind, await verdict(await exported(long, { kind, to: month('2028-06') }))]).toMatchObject([
        kind,
        { status: 0 },
      ]);
    await long.end();
  });
});

describe('a proof', () => {
  const written = (name: string, content: string) => {
    const file = join(world.home, name);
    writeFileSync(file, content);
    return file;
  };

  test.each(['row', 'document', 'other', 'payment', 'event'] as const)(
    'of a thing (%s) holds, also against the seals that you hold',
    async (kind) => {
      const proof = proofs[kind];
      const file = written(`proof of ${kind}.json`, textOf(proof));
      const seals = proof.records.flatMap(({ month: of, seal }) => ['--seal', `${of}=${seal}`]);
      expect(await verdict(file, ...seals)).toMatchObject({ status: 0, failed: '' });
      const { month: first } = proof.records[0] as { month: string };
      expect(await verdict(file, '--seal', `${first}=${'0'.repeat(64)}`)).toMatchObject({ status: 1 });
      expect(await verdict(file, '--seal', `2027-01=${'0'.repeat(64)}`)).toMatchObject({ status: 2 });
    },
  );

  test.each(Object.entries(FORGED_PROOFS))('with %s is refused', async (name, forge) => {
    const forged = forge(proofs);
    const text = typeof forged === 'string' ? forged : textOf(forged);
    for (const honest of Object.values(proofs)) expect(text).not.toBe(textOf(honest));
    expect(await verdictOfResident(written(`proof with ${name}.json`, text))).toMatchObject({
      status: 1,
      failed: 'proof',
    });
  });
});

describe('a typing error is no accusation:', () => {
  test.each<[string, (pack: string, seal: string) => string[], RegExp]>([
    ['a month without a seal', (pack) => [pack, '--seal', '2026-07'], /does not name a month and a seal/],
    [
      'the 16 digits of a subject',
      (pack, seal) => [pack, '--seal', `2026-07=${seal.slice(0, 16)}`],
      /not a whole seal/,
    ],
    ['a digit too few', (pack, seal) => [pack, '--seal', `2026-07=${seal.slice(1)}`], /not a whole seal/],
    ['a month that is none', (pack, seal) => [pack, '--seal', `2026-13=${seal}`], /does not name a month and a seal/],
    [
      'a seal of a later month',
      (pack, seal) => [pack, '--seal', `2027-01=${seal}`],
      /this pack .* does not contain it/,
    ],
    ['a folder that is not there', (pack) => [`${pack}-other`], /Cannot check/],
    ['a .zip', (pack) => [written(`${pack}.zip`)], /unzip it into an empty folder/],
  ])('%s', async (_, args, says) => {
    const pack = packs.get('events-csv') as string;
    const said = await verdict(...args(pack, manifestOf(pack).months[0]?.seal as string));
    expect(said).toMatchObject({ status: 2, failed: '', output: expect.stringMatching(says) });
  });
  const written = (file: string) => {
    writeFileSync(file, 'PK');
    return file;
  };

  test('a seal of the month before the first of a pack is compared', async () => {
    const later = await exported(world, { kind: 'events', from: month('2026-08'), to: month('2026-10') });
    const july = manifestOf(packs.get('events-csv') as string).months[0]?.seal;
    expect(await verdict(later, '--seal', `2026-07=${july}`)).toMatchObject({ status: 0 });
    expect(await verdict(later, '--seal', `2026-07=${'0'.repeat(64)}`)).toMatchObject({ status: 1 });
  });
});
