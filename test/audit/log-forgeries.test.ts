/** Malformed and forged packs: both verifiers refuse each with the same words, which name the file and the line. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { edit, type Fault, FILES, line, replace, VALUES } from './log-faults.ts';
import { LINES } from './log-pack.ts';
import { AUGUST, JULY, KEY, Packs } from './log-packs.ts';

let packs: Packs;
beforeAll(() => {
  packs = new Packs();
});
afterAll(() => packs.end());

describe('a malformed line that was sealed again', () => {
  for (const [number, from, to, says] of VALUES) {
    const shown = JSON.stringify(to.length > 40 ? to.slice(0, 8) : to);
    test(`${JSON.stringify(from)} as ${shown} in line ${number}`, async () => {
      const lines = line(number, from, to)(LINES);
      expect(lines).not.toEqual(LINES);
      const { status, output } = await packs.verify(packs.pack({ lines }), ...KEY, ...packs.held(LINES.length, lines));
      expect(output).toMatch(new RegExp(`^WRONG pack-\\d+/log.tsv line ${number}: `));
      expect(output).toContain(says);
      expect(status).toBe(1);
    });
  }

  test('amounts whose sum may pass 2^62', async () => {
    const row = LINES.at(-1) ?? '';
    const many = Array.from({ length: 50 }, (_, index) =>
      row.replace('\t44\t', `\t${100 + index}\t`).replaceAll('\t1\t', '\t999999999999999.99\t'),
    );
    const { status, output } = await packs.verify(packs.pack({ lines: [...LINES, ...many] }), ...KEY);
    expect(output).toMatch(/log\.tsv line \d\d: the sum of all amounts may pass 2\^62\n/);
    expect(status).toBe(1);
  });
});

describe('a forged pack', () => {
  for (const { name, change, tamper, says } of FILES) {
    test(name, async () => {
      const changes = { ...(change && { change }), ...(tamper && { tamper }) };
      const { status, output } = await packs.verify(packs.pack(changes), ...KEY, ...packs.held(LINES.length));
      expect(output).toContain(says);
      expect(output).toContain('WRONG');
      expect(status).toBe(1);
    });
  }

  test('a link in the place of a file', async () => {
    const path = packs.pack({ tamper: (files) => files.delete('README.txt') });
    symlinkSync('checks.sql', join(path, 'README.txt'));
    expect((await packs.verify(path, ...KEY)).output).toMatch(/README\.txt is not a file of a pack/);
  });

  test('a folder in the place of a file', async () => {
    const path = packs.pack({ tamper: (files) => files.delete('README.txt') });
    mkdirSync(join(path, 'README.txt'));
    expect((await packs.verify(path, ...KEY)).output).toMatch(/README\.txt is not a file of a pack/);
  });
});

describe('a pack of a later month', () => {
  const edges: readonly Fault[] = [
    {
      name: 'with another hash in its edge',
      change: replace('edge', /\n(.*)\n(.*)\n/, '\n$2\n$1\n'),
      says: 'checkpoints/13: not the root of these leaves',
    },
    { name: 'with an edge of other leaves', change: replace('edge', '13', '12'), says: 'edge: malformed' },
    {
      name: 'with a hash less in its edge',
      change: replace('edge', /[^\n]+\n$/, ''),
      says: 'another edge',
    },
    { name: 'with CR LF in its edge', change: replace('edge', /\n/g, '\r\n'), says: 'edge' },
    {
      name: 'with Base64 for URLs in its edge',
      change: replace('edge', /\n.{43}=/, `\n${'-'.repeat(43)}=`),
      says: 'edge line 2: malformed Base64',
    },
    {
      name: 'with a proof of other leaves',
      change: replace('consistency/3', /^.*\n/, `${Buffer.alloc(32).toString('base64')}\n`),
      says: 'consistency/3: not a proof',
    },
    { name: 'with a shorter proof', change: replace('consistency/3', /^.*\n/, ''), says: 'consistency/3: not a proof' },
    {
      name: 'with a longer proof',
      change: replace('consistency/3', /^(.*\n)/, '$1$1'),
      says: 'consistency/3: not a proof',
    },
    {
      name: 'with a proof of itself',
      change: edit('consistency/13', () => Buffer.alloc(0)),
      says: 'consistency/13: not a proof',
    },
    {
      name: 'without its first checkpoint',
      change: (files) => files.delete('checkpoints/13'),
      says: 'checkpoints/13 is missing',
    },
    { name: 'without its edge', change: (files) => files.delete('edge'), says: 'edge is missing' },
  ];
  for (const { name, change, says } of edges) {
    test(name, async () => {
      const { status, output } = await packs.verify(packs.august(change && { change }), ...KEY, '--allow');
      expect(output).toContain(says);
      expect(status).toBe(1);
    });
  }

  test('is not a continuation of other leaves that are held', async () => {
    const lines = line(3, '61.52', '61.53')(LINES);
    for (const size of [2, 3, AUGUST]) {
      const { status, output } = await packs.verify(packs.august(), ...KEY, ...packs.held(size, lines), '--allow');
      if (size === 2) expect(status).toBe(0);
      else expect(output).toMatch(size === AUGUST ? /NOT OF THESE LEAVES/ : /NOT A BEGINNING OF THIS LOG/);
    }
  });

  test('does not follow another pack than that before it', async () => {
    const lines = line(3, '61.52', '61.53')(LINES);
    const forged = packs.pack({ lines, size: JULY, months: ['2026-07', '2026-07'], data: [] });
    expect((await packs.verify(forged, packs.august(), ...KEY)).output).toContain('edge: not of the leaves before');
  });

  test('may overlap the pack before it, with the same leaves', async () => {
    for (const chain of [
      [packs.july(), packs.august(), packs.august()],
      [packs.pack(), packs.august()],
    ]) {
      const { status, output } = await packs.verify(...chain, ...KEY, '--allow');
      expect([status, output]).toEqual([0, expect.stringContaining('ok    checkpoints')]);
    }
    const lines = line(3, '61.52', '61.53')(LINES);
    const forged = packs.pack({ lines, data: [] });
    expect((await packs.verify(packs.july(), forged, ...KEY)).output).toContain('other lines than in the pack before');
    expect((await packs.verify(forged, packs.july(), ...KEY)).output).toContain('other lines than in the pack before');
  });

  test('does not begin after the end of the pack before it', async () => {
    expect((await packs.verify(packs.august(), packs.july(), ...KEY)).status).toBe(1);
  });
});

describe('a forgery in the right form that was sealed again', () => {
  const forgeries: readonly (readonly [name: string, lines: readonly string[], says: string])[] = [
    ['a sale twice', line(17, 'q-6', 'q-5')(LINES), 'sold_once: A quote is sold once.\n      - q-5: sales 2\n'],
    [
      'a row of no event',
      line(3, '\t1', '\t9').length ? LINES.map((each, at) => (at === 21 ? each.replace(/1$/, '9') : each)) : [],
      'event_known: A row names an event of this log.\n      - 44 9\n',
    ],
    [
      'another tax',
      line(8, '11.59', '11.58')(LINES),
      'tax_is_rounded: Tax is the rate of what is taxable, rounded half up.\n      - 1: currency EUR, taxable 61.02, tax 11.58\n',
    ],
    [
      'another value of an event',
      line(1, 'rows:3', 'rows:4')(LINES),
      'named_values: The values of an event are those of its map.\n      - 2 rows 4\n',
    ],
    [
      'a row of another price under a closed month',
      line(16, '2.5', '2.6')(LINES),
      'partners: 2026-08 p-2 EUR invoicing',
    ],
    ['a partner without rows', line(20, 'p-2', 'p-9')(LINES), 'partners: 2026-08 p-9 EUR invoicing'],
  ];
  for (const [name, lines, says] of forgeries) {
    test(name, async () => {
      const { status, output } = await packs.verify(
        packs.pack({ lines, data: [] }),
        ...KEY,
        ...packs.held(LINES.length, lines),
      );
      expect(output).toContain(`WRONG ${says}`);
      expect(status).toBe(1);
    });
  }

  test('is another log than the one whose checkpoint is held', async () => {
    const lines = line(16, '2.5', '2.6')(LINES);
    const { status, output } = await packs.verify(packs.pack({ lines }), ...KEY, ...packs.held(AUGUST));
    expect(output).toContain('WRONG held: held-20: NOT OF THESE LEAVES\n');
    expect(status).toBe(1);
  });
});
