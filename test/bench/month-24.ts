/** Closing the 24th month of a ledger. Its floor: closing the first one, which has as many rows. */
import { closeMonth } from './close.ts';
import { type Measured, measured } from './measured.ts';
import { emptyLedger, inTurns, type Workbench } from './workbench.ts';

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
  const first = await bench.made('month_1', (url) => imported(url, FIRST), await emptyLedger(bench));
  const last = await bench.made(
    'month_24',
    async (url) => {
      for (const each of MONTHS) {
        if (each !== FIRST) await imported(url, each);
        if (each !== LAST) await bench.reckoner(url, each.morningAfter, ['close', each.month, '--no-deliver']);
      }
    },
    first,
  );
  const closing =
    ({ month, morningAfter }: (typeof MONTHS)[number], from: string) =>
    () =>
      bench.inClone(from, ({ url, client }) => closeMonth(bench, url, client, month, morningAfter));
  const { taken } = await inTurns<'ours' | 'floor'>(bench, 'month-24', (turn) =>
    turn({ ours: closing(LAST, last), floor: closing(FIRST, first) }),
  );
  return [measured({ measure: 'month-24', ...taken, unit: 's' }, { atMost: 1.15 })];
}
