/** Queries over the rows of cold stores, in SQL that DuckDB and PostgreSQL both run (store.ts). */
import { GROUP_KEYS } from '#ledger/row-groups.sql';
import { Month } from '#month';
import { Tree } from './archive.sql.ts';
import { Fill, LINE_COLUMNS, Reading, SUMS, texts } from './store.ts';

/** Which rows to read: those of partners, or all rows of quotes. */
export type Wanted =
  | { readonly partnerIds?: readonly string[] | undefined }
  /** An id of a quote, requote or reversal, an enrollment or an order, of any partner. */
  | { readonly named: string }
  /**
   * The quotes that have a row whose column is in a list of partners and values; of some months also the quotes that
   * have other rows than their acceptance, or are in the list `hot`.
   */
  | {
      readonly lists: readonly (readonly [column: string, list: Fill])[];
      readonly months?: readonly Month[];
      readonly hot?: Fill;
    };

const IDS = ['quote_id', 'requote_id', 'reversal_id'];

const inList = (list: string, column = 'quote_id') => `(partner_id, ${column}) IN (SELECT partner_id, id FROM ${list})`;

/** Finds wanted rows, and returns their lines in pieces. A quote may have rows in several stores. */
export async function findRows(readings: readonly Reading[], wanted: Wanted) {
  if (!('named' in wanted) && !('lists' in wanted)) {
    const { partnerIds } = wanted;
    const where = partnerIds === undefined ? 'true' : `partner_id IN (${texts(partnerIds)})`;
    return copyAll(readings, async () => where);
  }
  const found: string[] = [];
  for (const reading of readings)
    for (const row of await reading.query(await quotesOf(reading, wanted))) found.push(`${row.join('\t')}\n`);
  const quotes = Buffer.from(found.join(''));
  return copyAll(found.length === 0 ? [] : readings, async ({ list }) =>
    inList(await list(async (take) => take(quotes))),
  );
}

async function* copyAll(
  readings: readonly Reading[],
  whereOf: (reading: Reading) => Promise<string>,
): AsyncGenerator<Buffer> {
  for (const reading of readings) yield* reading.copy(await whereOf(reading));
}

/** A query of the partners and quotes whose rows are wanted. */
async function quotesOf({ rows, list }: Reading, wanted: Exclude<Wanted, { partnerIds?: unknown }>) {
  const conditions: string[] = [];
  if ('named' in wanted) {
    for (const id of [...IDS, 'enrollment_id', 'order_reference']) conditions.push(`${id} = ${texts([wanted.named])}`);
  } else {
    const known = new Map<Fill, string>();
    const listOf = async (fill: Fill) => {
      const name = known.get(fill) ?? (await list(fill));
      known.set(fill, name);
      return name;
    };
    for (const [column, fill] of wanted.lists) conditions.push(inList(await listOf(fill), column));
    const { months = [], hot } = wanted;
    if (months.length > 0) {
      const own = `billed IN (${texts(months)}) AND`;
      conditions.push(`${own} kind <> 'quote_accepted'`);
      if (hot !== undefined) conditions.push(`${own} ${inList(await listOf(hot))}`);
    }
  }
  return conditions.map((condition) => `SELECT partner_id, quote_id FROM ${rows} WHERE ${condition}`).join(' UNION ');
}

/** Lists for the ids of rows. */
export const ofIds = (list: Fill): (readonly [string, Fill])[] => IDS.map((id) => [id, list]);

export const DAY = 'left(accepted_at, 10)';
export const NUMBER = 'entry_id::VARCHAR';

/** Reads the rows of a partner's quotes as JSON, by month, currency and arrangement, with the leaves of all rows there. */
export async function readTrees(
  { query, rows, leaf, json: [array, object] }: Reading,
  { partnerId, quoteIds }: { readonly partnerId: string; readonly quoteIds: readonly string[] },
): Promise<Tree[]> {
  const own = `quote_id IN (${texts(quoteIds)})`;
  const fields = LINE_COLUMNS.map((name) => `'${name}', ${name}`).join(', ');
  const found = await query(
    `SELECT billed, currency, arrangement, to_json(${array}(${object}(${fields})) FILTER (WHERE ${own}))::VARCHAR,
            string_agg(${leaf}, '' ORDER BY entry_id)
     FROM ${rows} WHERE partner_id = ${texts([partnerId])}
     GROUP BY billed, currency, arrangement HAVING bool_or(${own})`,
  );
  return found.map((row) => {
    const [month, currency, arrangement, own, leaves] = row as string[] as [string, string, string, string, string];
    return { month, currency, arrangement, rows: own, leaves };
  });
}

/** The ids of a list that no row, or group of rows, of the same partner has. */
async function missing({ query, list }: Reading, fill: Fill, from: string, id: string) {
  const found = await query(
    `SELECT l.id FROM ${await list(fill)} AS l
     WHERE NOT EXISTS (SELECT 1 FROM (SELECT partner_id, ${id} AS id FROM ${from}) AS r
                       WHERE r.partner_id = l.partner_id AND r.id = l.id)
     ORDER BY 1`,
  );
  return found.map(([each]) => String(each));
}

/** The numbers and leaves of `presentLeaves` that the rows of the store do not have. */
export const otherRows = (reading: Reading, present: Fill) =>
  missing(reading, present, reading.rows, `concat_ws(' ', entry_id, ${reading.leaf})`);

/** The groups of `storedGroups` that are not groups of the rows of the store. */
export const otherGroups = (reading: Reading, stored: Fill) =>
  missing(reading, stored, `${reading.rows} GROUP BY ${GROUP_KEYS}`, GROUP_TEXT);

const SHOWN = 'posted_month, partner_id, policy_id, kind';
const extremes = (name: string) => `min(${name}), max(${name})`;
const GROUP_TEXT = `concat_ws(' ', ${SHOWN}, ${GROUP_KEYS}, count(*), ${SUMS},
  ${['accepted_at', 'recorded_at', 'entry_id'].map(extremes).join(', ')}, min(quote_id))`;
