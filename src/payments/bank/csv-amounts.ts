/** Amounts in the CSV files of banks, and the signs of columns for credits and debits. */
import { BankCsvMap } from '#config/bank-csv';
import { FieldProblem } from '#errors/refusals';
import { isCurrency } from '#values';

const SIDES = ['credit', 'debit'] as const;
type Side = (typeof SIDES)[number];

/** Whether the bank writes its credits, and its debits, with a minus sign. */
export type Signs = Readonly<Record<Side, boolean>>;

/**
 * Some banks write all debits with a minus sign, others none. An amount with the other sign is given back. So all
 * amounts of a column decide.
 */
export class SignCounts {
  private readonly map: BankCsvMap;
  private readonly counts = {
    credit: { plus: 0, minus: 0, line: 0 },
    debit: { plus: 0, minus: 0, line: 0 },
  };

  constructor(map: BankCsvMap) {
    this.map = map;
  }

  add({ cells, line }: Readonly<{ cells: Readonly<Record<string, string>>; line: number }>) {
    for (const side of SIDES) {
      const { plain = '' } = plainAmount((cells[this.map.columns[side] ?? ''] ?? '').trim(), this.map.decimal);
      if (!/[1-9]/.test(plain)) continue;
      const of = this.counts[side];
      of[plain.startsWith('-') ? 'minus' : 'plus'] += 1;
      if (plain.startsWith('-')) of.line ||= line;
    }
  }

  /** The signs that the columns can have, the most probable first. */
  possible(): readonly [Signs, ...Signs[]] {
    const { credit, debit } = this.counts;
    const debits = debit.minus === 0 ? [false] : debit.minus > debit.plus ? [true, false] : [false, true];
    const credits = credit.minus === 0 ? [false] : [false, true];
    return credits.flatMap((each) => debits.map((other) => ({ credit: each, debit: other }))) as [Signs, ...Signs[]];
  }

  /** The column whose amounts do not decide: no bank is known that writes all credits with a minus sign. */
  undecided(): FieldProblem | undefined {
    const { credit, debit } = this.counts;
    const isOpen = { credit: credit.minus > 0 && credit.minus >= credit.plus, debit: debit.minus === debit.plus };
    const side = SIDES.find((each) => isOpen[each] && this.counts[each].minus > 0);
    return (
      side && {
        path: `line ${this.counts[side].line}`,
        reason:
          `has a minus sign in the column '${this.map.columns[side]}', and nothing in the file shows whether it is a ` +
          `${side} or takes one back: import a longer period, or add the column of the running balance (balance=…) to the map`,
      }
    );
  }
}

const CURRENCY = '([A-Z]{3}|[$€£¥])';
const BEFORE = new RegExp(`^([+(−-]*)${CURRENCY}`);
const BEHIND = new RegExp(`${CURRENCY}(?=[)−-]*$)`);
/** Of the symbols, only this one has one currency. */
const EURO = '€';

/**
 * Returns `1,234.50`, `1.234,50`, `(12.00)`, `12.00-`, `$ 12.00`, `12.00 EUR` or `12.00 DR` as a plain decimal, or
 * undefined for any other form, with the currency that it names. Digits must be grouped in threes or not at all, so that
 * a wrong decimal separator is detected.
 */
export function plainAmount(written: string, decimal: '.' | ','): Readonly<{ plain?: string; currency?: string }> {
  const spaceless = written.replace(/[\s\u00A0\u202F]/g, '');
  const named = BEFORE.exec(spaceless)?.[2] ?? BEHIND.exec(spaceless)?.[1] ?? '';
  const currency = named === EURO ? 'EUR' : named;
  const plain = plainNumber(spaceless.replace(BEFORE, '$1').replace(BEHIND, ''), decimal);
  return { ...(plain !== undefined && { plain }), ...(isCurrency(currency) && { currency }) };
}

function plainNumber(written: string, decimal: '.' | ',') {
  let text = written;
  let negative = false;
  const marks: readonly [RegExp, boolean][] = [
    [/^\((.*)\)$/, true],
    [/^[-−](.*)$/, true],
    [/^(.*)[-−]$/, true],
    [/^(.*)DR$/i, true],
    [/^(.*)CR$/i, false],
    [/^\+(.*)$/, false],
  ];
  for (const [mark, minus] of marks) {
    const found = mark.exec(text);
    if (found === null) continue;
    text = found[1] as string;
    negative = minus;
    break;
  }
  const group = decimal === '.' ? ',' : '.';
  const [whole = '', fraction, more] = text.split(decimal);
  if (more !== undefined || (fraction !== undefined && !/^\d+$/.test(fraction))) return undefined;
  const grouped = new RegExp(`^\\d{1,3}(?:[${group}'’]\\d{3})+$`);
  if (!/^\d+$/.test(whole) && !grouped.test(whole)) return undefined;
  const plain = whole.replace(/\D/g, '');
  return `${negative ? '-' : ''}${plain}${fraction === undefined ? '' : `.${fraction}`}`;
}
