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
    if (!['query', 'queryOne', 'execute'].includes(symbol.name)) continue;
    for (const call of calls) {
      const file = call.getSourceFile();
      if (file.fileName === home) continue;
      const place = `${relative(ROOT, file.fileName)}:${file.getLineAndCharacterOfPosition(call.getStart()).line + 1}`;
      const source = call.arguments[1]?.getText() ?? '';
      try {
        for (const { env, row } of rowsOf(checker, evaluator, call)) {
          const texts = textsOf(evaluator, call, env);
          asked.push({
            place,
            source,
            texts,
            row: symbol.name === 'execute' ? undefined : row,
            bindings: bindingsOf(checker, call),
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

function textsOf(evaluator: Evaluator, call: ts.CallExpression, env: Env): string[] {
  const sql = call.arguments[1];
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
  if (row === undefined || row.flags & (ts.TypeFlags.Unknown | ts.TypeFlags.Any)) return [none];
  // Columns of any name, as a file of rows has them.
  const parts = row.isIntersection() ? row.types : [row];
  if (parts.some((part) => part.getStringIndexType())) return [none];
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

function propertiesOf(checker: ts.TypeChecker, row: ts.Type): ReadonlyMap<string, Property> {
  return new Map(
    checker.getPropertiesOfType(row).map((symbol) => {
      const type = checker.getTypeOfSymbol(symbol);
      const parts = type.isUnion() ? type.types : [type];
      const kinds = new Set(parts.filter((part) => !isAbsent(part)).map((part) => kindOf(checker, part)));
      const [kind = 'any'] = kinds;
      return [
        symbol.name,
        {
          kind: kinds.size > 1 ? 'any' : kind,
          nullable: parts.some((part) => part.flags & (ts.TypeFlags.Null | ts.TypeFlags.Any | ts.TypeFlags.Unknown)),
          optional: (symbol.flags & ts.SymbolFlags.Optional) !== 0,
        },
      ];
    }),
  );
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
