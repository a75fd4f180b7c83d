/** Importing and closing the 24th month of a ledger. Its floor: those of the first one, which has as many rows. */
import { closeMonth } from './close.ts';
import { type Measured, measured } from './measured.ts';
import { cpuInWords, emptyLedger, inTurns, type Workbench } from './workbench.ts';

/** 24 months of a quarter of the rows each are six times the rows: 23 of them are only there to be history. */
const SHARE = 4;

const MONTHS = Array.from({ length: 24 }, (_, index) => {
  const month = `${2024 + Math.floor(index / 12)}-${String((index % 12) + 1).padStart(2, '0')}`;
  return { month, morningAfter: new Date(Date.UTC(2024, index + 1, 1, 12)).toISOString() };
});
const FIRST = MONTHS[0] as (typeof MONTHS)[number];
const LAST = MONTHS[23] as (typeof MONTHS)[number];

export async function measureMonth24(bench: Workbench): Promise<Measured[]> {
  const rows = Math.ceil(bench.rows / SHARE);
  const imported = async (url: string, { month, morningAfter }: (typeof MONTHS)[number]) =>
    void (await bench.reckoner(url, morningAfter, ['ledger', 'import', await bench.rowsFile(month, rows)]));
  const empty = await emptyLedger(bench);
  const first = await bench.made('month_1', (url) => imported(url, FIRST), empty);
  const before = await bench.made(
    'months_1_to_23',
    async (url) => {
      for (const each of MONTHS.slice(0, -1)) {
        if (each !== FIRST) await imported(url, each);
        await bench.reckoner(url, each.morningAfter, ['close', each.month, '--no-deliver']);
      }
    },
    first,
  );
  const last = await bench.made('month_24', (url) => imported(url, LAST), before);
  const importing = (month: (typeof MONTHS)[number], from: string) => () =>
    bench.inClone(from, async ({ url, client }) => {
      await client.query('CHECKPOINT');
      const file = await bench.rowsFile(month.month, rows);
      return (await bench.reckoner(url, month.morningAfter, ['ledger', 'import', file])).seconds;
    });
  const imports = await inTurns<'ours' | 'floor'>(bench, 'month-24 import', (turn) =>
    turn({ ours: importing(LAST, before), floor: importing(FIRST, empty) }),
  );
  const closing =
    ({ month, morningAfter }: (typeof MONTHS)[number], from: string) =>
    () =>
      bench.inClone(from, ({ url, client }) => closeMonth(bench, url, client, month, morningAfter));
  const { taken } = await inTurns<'ours' | 'floor'>(bench, 'month-24', (turn) =>
    turn({ ours: closing(LAST, last), floor: closing(FIRST, first) }),
  );
  return [
    measured(
      { measure: 'month-24 import', ...imports.taken, unit: 's', cpu: cpuInWords(imports.cpu) },
      { atMost: 1.15 },
    ),
    measured({ measure: 'month-24', ...taken, unit: 's' }, { atMost: 1.15 }),
  ];
}
