/**
 * Evaluates expressions of the program without running it, as far as the texts of its SQL need: constants, template
 * literals, helpers that return text, and parameters by the calls of their function. Where an expression can have several
 * values, all of them are given.
 */
import ts from 'typescript-api';

export class Unknown extends Error {}

type Closure = { readonly node: ts.FunctionLikeDeclaration; readonly env: Env };
export type Value = string | number | boolean | null | undefined | readonly Value[] | Closure | Obj;
interface Obj {
  readonly fields: ReadonlyMap<string, Value>;
}
/** The values of the parameters and destructured names in scope. */
export type Env = ReadonlyMap<ts.Symbol, () => readonly Value[]>;

const MOST = 200;
/** Values of types of our own that only the running program has. */
const SAMPLES: Readonly<Record<string, string>> = { Month: '2026-07' };
const isClosure = (value: Value): value is Closure => typeof value === 'object' && value !== null && 'node' in value;
const isObject = (value: Value): value is Obj => typeof value === 'object' && value !== null && 'fields' in value;

export class Evaluator {
  readonly #checker: ts.TypeChecker;
  /** The calls of each function of the program. */
  readonly calls = new Map<ts.Symbol, ts.CallExpression[]>();
  readonly #constants = new Map<ts.Node, readonly Value[]>();
  #depth = 0;

  constructor(program: ts.Program, files: readonly ts.SourceFile[]) {
    this.#checker = program.getTypeChecker();
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node)) {
        const symbol = this.symbolOf(node.expression);
        if (symbol) this.calls.set(symbol, [...(this.calls.get(symbol) ?? []), node]);
      }
      ts.forEachChild(node, visit);
    };
    for (const file of files) visit(file);
  }

  symbolOf(node: ts.Node): ts.Symbol | undefined {
    const symbol = this.#checker.getSymbolAtLocation(node);
    return symbol && symbol.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  /** One environment for each call of a function: its parameters as that call gives them. */
  contextsOf(node: ts.Node): Env[] {
    const owner = ts.findAncestor(node, ts.isFunctionLike) as ts.FunctionLikeDeclaration | undefined;
    if (owner === undefined) return [new Map()];
    const outer = owner.parent ? this.contextsOf(owner.parent) : [new Map()];
    const calls = this.callsOf(owner);
    if (calls.length === 0) return outer;
    return outer.flatMap((env) => calls.map((call) => new Map([...env, ...this.contextOf(owner, call)])));
  }

  /** The parameters of a function as one call gives them. */
  contextOf(owner: ts.SignatureDeclaration, call: ts.CallExpression): Env {
    return this.#bind(owner, this.#given(owner, call), new Map());
  }

  callsOf(owner: ts.SignatureDeclaration): readonly ts.CallExpression[] {
    const named = owner.name ?? (ts.isVariableDeclaration(owner.parent) ? owner.parent.name : undefined);
    const symbol = named && this.symbolOf(named);
    return (symbol && this.calls.get(symbol)) || [];
  }

  #given = (owner: ts.SignatureDeclaration, call: ts.CallExpression) =>
    owner.parameters.map((parameter, index) => () => {
      const given = call.arguments[index];
      if (given) return this.evaluate(given, new Map());
      return parameter.initializer ? this.evaluate(parameter.initializer, new Map()) : [undefined];
    });

  #bind(owner: ts.SignatureDeclaration, given: readonly (() => readonly Value[])[], env: Env): Env {
    const bound = new Map(env);
    for (const [index, parameter] of owner.parameters.entries()) {
      const own = given[index];
      const none = ts.isObjectBindingPattern(parameter.name) ? { fields: new Map<string, Value>() } : undefined;
      const values = own ? () => own().map((value) => (value === undefined ? none : value)) : () => [none];
      this.#bindName(parameter.name, values, bound);
    }
    return bound;
  }

  #bindName(name: ts.BindingName, values: () => readonly Value[], bound: Map<ts.Symbol, () => readonly Value[]>): void {
    if (ts.isIdentifier(name)) {
      const symbol = this.#checker.getSymbolAtLocation(name);
      if (symbol) bound.set(symbol, values);
      return;
    }
    for (const [index, element] of name.elements.entries()) {
      if (ts.isOmittedExpression(element)) continue;
      const key = (element.propertyName ?? element.name).getText();
      this.#bindName(
        element.name,
        () => {
          const { initializer } = element;
          return values().flatMap((value) => {
            const own = ts.isArrayBindingPattern(name)
              ? at(value, index)
              : hasField(value, key)
                ? fieldOf(value, key)
                : undefined;
            return own === undefined && initializer ? this.evaluate(initializer, bound) : [own];
          });
        },
        bound,
      );
    }
  }

  /** All values that an expression may have. Throws Unknown if they cannot be determined. */
  evaluate(node: ts.Expression, env: Env): readonly Value[] {
    this.#depth += 1;
    try {
      if (this.#depth > 200) throw new Unknown(`too deep: ${node.getText().slice(0, 80)}`);
      const values = this.#evaluate(node, env);
      if (values.length > MOST) throw new Unknown(`too many values: ${node.getText().slice(0, 80)}`);
      return unique(values);
    } finally {
      this.#depth -= 1;
    }
  }

  #evaluate(node: ts.Expression, env: Env): readonly Value[] {
    if (
      ts.isParenthesizedExpression(node) ||
      ts.isAsExpression(node) ||
      ts.isSatisfiesExpression(node) ||
      ts.isNonNullExpression(node)
    ) {
      return this.evaluate(node.expression, env);
    }
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [node.text];
    if (ts.isNumericLiteral(node)) return [Number(node.text)];
    if (node.kind === ts.SyntaxKind.TrueKeyword) return [true];
    if (node.kind === ts.SyntaxKind.FalseKeyword) return [false];
    if (node.kind === ts.SyntaxKind.NullKeyword) return [null];
    if (ts.isTemplateExpression(node)) {
      return node.templateSpans.reduce<readonly Value[]>(
        (texts, span) =>
          texts.flatMap((text) =>
            this.evaluate(span.expression, env).map((each) => `${text}${textOf(each, span)}${span.literal.text}`),
          ),
        [node.head.text],
      );
    }
    if (ts.isIdentifier(node)) return this.#identifier(node, env);
    if (ts.isArrowFunction(node) || ts.isFunctionExpression(node)) return [{ node, env }];
    if (ts.isConditionalExpression(node)) {
      return this.#condition(node.condition, env).flatMap((holds) =>
        this.evaluate(holds ? node.whenTrue : node.whenFalse, env),
      );
    }
    if (ts.isBinaryExpression(node)) return this.#binary(node, env);
    if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
      return this.#condition(node.operand, env).map((holds) => !holds);
    }
    if (ts.isTypeOfExpression(node)) return this.evaluate(node.expression, env).map((value) => typeof value);
    if (ts.isObjectLiteralExpression(node)) return this.#object(node, env);
    if (ts.isArrayLiteralExpression(node)) {
      return node.elements.reduce<readonly (readonly Value[])[]>(
        (lists, element) => {
          const values = this.evaluate(ts.isSpreadElement(element) ? element.expression : element, env);
          return lists.flatMap((list) =>
            values.map((value) => [...list, ...(ts.isSpreadElement(element) ? listOf(value) : [value])]),
          );
        },
        [[]],
      );
    }
    if (ts.isPropertyAccessExpression(node)) {
      const owner = this.symbolOf(node.expression);
      if (owner && owner.flags & ts.SymbolFlags.Module)
        return this.#symbolValue(this.symbolOf(node), node.name as ts.Identifier, env);
      try {
        return this.evaluate(node.expression, env).map((value) => fieldOf(value, node.name.text));
      } catch (error) {
        return this.#byType(node, error);
      }
    }
    if (ts.isElementAccessExpression(node)) {
      const keys = this.evaluate(node.argumentExpression, env);
      return this.evaluate(node.expression, env).flatMap((value) =>
        keys.map((key) => (typeof key === 'number' ? at(value, key) : fieldOf(value, String(key)))),
      );
    }
    if (ts.isCallExpression(node)) {
      try {
        return this.#call(node, env);
      } catch (error) {
        return this.#byType(node, error);
      }
    }
    // Lists of pairs will do for what the program does with its constant maps.
    if (ts.isNewExpression(node) && /^(Map|Set)$/.test(node.expression.getText()) && node.arguments?.[0]) {
      return this.evaluate(node.arguments[0], env);
    }
    if (ts.isRegularExpressionLiteral(node)) return [node.text];
    return this.#byType(node, new Unknown(node.getText().slice(0, 80)));
  }

  /** If a value cannot be determined but its type is number, boolean or some texts, the values of the type are used. */
  #byType(node: ts.Expression, cause: unknown): readonly Value[] {
    if (!(cause instanceof Unknown)) throw cause;
    const type = this.#checker.getTypeAtLocation(node);
    const sample = SAMPLES[this.#checker.typeToString(type)];
    if (sample !== undefined) return [sample];
    const parts = type.isUnion() ? type.types : [type];
    const values = parts.map((part): Value => {
      if (part.isStringLiteral() || part.isNumberLiteral()) return part.value;
      if (part.flags & ts.TypeFlags.Number) return 1;
      if (part.flags & ts.TypeFlags.Null) return null;
      if (part.flags & ts.TypeFlags.Undefined) return undefined;
      if (part.flags & ts.TypeFlags.BooleanLiteral) return this.#checker.typeToString(part) === 'true';
      throw cause;
    });
    return values;
  }

  #condition(node: ts.Expression, env: Env): readonly boolean[] {
    try {
      return unique(this.evaluate(node, env).map(Boolean)) as boolean[];
    } catch (error) {
      if (!(error instanceof Unknown)) throw error;
      return [true, false];
    }
  }

  #binary(node: ts.BinaryExpression, env: Env): readonly Value[] {
    const operator = node.operatorToken.kind;
    if (operator === ts.SyntaxKind.QuestionQuestionToken) {
      return this.evaluate(node.left, env).flatMap((left) => (left == null ? this.evaluate(node.right, env) : [left]));
    }
    if (operator === ts.SyntaxKind.AmpersandAmpersandToken || operator === ts.SyntaxKind.BarBarToken) {
      const stops = operator === ts.SyntaxKind.BarBarToken;
      return this.#condition(node.left, env).flatMap((holds) =>
        holds === stops ? this.evaluate(node.left, env) : this.evaluate(node.right, env),
      );
    }
    const pairs = this.evaluate(node.left, env).flatMap((left) =>
      this.evaluate(node.right, env).map((right) => [left, right] as const),
    );
    return pairs.map(([left, right]): Value => {
      if (operator === ts.SyntaxKind.PlusToken) {
        return typeof left === 'number' && typeof right === 'number' ? left + right : `${left}${right}`;
      }
      if (operator === ts.SyntaxKind.EqualsEqualsEqualsToken) return left === right;
      if (operator === ts.SyntaxKind.ExclamationEqualsEqualsToken) return left !== right;
      throw new Unknown(node.getText().slice(0, 80));
    });
  }

  /** A field whose value cannot be determined is left out, so only reading it fails. */
  #object(node: ts.ObjectLiteralExpression, env: Env): readonly Value[] {
    let objects: (readonly [string, Value])[][] = [[]];
    for (const property of node.properties) {
      const added = this.#property(property, env);
      objects = objects.flatMap((object) => added.map((fields) => [...object, ...fields]));
      if (objects.length > MOST) throw new Unknown(`too many values: ${node.getText().slice(0, 80)}`);
    }
    return objects.map((fields) => ({ fields: new Map(fields) }));
  }

  #property(property: ts.ObjectLiteralElementLike, env: Env): readonly (readonly (readonly [string, Value])[])[] {
    try {
      if (ts.isSpreadAssignment(property)) {
        return this.evaluate(property.expression, env).map((value) => (isObject(value) ? [...value.fields] : []));
      }
      const { name } = property;
      const key = ts.isStringLiteral(name) ? name.text : name.getText();
      if (ts.isMethodDeclaration(property)) return [[[key, { node: property, env }]]];
      const values = ts.isShorthandPropertyAssignment(property)
        ? this.#symbolValue(this.#checker.getShorthandAssignmentValueSymbol(property), property.name, env)
        : this.evaluate((property as ts.PropertyAssignment).initializer, env);
      return values.map((value) => [[key, value]]);
    } catch (error) {
      if (!(error instanceof Unknown)) throw error;
      return [[]];
    }
  }

  #identifier(node: ts.Identifier, env: Env): readonly Value[] {
    if (node.text === 'undefined') return [undefined];
    return this.#symbolValue(this.symbolOf(node), node, env);
  }

  #symbolValue(given: ts.Symbol | undefined, node: ts.Identifier, env: Env): readonly Value[] {
    const symbol = given && given.flags & ts.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(given) : given;
    const bound = symbol && env.get(symbol);
    if (bound) {
      try {
        return bound();
      } catch (error) {
        return this.#byType(node, error);
      }
    }
    const declaration = symbol?.valueDeclaration;
    if (declaration === undefined) throw new Unknown(node.text);
    if (ts.isFunctionDeclaration(declaration)) return [{ node: declaration, env: new Map() }];
    if (ts.isVariableDeclaration(declaration) && declaration.initializer && isConst(declaration)) {
      const local = ts.findAncestor(declaration, ts.isFunctionLike) !== undefined;
      const known = local ? undefined : this.#constants.get(declaration);
      if (known) return known;
      try {
        const values = this.evaluate(declaration.initializer, env);
        if (!local) this.#constants.set(declaration, values);
        return values;
      } catch (error) {
        return this.#byType(node, error);
      }
    }
    if (ts.isVariableDeclaration(declaration) && ts.isForOfStatement(declaration.parent.parent)) {
      return this.evaluate(declaration.parent.parent.expression, env).flatMap(listOf);
    }
    if (ts.isBindingElement(declaration) && ts.isVariableDeclaration(declaration.parent.parent)) {
      const source = declaration.parent.parent.initializer;
      if (source && ts.isObjectBindingPattern(declaration.parent)) {
        const key = (declaration.propertyName ?? declaration.name).getText();
        try {
          return this.evaluate(source, env).map((value) => fieldOf(value, key));
        } catch (error) {
          return this.#byType(node, error);
        }
      }
    }
    // A parameter without a call in reach: from all calls of its function.
    const parameter = ts.findAncestor(declaration, ts.isParameter);
    if (parameter) {
      try {
        return this.#byType(node, new Unknown(node.text));
      } catch (error) {
        const owner = parameter.parent as ts.SignatureDeclaration;
        const calls = this.callsOf(owner);
        if (calls.length === 0 || !symbol) throw error;
        return calls.flatMap((call) => {
          const values = this.#bind(owner, this.#given(owner, call), new Map()).get(symbol);
          if (!values) throw error;
          return values();
        });
      }
    }
    return this.#byType(node, new Unknown(node.text));
  }

  #call(node: ts.CallExpression, env: Env): readonly Value[] {
    const { expression: callee } = node;
    if (ts.isPropertyAccessExpression(callee)) {
      const method = callee.name.text;
      if (callee.expression.getText() === 'Object' && /^(keys|values|entries)$/.test(method)) {
        return this.evaluate(node.arguments[0] as ts.Expression, env).map((value) => {
          const pairs = isObject(value) ? [...value.fields] : [];
          return method === 'keys'
            ? pairs.map(([key]) => key)
            : method === 'values'
              ? pairs.map(([, each]) => each)
              : pairs;
        });
      }
      if (callee.getText() === 'Object.fromEntries') {
        return this.evaluate(node.arguments[0] as ts.Expression, env).map((pairs) => ({
          fields: new Map(listOf(pairs).map((pair): [string, Value] => [String(at(pair, 0)), at(pair, 1)])),
        }));
      }
      const implemented = METHODS[method];
      if (implemented) {
        const given = node.arguments.map((each) => this.evaluate(each, env)[0]);
        const call = (closure: Value, ...args: Value[]) =>
          this.#apply(
            closure,
            args.map((each) => () => [each]),
          )[0];
        return this.evaluate(callee.expression, env).map((self) => implemented(self, given, call));
      }
    }
    const targets = this.evaluate(callee, env);
    return targets.flatMap((target) =>
      this.#apply(
        target,
        node.arguments.map((each) => () => this.evaluate(each, env)),
      ),
    );
  }

  #apply(target: Value, given: readonly (() => readonly Value[])[]): readonly Value[] {
    if (!isClosure(target)) throw new Unknown('a call of something that is no function of ours');
    const { node } = target;
    const defaults = node.parameters.map(
      (parameter, index) =>
        given[index] ??
        (() => (parameter.initializer ? this.evaluate(parameter.initializer, target.env) : [undefined])),
    );
    const rest = node.parameters.findIndex((parameter) => parameter.dotDotDotToken);
    if (rest >= 0) defaults[rest] = () => [given.slice(rest).map((each) => each()[0])];
    const env = this.#bind(node, defaults, target.env);
    if (!node.body) throw new Unknown('a function without a body');
    if (!ts.isBlock(node.body)) return this.evaluate(node.body as ts.Expression, env);
    const { values } = this.#run(node.body.statements, env);
    if (values.length === 0) throw new Unknown('a function that returns nothing');
    return values;
  }

  /** The values that statements return, and whether what follows them is reached. Constants are looked up when used. */
  #run(statements: readonly ts.Statement[], env: Env): { values: readonly Value[]; goesOn: boolean } {
    const values: Value[] = [];
    for (const statement of statements) {
      let goesOn = true;
      if (ts.isReturnStatement(statement)) {
        if (statement.expression) values.push(...this.evaluate(statement.expression, env));
        goesOn = false;
      } else if (ts.isThrowStatement(statement)) {
        goesOn = false;
      } else if (ts.isBlock(statement)) {
        const inner = this.#run(statement.statements, env);
        values.push(...inner.values);
        goesOn = inner.goesOn;
      } else if (ts.isIfStatement(statement)) {
        const branches = this.#condition(statement.expression, env).map((holds) => {
          const branch = holds ? statement.thenStatement : statement.elseStatement;
          return branch ? this.#run([branch], env) : { values: [], goesOn: true };
        });
        values.push(...branches.flatMap((branch) => branch.values));
        goesOn = branches.some((branch) => branch.goesOn);
      } else if (ts.isSwitchStatement(statement)) {
        throw new Unknown('a switch');
      }
      if (!goesOn) return { values, goesOn };
    }
    return { values, goesOn: true };
  }
}

const isConst = (declaration: ts.VariableDeclaration): boolean =>
  (ts.getCombinedNodeFlags(declaration) & ts.NodeFlags.Const) !== 0 && ts.isIdentifier(declaration.name);

const unique = (values: readonly Value[]): readonly Value[] => (values.length < 2 ? values : [...new Set(values)]);

function textOf(value: Value, node: ts.Node): string {
  if (Array.isArray(value)) return value.map((each) => textOf(each, node)).join(',');
  if (typeof value === 'object' && value !== null) throw new Unknown(`an object in ${node.getText().slice(0, 60)}`);
  return String(value);
}

function listOf(value: Value): readonly Value[] {
  if (Array.isArray(value)) return value;
  throw new Unknown('not a list');
}

const hasField = (value: Value, key: string): boolean =>
  typeof value === 'object' && value !== null && isObject(value) && value.fields.has(key);

const at = (value: Value, index: number): Value => listOf(value)[index];

function fieldOf(value: Value, key: string): Value {
  if (typeof value === 'object' && value !== null && isObject(value) && value.fields.has(key)) {
    return value.fields.get(key);
  }
  if (key === 'length' && (typeof value === 'string' || Array.isArray(value))) return value.length;
  throw new Unknown(`.${key}`);
}

type Apply = (closure: Value, ...args: Value[]) => Value;

const METHODS: Readonly<Record<string, (self: Value, given: readonly Value[], call: Apply) => Value>> = {
  join: (self, [separator]) => listOf(self).join(String(separator ?? ',')),
  map: (self, [closure], call) => listOf(self).map((each, index) => call(closure, each, index)),
  flatMap: (self, [closure], call) => listOf(self).flatMap((each) => call(closure, each)),
  filter: (self, [closure], call) => listOf(self).filter((each) => call(closure, each)),
  includes: (self, [what]) =>
    typeof self === 'string' ? self.includes(String(what)) : listOf(self).includes(what as Value),
  split: (self, [by]) => {
    const [, pattern] = /^\/(.*)\/$/.exec(String(by)) ?? [];
    return String(self).split(pattern === undefined ? String(by) : new RegExp(pattern));
  },
  trim: (self) => String(self).trim(),
  replaceAll: (self, [from, to]) => String(self).replaceAll(String(from), String(to)),
  toUpperCase: (self) => String(self).toUpperCase(),
};
