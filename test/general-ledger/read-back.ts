/** Reads the files of a hand-off as their programs would, by a reader of its own: sums of debits less credits. */
import { expect } from 'vitest';

/** RFC 4180, character by character. */
export function tableOf(text: string): Record<string, string>[] {
  const records: string[][] = [['']];
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const [character, record] = [text[at] as string, records.at(-1) as string[]];
    const last = record.length - 1;
    if (quoted && character === '"' && text[at + 1] === '"') {
      record[last] += '"';
      at += 1;
    } else if (character === '"') quoted = !quoted;
    else if (!quoted && character === ',') record.push('');
    else if (!quoted && character === '\n') records.push(['']);
    else record[last] += character;
  }
  expect([quoted, records.pop()]).toEqual([false, ['']]);
  const [heading = [], ...rows] = records;
  return rows.map((row) => {
    expect(row.length).toBe(heading.length);
    return Object.fromEntries(heading.map((name, at) => [name, row[at] as string]));
  });
}

/** In thousandths, which every currency of ours has at most; blank is nothing. */
export function units(text: string): bigint {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,3}))?$/.exec(text === '' ? '0' : text) ?? [];
  if (whole === undefined) throw new Error(`${text} is no amount`);
  const value = BigInt(whole + fraction.padEnd(3, '0'));
  return sign === '-' ? -value : value;
}

export interface Read {
  readonly id: string;
  readonly date: string;
  readonly account: string;
  readonly currency: string;
  readonly name: string;
  /** Debit less credit, in thousandths. */
  readonly amount: bigint;
}

interface Written {
  readonly name: string;
  readonly content: Buffer;
}

const linesOf: Record<string, (row: Record<string, string>, file: string) => Read> = {
  generic: (row) => ({
    ...{ id: row['external_id'] as string, date: row['date'] as string, account: row['account'] as string },
    ...{ currency: row['currency'] as string, name: row['name'] as string, amount: sides(row['debit'], row['credit']) },
  }),
  quickbooks: (row) => ({
    ...{ id: row['Journal No.'] as string, date: row['Journal Date'] as string },
    ...{ account: row['Account Name'] as string, currency: row['Currency'] as string, name: row['Name'] as string },
    amount: sides(row['Debits'], row['Credits']),
  }),
  xero: (row, file) => ({
    ...{ id: row['*Narration'] as string, date: row['*Date'] as string, account: row['*AccountCode'] as string },
    currency: /-xero-([A-Z]{3})(-\d+)?\.csv$/.exec(file)?.[1] as string,
    ...{ name: row['Description'] as string, amount: units(row['*Amount'] as string) },
  }),
  netsuite: (row) => ({
    ...{ id: row['External ID'] as string, date: row['Date'] as string, account: row['Account'] as string },
    ...{ currency: row['Currency'] as string, name: row['Name'] as string, amount: sides(row['Debit'], row['Credit']) },
  }),
};

/** A line has one of both, and it is above zero. */
function sides(debit = '', credit = ''): bigint {
  expect((debit === '') !== (credit === '')).toBe(true);
  expect(units(debit) + units(credit) > 0n).toBe(true);
  return units(debit) - units(credit);
}

/** The lines of the files, each of which balances by journal. */
export function readBack(format: string, files: readonly Written[]): Read[] {
  return files
    .filter(({ name }) => name.endsWith('.csv'))
    .flatMap(({ name, content }) => {
      const lines = tableOf(content.toString('utf8')).map((row) =>
        (linesOf[format] as (typeof linesOf)[string])(row, name),
      );
      for (const [id, sum] of sumsBy(lines, (line) => line.id)) expect([name, id, sum]).toEqual([name, id, 0n]);
      return lines;
    });
}

export function sumsBy<Line extends { amount: bigint }>(
  lines: readonly Line[],
  key: (line: Line) => string,
): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const line of lines) sums.set(key(line), (sums.get(key(line)) ?? 0n) + line.amount);
  return sums;
}

/** Without what is zero. */
export const nonZero = (sums: ReadonlyMap<string, bigint>): Record<string, bigint> =>
  Object.fromEntries([...sums].filter(([, sum]) => sum !== 0n).sort());
