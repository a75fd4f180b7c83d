/** Every statement that the program runs, with the row type and the parameters of its call. */
import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import ts from 'typescript-api';
import { type Env, Evaluator, Unknown, type Value } from './evaluate.ts';

const ROOT = resolve(import.meta.dirname, '..', '..', '..');

/** The kind of a JavaScript value; 'any' if its type does not determine it. */
export type Kind = 'text' | 'number' | 'boolean' | 'list' | 'bytes' | 'json' | 'any';

export interface Property {
  readonly kind: Kind;
  readonly nullable: boolean;
  readonly optional: boolean;
}

export interface Asked {
  /** `src/close/months.sql.ts:12` */
  readonly place: string;
  /** The expression of the statement, as the program writes it. */
  readonly source: string;
  /** All texts that it may have. */
  readonly texts: readonly string[];
  /** undefined for `execute`, and if the caller does not state the type of a row. */
  readonly row: ReadonlyMap<string, Property> | undefined;
  /** Names of the values that the call gives; `exact` where these are for it alone. */
  readonly bindings: { readonly names: ReadonlySet<string>; readonly exact: boolean };
}

export interface Unevaluated {
  readonly place: string;
  readonly source: string;
  readonly reason: string;
}

/**
 * The functions that ask a statement, or make a function that asks it: which argument is the statement, where the row's
 * type is, and which type argument names the parameters, if it is not an argument.
 */
const ROLES: Readonly<
  Record<string, { sql: number; row: 'returned' | 'declared' | 'column' | 'none'; given?: number }>
> = {
  query: { sql: 1, row: 'returned' },
  queryOne: { sql: 1, row: 'returned' },
  execute: { sql: 1, row: 'none' },
  querying: { sql: 0, row: 'declared', given: 1 },
  queryingOne: { sql: 0, row: 'declared', given: 1 },
  queryingFirst: { sql: 0, row: 'declared', given: 1 },
  queryingColumn: { sql: 0, row: 'column', given: 1 },
  queryingValue: { sql: 0, row: 'column', given: 1 },
  executing: { sql: 0, row: 'none', given: 0 },
};

export function findStatements(): { asked: Asked[]; unevaluated: Unevaluated[] } {
  const config = ts.parseJsonConfigFileContent(
    { ...JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8')), include: ['src'] },
    ts.sys,
    ROOT,
  );
  const program = ts.createProgram(config.fileNames, { ...config.options, noEmit: true });
  const checker = program.getTypeChecker();
  const files = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(join(ROOT, 'src')));
  const evaluator = new Evaluator(program, files);
  const asked: Asked[] = [];
  const unevaluated: Unevaluated[] = [];
  for (const [symbol, calls] of evaluator.calls) {
    const home = symbol.valueDeclaration?.getSourceFile().fileName;
    if (home !== join(ROOT, 'src', 'database', 'transaction.ts')) continue;
    const role = ROLES[symbol.name];
    if (role === undefined) continue;
    for (const call of calls) {
      const file = call.getSourceFile();
      if (file.fileName === home) continue;
      const place = `${relative(ROOT, file.fileName)}:${file.getLineAndCharacterOfPosition(call.getStart()).line + 1}`;
      const sql = call.arguments[role.sql];
      const source = sql?.getText() ?? '';
      try {
        const rows =
          role.row === 'declared' || role.row === 'column'
            ? [declaredRow(checker, call, role.row)]
            : rowsOf(checker, evaluator, call);
        for (const { env, row } of rows) {
          asked.push({
            place,
            source,
            texts: textsOf(evaluator, call, sql, env),
            row: role.row === 'none' ? undefined : row,
            bindings:
              role.given === undefined ? bindingsOf(checker, call) : declaredBindings(checker, call, role.given),
          });
        }
      } catch (error) {
        if (!(error instanceof Unknown)) throw error;
        unevaluated.push({ place, source, reason: error.message });
      }
    }
  }
  return { asked, unevaluated };
}

function textsOf(evaluator: Evaluator, call: ts.CallExpression, sql: ts.Expression | undefined, env: Env): string[] {
  if (sql === undefined) throw new Unknown('no statement');
  let values: readonly Value[];
  try {
    values = evaluator.evaluate(sql, env);
  } catch (error) {
    if (!(error instanceof Unknown) || env.size > 0) throw error;
    values = evaluator.contextsOf(call).flatMap((each) => evaluator.evaluate(sql, each));
  }
  return [...new Set(values.map(textOf))];
}

/** A statement is a text, or a prepared one with its text in `sql`. */
function textOf(value: Value): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null && 'fields' in value) {
    const sql = value.fields.get('sql');
    if (typeof sql === 'string') return sql;
  }
  throw new Unknown('not a statement');
}

// --- Row types --------------------------------------------------------------------------------------------------------

interface RowOf {
  readonly env: Env;
  readonly row: ReadonlyMap<string, Property> | undefined;
}

/** One type of row; for a helper with a type parameter, that of each of its calls, with what that call gives it. */
function rowsOf(checker: ts.TypeChecker, evaluator: Evaluator, call: ts.CallExpression): RowOf[] {
  const signature = checker.getResolvedSignature(call);
  const returned = signature && checker.getReturnTypeOfSignature(signature);
  const promised = returned && checker.getTypeArguments(returned as ts.TypeReference)[0];
  const row =
    promised && checker.isArrayType(promised) ? checker.getTypeArguments(promised as ts.TypeReference)[0] : promised;
  const none = { env: new Map(), row: undefined };
  if (row === undefined || hasAnyName(row)) return [none];
  if (!row.isTypeParameter()) return [{ env: new Map(), row: propertiesOf(checker, row) }];
  const owner = row.symbol.declarations?.[0]?.parent as ts.SignatureDeclaration | undefined;
  const index = owner?.typeParameters?.findIndex((each) => each.name.text === row.symbol.name) ?? -1;
  const given = (owner ? evaluator.callsOf(owner) : []).flatMap((each) => {
    const node = each.typeArguments?.[index];
    if (node === undefined || owner === undefined) return [];
    return [{ env: evaluator.contextOf(owner, each), row: propertiesOf(checker, checker.getTypeFromTypeNode(node)) }];
  });
  return given.length === 0 ? [none] : given;
}

/** Whether it has columns of any name, as a file of rows has them, or is of no stated type. */
const hasAnyName = (row: ts.Type): boolean =>
  (row.flags & (ts.TypeFlags.Unknown | ts.TypeFlags.Any)) !== 0 ||
  (row.isIntersection() ? row.types : [row]).some((part) => part.getStringIndexType() !== undefined);

/** The name of the property of a row with one column of any name. */
export const ONLY_COLUMN = '*';

function declaredRow(checker: ts.TypeChecker, call: ts.CallExpression, kind: 'declared' | 'column'): RowOf {
  const node = call.typeArguments?.[0];
  if (node === undefined) throw new Unknown('no type of a row');
  const type = checker.getTypeFromTypeNode(node);
  const row =
    kind === 'column' ? new Map([[ONLY_COLUMN, propertyOf(checker, type, false)]]) : propertiesOf(checker, type);
  return { env: new Map(), row: kind === 'declared' && hasAnyName(type) ? undefined : row };
}

function propertiesOf(checker: ts.TypeChecker, row: ts.Type): ReadonlyMap<string, Property> {
  return new Map(
    checker.getPropertiesOfType(row).map((symbol) => {
      const optional = (symbol.flags & ts.SymbolFlags.Optional) !== 0;
      return [symbol.name, propertyOf(checker, checker.getTypeOfSymbol(symbol), optional)];
    }),
  );
}

function propertyOf(checker: ts.TypeChecker, type: ts.Type, optional: boolean): Property {
  const parts = type.isUnion() ? type.types : [type];
  const kinds = new Set(parts.filter((part) => !isAbsent(part)).map((part) => kindOf(checker, part)));
  const [kind = 'any'] = kinds;
  return {
    kind: kinds.size > 1 ? 'any' : kind,
    nullable: parts.some((part) => (part.flags & (ts.TypeFlags.Null | ts.TypeFlags.Any | ts.TypeFlags.Unknown)) !== 0),
    optional,
  };
}

const isAbsent = (type: ts.Type): boolean => (type.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)) !== 0;

function kindOf(checker: ts.TypeChecker, type: ts.Type): Kind {
  if (type.isIntersection())
    return type.types.map((part) => kindOf(checker, part)).find((kind) => kind !== 'json') ?? 'json';
  if (type.flags & ts.TypeFlags.StringLike) return 'text';
  if (type.flags & ts.TypeFlags.NumberLike) return 'number';
  if (type.flags & ts.TypeFlags.BooleanLike) return 'boolean';
  if (checker.isArrayLikeType(type)) return 'list';
  if (/^Buffer\b|^Uint8Array\b/.test(checker.typeToString(type))) return 'bytes';
  return type.flags & ts.TypeFlags.Object ? 'json' : 'any';
}

// --- Parameters -------------------------------------------------------------------------------------------------------

function bindingsOf(checker: ts.TypeChecker, call: ts.CallExpression): Asked['bindings'] {
  const given = call.arguments[2];
  if (given === undefined) return { names: new Set(), exact: true };
  const names = checker.getPropertiesOfType(checker.getTypeAtLocation(given)).map(({ name }) => name);
  const exact = ts.isObjectLiteralExpression(given)
    ? !given.properties.some(ts.isSpreadAssignment)
    : isOnlyFor(checker, given);
  return { names: new Set(names), exact };
}

function declaredBindings(checker: ts.TypeChecker, call: ts.CallExpression, index: number): Asked['bindings'] {
  const node = call.typeArguments?.[index];
  if (node === undefined) return { names: new Set(), exact: true };
  const names = checker.getPropertiesOfType(checker.getTypeFromTypeNode(node)).map(({ name }) => name);
  return { names: new Set(names), exact: ts.isTypeLiteralNode(node) };
}

/** Whether it is a parameter whose type writes its names down, and that nothing else in its function reads. */
function isOnlyFor(checker: ts.TypeChecker, given: ts.Expression): boolean {
  const symbol = checker.getSymbolAtLocation(given);
  const declaration = symbol?.valueDeclaration;
  if (declaration === undefined || !ts.isParameter(declaration)) return false;
  if (declaration.type === undefined || !ts.isTypeLiteralNode(declaration.type)) return false;
  let uses = 0;
  const count = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && node !== declaration.name && checker.getSymbolAtLocation(node) === symbol) uses += 1;
    ts.forEachChild(node, count);
  };
  count(declaration.parent);
  return uses === 1;
}
