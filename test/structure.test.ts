/**
 * The order of the source: which folder may import which, whose tables a statement may name, and how long a file, a
 * function and a line of SQL may be. Exceptions are listed with a reason; one that is no longer needed fails.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAst } from 'vitest/node';
import { UNIX } from './support/tools.ts';

const ROOT = join(import.meta.dirname, '..');

/** A folder imports only from itself and from the folders above it. Files directly in src come before all of them. */
const ORDER = [
  'errors',
  'reading',
  'processors',
  'config',
  'database',
  'people',
  'approvals',
  'partners',
  'ledger',
  'quotes',
  'log',
  'archive',
  'documents',
  'close',
  'mail',
  'delivery',
  'payments',
  'opening',
  'splits',
  'erasures',
  'partner-events',
  'findings',
  'reports',
  'general-ledger',
  'month-end',
  'audit',
  'actions',
  'lists',
  'http',
  'console',
  'portal',
  'cli',
  'demo',
];

const MOST_FILE_LINES = 500;
const MOST_FUNCTION_LINES = 80;
const MOST_SQL_COLUMNS = 120;

/** The folder that owns the tables of a migration, where their names differ. */
const FOLDER_OF_MIGRATION: Readonly<Record<string, string>> = {
  foundation: 'database',
  journal: 'audit',
  partner_events: 'partner-events',
  general_ledger: 'general-ledger',
};

type Exceptions = Readonly<Record<string, string>>;

/** `importing file -> imported file` */
const IMPORT_EXCEPTIONS: Exceptions = {
  'ledger/import.ts -> archive/rows.ts': 'an import knows the sales of archived months, too',
};

/** `file -> table` */
const TABLE_EXCEPTIONS: Exceptions = {
  'archive/archive.sql.ts -> missing_shares': 'verify reads archived rows that later facts name',
  'archive/archive.sql.ts -> published_marks': 'a month leaves when partners have the events of its rows',
  'archive/archive.sql.ts -> reversal_evidence': 'the same',
  'archive/archive.sql.ts -> share_allocations': 'the same',
  'close/books.sql.ts -> book_open_documents': 'the close of the books stores what is open with the balances',
  'close/books.sql.ts -> book_unapplied_cash': 'and what cash is unapplied; their keys refer to later tables',
  'ledger/running-lines.sql.ts -> archived_sales': 'a sale that is reversed may be archived',
  'ledger/doubles.sql.ts -> quotes': 'a quote that is asked for after an acceptance may repeat it',
  'ledger/grounds.sql.ts -> log_checkpoints': 'a ceiling counts the rows since the last checkpoint',
  'ledger/grounds.sql.ts -> month_partners': 'and the sales of the month before',
  'ledger/quoted.sql.ts -> quotes': 'rows of files are compared with the quotes that the API made under their ids',
  'ledger/quoted.sql.ts -> requotes': 'and with its requotes',
  'log/checkpoints.sql.ts -> documents': 'the first documents of a closed month bill all of its rows',
  'log/forms.ts -> document_lines': 'a fact is written with the currency of what it belongs to',
  'log/forms.ts -> documents': 'the same',
  'log/forms.ts -> payments': 'the same',
  'log/forms.ts -> payouts': 'the same',
  'partners/partners.sql.ts -> ledger_rows': 'an arrangement may change only in a month without ledger rows',
};

/** Where statements are that no `.sql.ts` has: a folder or a file. */
const STATEMENT_EXCEPTIONS: Exceptions = {
  'lists/': 'a list is declared by its statement',
  'findings/': 'and a finding by what it reads',
  'audit/checks/': 'and a check by the rows that it must not find',
  'database/': 'asks the server about itself: its catalog, locks, sessions and copies',
  'archive/citus.ts': 'writes SQL for a cluster',
  'archive/parquet.ts': 'writes SQL of DuckDB',
  'audit/rules.ts': 'runs the rules of templates/export/checks.sql',
  'log/forms.ts': 'declares which columns of a fact are computed',
};

const CYCLES: Exceptions = {};

const LONG_FILES: Exceptions = {};

/** `file name` */
const LONG_FUNCTIONS: Exceptions = {};

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

interface Import {
  readonly from: string;
  readonly to: string;
  /** An `import()`, of code that is loaded when it is first needed. */
  readonly lazy: boolean;
}

interface Source {
  readonly path: string;
  readonly lines: readonly string[];
  readonly imports: readonly Import[];
  readonly functions: readonly { readonly name: string; readonly lines: number }[];
  readonly statements: readonly { readonly text: string; readonly first: number; readonly last: number }[];
}

const SOURCES: readonly Source[] = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path))
  .sort()
  .map((path) => readSource(path.replaceAll('\\', '/')));

/** The source that an import such as `#money` names. */
function fileOf(name: string): string {
  return `${name}${existsSync(join(ROOT, 'src', `${name}.tsx`)) ? '.tsx' : '.ts'}`;
}

function readSource(path: string): Source {
  const text = readFileSync(join(ROOT, 'src', path), 'utf8');
  const lineAt = (offset: number) => text.slice(0, offset).split('\n').length;
  const imports: Import[] = [];
  const functions: { name: string; lines: number }[] = [];
  const statements: { text: string; first: number; last: number }[] = [];
  const visit = (node: Node, name: string) => {
    const target = node['source'] as { value?: unknown } | null | undefined;
    if (/^(Import|Export)/.test(node.type) && typeof target?.value === 'string' && /^[.#]/.test(target.value)) {
      const to = target.value.startsWith('#') ? fileOf(target.value.slice(1)) : join(dirname(path), target.value);
      imports.push({ from: path, to, lazy: node.type === 'ImportExpression' });
    }
    const own = (node['id'] ?? node['key']) as { name?: string } | undefined;
    const called = own?.name ?? name;
    if (/Function/.test(node.type) && node['body'] != null) {
      functions.push({ name: called, lines: lineAt(node.end) - lineAt(node.start) + 1 });
    }
    const written = textOf(node);
    if (written !== undefined && isSql(written)) {
      statements.push({ text: written, first: lineAt(node.start), last: lineAt(node.end) });
    }
    for (const child of childrenOf(node)) visit(child, called);
  };
  visit(parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' }) as unknown as Node, '');
  return { path, lines: text.trimEnd().split('\n'), imports, functions, statements };
}

function childrenOf(node: Node): Node[] {
  const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;
  return Object.values(node).flatMap((value) => (Array.isArray(value) ? value : [value]).filter(isNode));
}

/** What a string or template literal says; `…` stands for the expressions in a template. */
function textOf(node: Node): string | undefined {
  if (node.type === 'Literal' && typeof node['value'] === 'string') return node['value'];
  if (node.type !== 'TemplateLiteral') return undefined;
  return (node['quasis'] as { value: { raw: string } }[]).map(({ value }) => value.raw).join('…');
}

function isSql(text: string): boolean {
  return /\b(SELECT|INSERT INTO|DELETE FROM|UPDATE [a-z_]+ SET|FROM [a-z_]+|JOIN [a-z_]+|LOCK TABLE)\b/.test(text);
}

const folderOf = (path: string): string => (path.includes('/') ? (path.split('/')[0] as string) : '');
/** Files directly in src have rank -1. */
const rankOf = (folder: string): number => ORDER.indexOf(folder);

/** The folder that owns each table. */
function readOwners(): Map<string, string> {
  const owners = new Map<string, string>();
  for (const file of readdirSync(join(ROOT, 'migrations')).sort()) {
    const noun = /^\d+_(\w+)\.sql$/.exec(file)?.[1];
    if (noun === undefined) continue;
    const sql = readFileSync(join(ROOT, 'migrations', file), 'utf8');
    for (const [, table] of sql.matchAll(/^CREATE (?:UNLOGGED )?TABLE (\w+)/gm)) {
      owners.set(table as string, FOLDER_OF_MIGRATION[noun] ?? noun);
    }
  }
  return owners;
}

/** The names that stand where a statement names a table: after FROM, JOIN, INTO and the like, and after their commas. */
function* tablesNamed(statement: string): Generator<string> {
  const sql = statement.replaceAll(/--[^\n]*/g, '');
  const own = new Set([...sql.matchAll(/(\w+) AS (?:(?:NOT )?MATERIALIZED )?\(/g)].map(([, name]) => name));
  const names =
    /\b(?:FROM|JOIN|INTO|UPDATE|USING|TABLE|TRUNCATE|COPY)\s+(?:ONLY\s+)?((?:\w+(?:\s+(?:AS\s+)?[a-z]\w*)?\s*,\s*)*\w+)/g;
  for (const [, list] of sql.matchAll(names)) {
    for (const item of (list as string).split(',')) {
      const name = item.trim().split(/\s+/)[0] as string;
      if (!own.has(name)) yield name;
    }
  }
}

/** What is found and not excepted, and what is excepted and not found. */
function compare(found: Iterable<string>, exceptions: Exceptions): { unexpected: string[]; stale: string[] } {
  const all = new Set(found);
  return {
    unexpected: [...all].filter((each) => !(each in exceptions)).sort(),
    stale: Object.keys(exceptions).filter((each) => !all.has(each)),
  };
}
const NOTHING = { unexpected: [], stale: [] };

describe('imports', () => {
  const imports = SOURCES.flatMap((source) => source.imports);

  test('every folder has its place in the order', () => {
    expect([...new Set(SOURCES.map(({ path }) => folderOf(path)))].filter((each) => each !== '').sort()).toEqual(
      [...ORDER].sort(),
    );
  });

  test('a folder imports only from the folders above it', () => {
    expect(imports.length).toBeGreaterThan(500);
    const upward = imports.filter(({ from, to }) => rankOf(folderOf(to)) > rankOf(folderOf(from)));
    expect(
      compare(
        upward.map(({ from, to }) => `${from} -> ${to}`),
        IMPORT_EXCEPTIONS,
      ),
    ).toEqual(NOTHING);
  });

  test('no files import each other in a cycle, not even for types', () => {
    const arrows = new Map<string, string[]>();
    for (const { from, to, lazy } of imports) if (!lazy) arrows.set(from, [...(arrows.get(from) ?? []), to]);
    const done = new Set<string>();
    const cycles: string[] = [];
    const walk = (file: string, above: readonly string[]) => {
      if (above.includes(file)) cycles.push([...above.slice(above.indexOf(file)), file].join(' -> '));
      if (done.has(file)) return;
      done.add(file);
      for (const next of arrows.get(file) ?? []) walk(next, [...above, file]);
    };
    for (const { path } of SOURCES) walk(path, []);
    expect(compare(cycles, CYCLES)).toEqual(NOTHING);
  });
});

describe('SQL', () => {
  const owners = readOwners();

  test('a statement names no table of a later folder', () => {
    expect(owners.size).toBeGreaterThan(50);
    expect([...owners.values()].filter((folder) => !ORDER.includes(folder))).toEqual([]);
    const arrows = SOURCES.flatMap(({ path, statements }) =>
      statements.flatMap(({ text }) => [...tablesNamed(text)].map((table) => ({ path, table }))),
    ).filter(({ table }) => owners.has(table));
    expect(arrows.length).toBeGreaterThan(200);
    const later = arrows.filter(({ path, table }) => rankOf(owners.get(table) as string) > rankOf(folderOf(path)));
    expect(
      compare(
        later.map(({ path, table }) => `${path} -> ${table}`),
        TABLE_EXCEPTIONS,
      ),
    ).toEqual(NOTHING);
  });

  test('it is in files of SQL, and beyond them only where a statement is the declaration', () => {
    const [files, others] = [true, false].map((isSql) =>
      SOURCES.filter(({ path, statements }) => statements.length > 0 && path.endsWith('.sql.ts') === isSql),
    );
    expect(files?.length).toBeGreaterThan(70);
    const placeOf = (path: string) => Object.keys(STATEMENT_EXCEPTIONS).find((place) => path.startsWith(place)) ?? path;
    expect(
      compare(
        (others ?? []).map(({ path }) => placeOf(path)),
        STATEMENT_EXCEPTIONS,
      ),
    ).toEqual(NOTHING);
  });

  test('a file of SQL decides nothing: it refuses nothing and records no event of its own', () => {
    const files = SOURCES.filter(({ path }) => path.endsWith('.sql.ts'));
    expect(files.length).toBeGreaterThan(70);
    const deciding = files.filter(({ lines }) =>
      /^import [^;]*\b(refuse|recordEvents?|failpoint)\b[^;]* from/m.test(lines.join('\n')),
    );
    expect(deciding.map(({ path }) => path)).toEqual([]);
  });

  test(`a line of SQL has at most ${MOST_SQL_COLUMNS} columns`, () => {
    expect(SOURCES.flatMap(({ statements }) => statements).length).toBeGreaterThan(200);
    const wide = SOURCES.filter(({ lines, statements }) =>
      statements.some(({ first, last }) => lines.slice(first - 1, last).some((line) => line.length > MOST_SQL_COLUMNS)),
    );
    expect(wide.map(({ path }) => path)).toEqual([]);
  });
});

test('knex and pg are used by what they document: no connection is taken from knex, and none is marked', () => {
  const lines = SOURCES.flatMap(({ path, lines: all }) => all.map((line) => ({ path, line })));
  expect(lines.filter(({ line }) => / from '(knex|pg)';/.test(line)).length).toBeGreaterThan(5);
  const inside =
    /__knex|knex\.client|\.(acquire|release)(Raw)?Connection\(|\.client\.pool|as unknown as .*\b(connection|stream)\b/;
  expect(lines.filter(({ line }) => inside.test(line))).toEqual([]);
});

test('a transaction is an argument of its own: no context has one', () => {
  const contexts = SOURCES.flatMap(({ lines }) =>
    [
      ...lines.join('\n').matchAll(/^(?:export )?(?:interface|type) (\w*Context)\b([^{\n]*\{\n[\s\S]*?\n\}|[^\n]*)/gm),
    ].map(([, name, members = '']) => ({ name, members })),
  );
  expect(contexts.length).toBeGreaterThan(10);
  expect(contexts.filter(({ members }) => /\btx\??:/.test(members)).map(({ name }) => name)).toEqual([]);
});

test('a reader of files is exported by the name under which the process that reads imports it', () => {
  const readers = SOURCES.flatMap(({ path, lines }) => {
    const text = lines.join('\n');
    return [...text.matchAll(/^(?:export )?const \w+ = readerOf\(\s*import\.meta\.url,\s*'(\w+)'/gm)].map(
      ([, name]) => ({
        reader: `${path}: ${name}`,
        isExported: new RegExp(`^export const ${name} = readerOf\\(`, 'm').test(text),
      }),
    );
  });
  expect(readers.length).toBeGreaterThan(5);
  expect(readers.filter(({ isExported }) => !isExported)).toEqual([]);
});

test('a test runs no program of others but by way of tools.ts, which skips it where the program is missing', () => {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const literal = /\b(?:spawn|spawnSync|exec|execSync|execFile|execFileSync)\(\s*['"`]([^'"`]*)/g;
  const named = files.flatMap((name) =>
    [...readFileSync(join(ROOT, 'test', name), 'utf8').matchAll(literal)].map(([, program = '']) => program),
  );
  expect(named.length).toBeGreaterThan(5);
  // npm comes with Node.
  expect(named.filter((program) => ![...UNIX, 'npm'].includes(program))).toEqual([]);
});

// A program that loads a module while the compiler writes it ends with 1 and a SyntaxError, rarely.
test('no test builds dist/ while others run it: it is built before the tests, and packed as it is', () => {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && name !== 'support/build.ts',
  );
  const named = (pattern: RegExp) =>
    files.flatMap((name) =>
      [...readFileSync(join(ROOT, 'test', name), 'utf8').matchAll(pattern)].map(([text]) => text),
    );
  const packs = named(/= \[\s*'pack',[^\]]*/g);
  expect(packs.length).toBeGreaterThan(0);
  expect(packs.filter((each) => !each.includes("'--ignore-scripts'"))).toEqual([]);
  expect(named(/'run',[^\]]*'build'|tsconfig\.build/g)).toEqual([]);
});

describe('size', () => {
  test(`a file has at most ${MOST_FILE_LINES} lines`, () => {
    const long = SOURCES.filter(({ lines }) => lines.length > MOST_FILE_LINES);
    expect(
      compare(
        long.map(({ path }) => path),
        LONG_FILES,
      ),
    ).toEqual(NOTHING);
  });

  test(`a function has at most ${MOST_FUNCTION_LINES} lines`, () => {
    const functions = SOURCES.flatMap(({ path, functions: own }) => own.map((each) => ({ path, ...each })));
    expect(functions.length).toBeGreaterThan(1_000);
    // A view in .tsx is markup, one element after the other.
    const long = functions.filter(({ path, lines }) => path.endsWith('.ts') && lines > MOST_FUNCTION_LINES);
    expect(
      compare(
        long.map(({ path, name }) => `${path} ${name}`),
        LONG_FUNCTIONS,
      ),
    ).toEqual(NOTHING);
  });
});
