/** Packs whose checkpoints or signatures are not those of their records. */
import { createHash } from 'node:crypto';
import { signRecord, vkeyOf } from '../../src/seals/signature.ts';
import { newSealPem, sealKeyOf } from '../support/seal-keys.ts';
import type { Forger } from './forger.ts';
import type { Forgery } from './forgeries.ts';

const CHECKPOINTS = 'sealed/2026-10/checkpoints.tsv';
type Row = Record<string, string>;

const forged = (check: string, name: string, forge: (pack: Forger) => void, args?: Forgery['args']): Forgery => ({
  ...{ name, kind: 'ledger-csv', check, forge },
  ...(args && { args }),
});
const resealed = (work: (pack: Forger) => void) => (pack: Forger) => {
  work(pack);
  pack.reseal();
};
const fitted = (work: (pack: Forger) => void) => (pack: Forger) => {
  work(pack);
  pack.fit();
};
const inCheckpoints = (change: (rows: Row[]) => Row[]) => resealed((pack) => pack.rows(CHECKPOINTS, change));
/** Changes the record of the first checkpoint, and its seal with it. */
const inRecord = (from: RegExp, to: string) =>
  inCheckpoints((rows) =>
    rows.map((row, at) => {
      if (at > 0) return row;
      const record = (row['record'] as string).replaceAll('\\n', '\n').replace(from, to);
      const seal = createHash('sha256').update(record).digest('hex');
      return { ...row, seal, record: record.replaceAll('\n', '\\n') };
    }),
  );
const otherKey = vkeyOf(signRecord('', sealKeyOf(newSealPem()), '0123456789ab'));

export const FORGED_SEALS: readonly Forgery[] = [
  forged(
    'checkpoints',
    'the first checkpoint dropped',
    inCheckpoints((rows) => rows.slice(1)),
  ),
  forged(
    'checkpoints',
    'checkpoints in another order',
    inCheckpoints((rows) => rows.map((row, at) => ({ ...row, ...pick(rows.at(-1 - at)) }))),
  ),
  forged('checkpoints', 'a checkpoint of another time', inRecord(/^taken_at [-0-9]+/m, 'taken_at 2026-09-02')),
  forged(
    'checkpoints',
    'a checkpoint with another root of rows',
    inRecord(/^(rows 2026-10 \d+) .*$/m, `$1 ${'0'.repeat(64)}`),
  ),
  forged(
    'checkpoints',
    'a checkpoint with another root of facts',
    inRecord(/^(facts_of \S+ \d+) .*$/m, `$1 ${'0'.repeat(64)}`),
  ),
  forged('checkpoints', 'a checkpoint that states fewer facts', inRecord(/^facts_of .*\n/m, '')),
  forged('checkpoints', 'a checkpoint with a line more', inRecord(/$(?![\s\S])/, 'audited yes\n')),
  forged(
    'checkpoints',
    'a row of a checkpoint left out',
    resealed((pack) => pack.rows('sealed/2026-10/ledger_rows.tsv', (rows) => rows.slice(1))),
  ),
  forged(
    'signatures',
    'seals that another key signed',
    () => {},
    () => ['--key', otherKey],
  ),
  forged(
    'signatures',
    'a signature that is cut',
    fitted((pack) => pack.edit('sealed/2026-08/record.sig', (text) => `${text.slice(0, -9)}\n`)),
  ),
  forged(
    'signatures',
    'a signature of another record',
    fitted((pack) => pack.write('sealed/2026-08/record.sig', pack.text('sealed/2026-07/record.sig'))),
  ),
  forged(
    'signatures',
    'a signature twice',
    fitted((pack) => pack.edit('books/2026-08/record.sig', (text) => text + text)),
  ),
  forged(
    'signatures',
    'a signature that is missing',
    fitted((pack) => pack.remove('sealed/2026-07/record.sig')),
  ),
  forged(
    'held seals',
    'a note that nobody whom you know has signed',
    (pack) => {
      pack.write('../note.txt', `${pack.text('sealed/2026-08/record.txt')}\n${pack.text('sealed/2026-08/record.sig')}`);
    },
    ({ previous }) => ['--seal', `${previous}/../note.txt`, '--witness', otherKey],
  ),
];

function pick(row: Row | undefined): Row {
  const { fact_id, event_id, ...rest } = row as Row;
  return rest;
}
