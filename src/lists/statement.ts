/** The SQL of a list: its rows in each sort order, and their count and sums, all with the same conditions. */
import { Amount } from '#money';
import { Sums } from './list.ts';

/** The pattern of a text that contains `:text`, in small letters. */
export const PATTERN = `('%' || regexp_replace(lower(:text::text), '([\\\\%_])', '\\\\\\1', 'g') || '%')`;

/** The commitments of the personal texts that contain `:text`, from an index of their trigrams. */
export const TEXTS = `(SELECT commitment FROM personal_texts WHERE lower(text) LIKE ${PATTERN})`;

type Parts<By extends string> = Readonly<{
  /** The columns of the row, given the expression that sorts it. */
  select: (by: string) => string;
  from: string;
  where: string;
  /** The condition for rows that the user may see. A page after another row would reveal that row's values. */
  visible?: string;
  id: string;
  type?: 'bigint' | 'text';
  /** Not null. The expression, and the tables with it if `from` does not have it. */
  by: Readonly<Record<By, string | readonly [by: string, from: string]>>;
  /** A statement around the page. */
  around?: (page: string, order: 'ASC' | 'DESC') => string;
}>;

/** One statement for each sort order. Rows that are equal in the order are sorted by id. */
export function sortedBy<By extends string>({
  select,
  from: tables,
  where,
  visible = 'true',
  id,
  type = 'bigint',
  by: columns,
  around = (page) => page,
}: Parts<By>): Readonly<Record<By | `-${By}`, string>> {
  const statement = (given: string | readonly [string, string], order: 'ASC' | 'DESC') => {
    const by = typeof given === 'string' ? given : given[0];
    const from = typeof given === 'string' ? tables : given[1];
    const follows = order === 'ASC' ? '>' : '<';
    const after =
      by === id
        ? `${id} ${follows} :after::${type}`
        : `(${by}, ${id}) ${follows} (SELECT ${by}, ${id} FROM ${from} WHERE ${id} = :after::${type} AND ${visible})`;
    return around(
      `SELECT ${select(by)}
       FROM ${from}
       WHERE (:after::${type} IS NULL OR ${after})
         AND ${where}
       ORDER BY ${by === id ? '' : `${by} ${order}, `}${id} ${order} LIMIT :limit`,
      order,
    );
  };
  return Object.fromEntries(
    Object.entries<string | readonly [string, string]>(columns).flatMap(([name, by]) => [
      [name, statement(by, 'ASC')],
      [`-${name}`, statement(by, 'DESC')],
    ]),
  ) as Record<By | `-${By}`, string>;
}

/** The names of all sort orders, after those for pages and for commands. */
export const sortsOf = <Sort extends string>(
  sorted: Readonly<Record<Sort, string>>,
  page: NoInfer<Sort>,
  all: NoInfer<Sort>,
): readonly [Sort, Sort, ...Sort[]] => [
  page,
  all,
  ...(Object.keys(sorted) as Sort[]).filter((each) => each !== page && each !== all),
];

/** The sums of a statement's rows: one for each currency, with the `count` of rows and the sums of columns. */
export const sumsBy = (rows: readonly (Readonly<{ currency: string; count: number }> & object)[]): Sums => ({
  count: rows.reduce((sum, { count }) => sum + count, 0),
  totals: rows.map(({ currency, count: _count, ...sums }) =>
    Object.fromEntries(Object.entries<string>(sums).map(([name, sum]) => [name, Amount.of(sum, currency)])),
  ),
});
