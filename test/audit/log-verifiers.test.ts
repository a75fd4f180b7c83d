/** Both verifiers of packs: what they accept, and what they leave open. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { tool } from '../support/tools.ts';
import { LINES, LOG_KEY, noteOf, ORIGIN, proofOf, rootOf, Signer, sha256, WITNESS } from './log-pack.ts';
import { AUGUST, JULY, KEY, Packs } from './log-packs.ts';

let packs: Packs;
beforeAll(() => {
  packs = new Packs();
});
afterAll(() => packs.end());

describe('an honest pack', () => {
  test('holds with the key and a checkpoint of its end', async () => {
    const { status, output } = await packs.verify(packs.pack(), ...KEY, ...packs.held(LINES.length));
    expect(output).toContain('ok    rules: 4 of 4 hold\n');
    expect(output).toMatch(/All checks hold\.\n$/);
    expect(status).toBe(0);
  });

  test('holds with CSV of texts that a spreadsheet would take for formulas', async () => {
    const { status } = await packs.verify(packs.pack({ data: ['payments.csv'] }), ...KEY, ...packs.held(LINES.length));
    expect(status).toBe(0);
  });

  test('leaves open what no key and no held checkpoint decide', async () => {
    const { status, output } = await packs.verify(packs.pack());
    expect(output).toContain('open  signatures: the key is that of the pack; compare it with yours (--key)\n');
    expect(output).toContain(
      'open  held: no checkpoint that you hold covers the leaves from 0 on, and the close of 2026-07, 2026-08\n',
    );
    expect(status).toBe(2);
    expect((await packs.verify(packs.pack(), '--allow')).status).toBe(0);
  });

  test('of a later month alone cannot answer rules that look back', async () => {
    const { status, output } = await packs.verify(packs.august(), ...KEY, ...packs.held(AUGUST));
    expect(output).toContain('open  rules: 1 look back before this pack: Not decidable from this pack.\n');
    expect(output).toContain(
      'ok    partners: 2 roots of partners are those of their rows, 0 belong to rows before these packs',
    );
    expect(status).toBe(2);
  });

  test('answers them after the pack before it', async () => {
    const { status } = await packs.verify(packs.july(), packs.august(), ...KEY, ...packs.held(AUGUST));
    expect(status).toBe(0);
  });

  test('is covered by a cosignature of a witness', async () => {
    const cosigned = packs.pack({ signersOf: () => [LOG_KEY, WITNESS] });
    const { status, output } = await packs.verify(cosigned, ...KEY, '--witness', WITNESS.vkey);
    expect(output).toContain('ok    witness: witness.example cosigned 3 of 3 checkpoints\n');
    expect(status).toBe(0);
  });

  test('proves that it continues an earlier held checkpoint', async () => {
    const { status, output } = await packs.verify(packs.august(), ...KEY, ...packs.held(3), '--allow');
    expect(output).toContain('ok    held: held-3: its 3 leaves are a beginning of this log\n');
    expect(output).toContain('covers the leaves from 13 on, and the close of 2026-08\n');
    expect(status).toBe(0);
  });

  test('says which held checkpoints are earlier or later than it', async () => {
    const { status, output } = await packs.verify(
      packs.august(),
      ...KEY,
      ...packs.held(5),
      ...packs.held(LINES.length),
    );
    expect(output).toContain('open  held: held-5: earlier than these packs, without a proof\n');
    expect(output).toContain('open  held: held-22: later than these packs\n');
    expect(status).toBe(2);
  });

  test('is not judged by rules that came in it', async () => {
    const other = packs.pack({ change: (files) => files.set('checks.sql', Buffer.from('-- none\n')) });
    const { status, output } = await packs.verify(other, ...KEY, ...packs.held(LINES.length));
    expect(output).toContain('/checks.sql has other rules; those of this verifier are used\n');
    expect(status).toBe(0);
  });
});

describe('a later key', () => {
  const next = new Signer(ORIGIN, 'the next key of the log');
  const introduced = (signature: string, reason = '') => {
    const keys = [next.public.toString('base64'), LOG_KEY.public.toString('base64')];
    return [...LINES, ['log_keys', 46, ORIGIN, ...keys, signature, reason, 1].join('\t')];
  };
  const signedByNext = (lines: readonly string[]) =>
    packs.pack({ lines, signersOf: (size) => [size === lines.length ? next : LOG_KEY] });

  test('is accepted if the former key signed it', async () => {
    const lines = introduced(LOG_KEY.sign(`${next.vkey}\n`).toString('base64'));
    const { status, output } = await packs.verify(signedByNext(lines), ...KEY, ...packs.held(lines.length, lines));
    expect(output).toContain(`ok    signatures: 3 of 3 checkpoints are signed by ${LOG_KEY.vkey}, ${next.vkey}\n`);
    expect(status).toBe(0);
  });

  test('is refused if the former key signed another one', async () => {
    const lines = introduced(LOG_KEY.sign(`${LOG_KEY.vkey}\n`).toString('base64'));
    const { status, output } = await packs.verify(signedByNext(lines), ...KEY, ...packs.held(lines.length, lines));
    expect(output).toContain('leaf 22: the previous key did not sign this key');
    expect(status).toBe(1);
  });

  test('is left open, with the reason, if the former key was lost', async () => {
    const lines = introduced('\\N', 'lost with a disk');
    const { status, output } = await packs.verify(signedByNext(lines), ...KEY, ...packs.held(lines.length, lines));
    expect(output).toContain(
      'the last checkpoint is signed by a key that the former one did not sign: lost with a disk\n',
    );
    expect(status).toBe(2);
  });

  test('is refused if it only introduces itself as the first key', async () => {
    const own = (text: string) => text.replace(LOG_KEY.public.toString('base64'), next.public.toString('base64'));
    const lines = LINES.map(own);
    const { status, output } = await packs.verify(packs.pack({ lines, signersOf: () => [next] }), ...KEY, '--allow');
    expect(output).toContain('/checkpoints/22: signed by other keys only');
    expect(status).toBe(1);
  });

  test('is left open if it is given, and the log introduces another one', async () => {
    const { status, output } = await packs.verify(signedByNext(LINES), '--key', next.vkey, ...packs.held(LINES.length));
    expect(output).toContain('open  signatures: the log does not introduce the key of the last checkpoint\n');
    expect(status).toBe(2);
  });

  test('is refused if the log does not introduce it', async () => {
    const { status, output } = await packs.verify(signedByNext(LINES), ...KEY, ...packs.held(LINES.length));
    expect(output).toContain('/checkpoints/22: signed by other keys only');
    expect(status).toBe(1);
  });
});

describe('a log that continues another one', () => {
  const second = `${ORIGIN}/2`;
  const key = new Signer(second, 'the key of the log');
  const lost = [...LINES, 'ledger_rows\tof the lost branch', 'ledger_rows\tand another'];
  const root = noteOf(lost, lost.length).split('\n')[2];
  const continues = (kept: number) => [
    ...LINES,
    ['log_continues', 60, second, ORIGIN, lost.length, root, kept, 'restored'].join('\t'),
    'audit_events\t62\t4\t2026-09-01T00:00:00.000000Z\tledger.import\t:null\t\\N',
  ];
  const continued = (kept = LINES.length) => {
    const isNew = (size: number) => size > LINES.length;
    return packs.pack({
      lines: continues(kept),
      originOf: (size) => (isNew(size) ? second : ORIGIN),
      signersOf: (size) => [isNew(size) ? key : LOG_KEY],
    });
  };
  const keys = [...KEY, '--key', key.vkey];

  test('covers what was held before', async () => {
    const { status, output } = await packs.verify(continued(), ...keys, ...packs.held(AUGUST));
    expect(output).toContain('ok    held: held-20: its 20 leaves belong to this log\n');
    expect(output).toContain('covers the leaves from 20 on\n');
    expect(status).toBe(2);
  });

  test('names what was lost', async () => {
    const { status, output } = await packs.verify(continued(), ...keys, ...packs.held(lost.length, lost));
    expect(output).toContain('open  held: held-24: of leaves that were lost\n');
    expect(status).toBe(2);
  });

  test('does not excuse leaves that it does not name', async () => {
    const other = [...LINES, 'ledger_rows\tnot lost', 'ledger_rows\tand hidden'];
    const { status, output } = await packs.verify(continued(), ...keys, ...packs.held(other.length, other));
    expect(output).toContain('WRONG held: held-24: not of the leaves that the log says were lost\n');
    expect(status).toBe(1);
  });

  test('states truly how many leaves it kept', async () => {
    const { status, output } = await packs.verify(continued(20), ...keys);
    expect(output).toContain('WRONG checkpoints: leaf 22 continues another log\n');
    expect(status).toBe(1);
  });
});

describe('vectors of the RFCs', () => {
  /** What verify.py answers to an expression over its functions. */
  const python = (expression: string, values: unknown): unknown => {
    const script = `import json, sys; __name__ = 'loaded'; exec(open(sys.argv[1]).read())
hexes = lambda texts: [bytes.fromhex(text) for text in texts]
print(json.dumps([${expression} for value in json.load(sys.stdin)]))`;
    const path = join(packageRoot, 'templates/export/verify.py');
    const { stdout, stderr } = spawnSync(tool('python3'), ['-c', script, path], { input: JSON.stringify(values) });
    expect(String(stderr)).toBe('');
    return JSON.parse(String(stdout));
  };

  test('of Ed25519 (RFC 8032, 7.1): signatures hold, and none that was changed', () => {
    const vectors = [
      [
        'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
        '',
        'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
      ],
      [
        '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
        '72',
        '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
      ],
      [
        'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
        'af82',
        '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
      ],
    ] as const;
    const order = 2n ** 252n + 27742317777372353535851937790883648493n;
    const changed = vectors.flatMap(([key, message, signature]) => {
      const s = BigInt(`0x${Buffer.from(signature.slice(64), 'hex').reverse().toString('hex')}`) + order;
      const malleable = Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse().toString('hex');
      return [
        [key, `${message}00`, signature],
        [key, message, signature.replace(/^../, '00')],
        [key, message, signature.slice(0, 64) + malleable],
        [vectors[0][0] === key ? vectors[1][0] : vectors[0][0], message, signature],
        [key, message, signature.slice(2)],
      ];
    });
    expect(python('is_signed(*hexes(value))', vectors)).toEqual([true, true, true]);
    expect(python('is_signed(*hexes(value))', changed)).toEqual(changed.map(() => false));
  });

  const ENTRIES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
  const leaves = ENTRIES.map((entry) => sha256('\0', Buffer.from(entry, 'hex')));

  test('of trees: the roots of the eight entries that Certificate Transparency logs test with', () => {
    const roots = [
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
      'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
      '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
      '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
      'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
      '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
    ];
    expect(leaves.map((_, last) => rootOf(leaves.slice(0, last + 1)).toString('hex'))).toEqual(roots);
    const sums = '[tree.add(sha256(b"\\0" + bytes.fromhex(entry))) for entry in value]';
    const prefixes = ENTRIES.map((_, last) => ENTRIES.slice(0, last + 1));
    expect(python(`[(tree := Tree()), ${sums}, tree.root().hex()][-1]`, prefixes)).toEqual(roots);
  });

  test('of consistency proofs: theirs, and none between other trees', () => {
    expect(proofOf(6, leaves).map((hash) => hash.toString('hex'))).toEqual([
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ]);
    const many = Array.from({ length: 40 }, (_, index) => sha256(String(index)));
    const pairs = many.flatMap((_, size) =>
      Array.from({ length: size }, (_, before) => {
        const path = proofOf(before + 1, many.slice(0, size + 1)).map((hash) => hash.toString('hex'));
        const root = (length: number) => rootOf(many.slice(0, length)).toString('hex');
        return [before + 1, root(before + 1), size + 1, root(size + 1), path] as const;
      }),
    );
    const holds =
      'is_consistent(value[0], bytes.fromhex(value[1]), value[2], bytes.fromhex(value[3]), hexes(value[4]))';
    expect(python(holds, pairs)).toEqual(pairs.map(() => true));
    const other = 'f'.repeat(64);
    const wrong = pairs.flatMap(([old, before, size, root, path]) => [
      [old, other, size, root, path],
      [old, before, size, other, path],
      [old, before, size, root, [...path, other]],
      [old, before, size, root, path.slice(1)],
    ]);
    expect(python(holds, wrong)).toEqual(wrong.map(() => false));
  });

  test('both verifiers prove every earlier size', async () => {
    const sizes = Array.from({ length: JULY - 1 }, (_, index) => index + 1);
    const pack = packs.august({ checkpoints: [...sizes, JULY, AUGUST] });
    const { output } = await packs.verify(pack, ...KEY, ...sizes.flatMap((size) => packs.held(size)));
    expect(output).toContain(`ok    consistency: ${sizes.length} proofs lead to the first leaf of their pack\n`);
    expect(output.match(/^ok {4}held: .* are a beginning of this log$/gm)).toHaveLength(sizes.length);
  });
});
