/** The prose of a file, which is the comments and texts that people read. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript-api';
import { ROOT } from './modules.ts';

/** Replaces everything that is not prose, so that no phrase can extend across it. */
export const CODE = '\u0001';

type Range = readonly [start: number, end: number];

const TEXTS: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.StringLiteral,
  ts.SyntaxKind.NoSubstitutionTemplateLiteral,
  ts.SyntaxKind.TemplateHead,
  ts.SyntaxKind.TemplateMiddle,
  ts.SyntaxKind.TemplateTail,
  ts.SyntaxKind.JsxText,
]);

/** Comments lie between a token and the one before it. */
function inTypeScript(file: string, text: string): Range[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const ranges: Range[] = [];
  const visit = (node: ts.Node): void => {
    if (node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode) return;
    const children = node.getChildren();
    if (children.length > 0) {
      for (const child of children) visit(child);
      return;
    }
    if (node.getStart() > node.pos) ranges.push([node.pos, node.getStart()]);
    if (TEXTS.has(node.kind)) ranges.push([node.getStart(), node.end]);
  };
  visit(source);
  return ranges;
}

const matches = (text: string, pattern: RegExp): Range[] =>
  [...text.matchAll(pattern)].map((match) => [match.index, match.index + match[0].length]);

const SQL = /--.*|'(?:[^']|'')*'/g;
const PYTHON = /"""[\s\S]*?"""|#.*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g;
/** Code in Markdown, expressions and tags in templates. */
const NOT_PROSE = /^\s*```[\s\S]*?^\s*```|`[^`\n]+`|\{\{[^}]*\}\}|<[^>\n]*>/gm;
/** What begins a line of a comment, and what joins the parts of a text. */
const MARKS = /^\s*(?:\/?\*+|\/\/|--|#+|>)|\*\/|["`+]|(?<!\w)'|'(?!\w)/gm;

/** The text of a file with everything else blotted out. Offsets and lines are those of the file. */
export function proseOf(file: string): string {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const only = (ranges: readonly Range[]): string => {
    const kept = text.replace(/[^\s"'`+]/g, CODE).split('');
    for (const [start, end] of ranges) for (let at = start; at < end; at++) kept[at] = text.charAt(at);
    return kept.join('');
  };
  const prose = /\.(tsx?|m?js)$/.test(file)
    ? only(inTypeScript(file, text))
    : file.endsWith('.sql')
      ? only(matches(text, SQL))
      : file.endsWith('.py')
        ? only(matches(text, PYTHON))
        : text.replace(NOT_PROSE, (code) => code.replace(/\S/g, CODE));
  return prose.replace(MARKS, (mark) => mark.replace(/\S/g, ' '));
}
