/** Every remedy in the source: actions with the fields of their input, and commands. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript-api';

const ROOT = join(import.meta.dirname, '../..');

interface WrittenAction {
  readonly file: string;
  readonly action: string;
  /** The fields, as far as they are written in the source. */
  readonly fields: readonly string[];
}
interface WrittenCommand {
  readonly file: string;
  /** An expression in it is one word, `VALUE`. */
  readonly command: string;
}

export const SOURCES: readonly string[] = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => join('src', name));

export const sourceOf = (file: string): ts.SourceFile =>
  ts.createSourceFile(file, readFileSync(join(ROOT, file), 'utf8'), ts.ScriptTarget.Latest, true);

/** The text of a literal; undefined of anything else. */
export function textOf(node: ts.Node | undefined): string | undefined {
  if (node === undefined) return undefined;
  if (ts.isStringLiteralLike(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return node.head.text + node.templateSpans.map(({ literal }) => `VALUE${literal.text}`).join('');
}

/** The names in an object and in the objects that it spreads. Identifiers are not looked up. */
function namesOf(node: ts.Node | undefined): string[] {
  if (node === undefined) return [];
  if (ts.isParenthesizedExpression(node)) return namesOf(node.expression);
  if (ts.isBinaryExpression(node)) return namesOf(node.right);
  if (!ts.isObjectLiteralExpression(node)) return [];
  return node.properties.flatMap((each) =>
    ts.isSpreadAssignment(each) ? namesOf(each.expression) : [each.name?.getText() ?? ''],
  );
}

export function remediesInSource(): { actions: WrittenAction[]; commands: WrittenCommand[] } {
  const actions: WrittenAction[] = [];
  const commands: WrittenCommand[] = [];
  for (const file of SOURCES) {
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
        const [, second, third] = node.arguments;
        const text = textOf(second);
        if (node.expression.text === 'toDo' && text !== undefined) {
          actions.push({ file, action: text, fields: namesOf(third) });
        }
        if (node.expression.text === 'toRun' && text !== undefined) commands.push({ file, command: text });
      }
      if (ts.isObjectLiteralExpression(node)) {
        const of = (name: string): ts.Node | undefined =>
          node.properties.find(
            (each): each is ts.PropertyAssignment => ts.isPropertyAssignment(each) && each.name.getText() === name,
          )?.initializer;
        const action = textOf(of('action'));
        if (of('label') !== undefined && action !== undefined)
          actions.push({ file, action, fields: namesOf(of('input')) });
      }
      ts.forEachChild(node, visit);
    };
    visit(sourceOf(file));
  }
  return { actions, commands };
}
