/** A partner proves that its month is complete: with the lines of its own rows, one fact and a path to a checkpoint. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LOG_FORMS } from '../../src/log/forms.ts';
import { isSignedBy, readNote } from '../../src/log/note.ts';
import { type PartnerProof, provePartner } from '../../src/log/partner-proof.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { LeafRange } from '../../src/log/tree.ts';
import type { Month } from '../../src/month.ts';
import { checkpoint, openBooks } from '../audit/books.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import type { World } from '../support/world.ts';
import { leafHash, rootOfInclusion } from './inclusion.ts';

let world: World;
beforeAll(async () => {
  world = await openBooks({ logKey: LOG_KEY });
  await checkpoint(world);
  await signCheckpoints(world);
});
afterAll(() => world.end());

const prove = (partnerId: string, month: string) =>
  world.database.reading((tx) => provePartner(tx, { partnerId, month: month as Month }, async () => {}));

const columnsOf = (kind: string) => LOG_FORMS.find((form) => form.kind === kind)?.columns.map(({ name }) => name) ?? [];
/** The fields of a line by the columns of its kind. */
function fieldsOf(line: string): Record<string, string> {
  const [kind = '', number = '', ...fields] = line.split('\t');
  return { kind, number, ...Object.fromEntries(columnsOf(kind).map((name, at) => [name, fields[at] ?? ''])) };
}

/** Reads a proof as https://c2sp.org/tlog-proof defines it, and verifies it up to the log's signature. */
function proved({ proof }: PartnerProof): Record<string, string> | undefined {
  const [, extra = '', index = '', path = '', text = ''] =
    /^c2sp\.org\/tlog-proof@v1\nextra (\S+)\nindex (\d+)\n((?:\S{44}\n)*)\n([\s\S]*)$/.exec(proof) ?? [];
  const note = readNote(text);
  if (note === undefined) return undefined;
  const { head, lines } = note;
  if (!isSignedBy(head, lines, { name: head.origin, publicKey: LOG_KEY.publicKey })) return undefined;
  const line = Buffer.from(extra, 'base64');
  const hashes = path
    .trimEnd()
    .split('\n')
    .map((each) => Buffer.from(each, 'base64'));
  const root = rootOfInclusion(Number(index), head.size, leafHash(line), hashes);
  return root?.equals(head.root) ? fieldsOf(line.toString()) : undefined;
}

function rootOf(rows: readonly string[]): string {
  const tree = new LeafRange();
  for (const row of rows) tree.add(leafHash(Buffer.from(row)));
  return tree.root().toString('base64');
}

test.each([
  ['p-1', '2026-07', 'USD', 3],
  ['p-2', '2026-08', 'JPY', 2],
  ['p-1', '2026-09', 'USD', 5],
])(
  'the rows of %s in %s are those that the close stated: their number, sums and root',
  async (partner, month, currency, entries) => {
    const [proof, ...others] = await prove(partner, month);
    expect(others).toEqual([]);
    const fact = proved(proof as PartnerProof);
    expect(fact).toMatchObject({ kind: 'month_partners', month, partner_id: partner, currency, entries: `${entries}` });
    const rows = proof?.rows ?? [];
    expect(rows).toHaveLength(entries);
    expect(rootOf(rows)).toBe(fact?.['root']);
    const sum = rows.map(fieldsOf).reduce((total, row) => total + Number(row['invoice_amount']), 0);
    expect(Math.abs(sum)).toBe(Math.abs(Number(fact?.['invoice_amount'])));
    for (const row of rows) expect(row.split('\t')[3]).toBe(partner);
  },
);

test('a proof with a row left out, added or changed has another root, and a changed fact is in no log', async () => {
  const [proof] = (await prove('p-1', '2026-09')) as [PartnerProof];
  const root = proved(proof)?.['root'];
  const { rows } = proof;
  expect(rootOf(rows.slice(1))).not.toBe(root);
  expect(rootOf([...rows, rows[0] as string])).not.toBe(root);
  expect(rootOf(rows.toReversed())).not.toBe(root);
  expect(rootOf(rows.map((row) => row.replace('\t10\t', '\t11\t')))).not.toBe(root);
  const extra = /^extra (\S+)$/m.exec(proof.proof)?.[1] ?? '';
  const other = Buffer.from(Buffer.from(extra, 'base64').toString().replace('\t5\t', '\t4\t')).toString('base64');
  expect(other).not.toBe(extra);
  expect(proved({ ...proof, proof: proof.proof.replace(extra, other) })).toBeUndefined();
  expect(proved({ ...proof, proof: proof.proof.replace(/^index (\d+)$/m, 'index 1') })).toBeUndefined();
});

test('a month that is open, or in which the partner has no rows, has no proof', async () => {
  await expect(prove('p-1', '2026-10')).rejects.toMatchObject({ code: 'month_not_closed' });
  await expect(prove('p-3', '2026-09')).rejects.toMatchObject({ code: 'partner_without_rows' });
});
