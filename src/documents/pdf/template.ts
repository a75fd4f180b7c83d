/**
 * The labels and the theme of documents, from `templates/document.json`. Code that names a missing label does not
 * compile.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '#package';
import type shipped from '../../../templates/document.json';

type ShippedTemplate = typeof shipped;
export type Labels = ShippedTemplate['labels'];
export type Color = keyof ShippedTemplate['theme']['colors'];

export type Style = Readonly<{
  font: 'regular' | 'bold';
  /** In points. */
  size: number;
  leading: number;
  color: Color;
}>;

export type Theme = Omit<ShippedTemplate['theme'], 'paper' | 'styles'> &
  Readonly<{
    paper: Readonly<Record<keyof ShippedTemplate['theme']['paper'], [width: number, height: number]>>;
    styles: Readonly<Record<keyof ShippedTemplate['theme']['styles'], Style>>;
  }>;

export type Template = Readonly<{
  labels: Labels;
  theme: Theme;
  /**
   * English names by ISO 3166 code. The JavaScript engine's table would change the bytes of documents with its version.
   */
  countries: Readonly<Record<string, string>>;
}>;

export const readTemplateFile = (...path: string[]): Buffer => readFileSync(join(packageRoot, 'templates', ...path));

let template: Template | undefined;

export function readTemplate(): Template {
  template ??= JSON.parse(readTemplateFile('document.json').toString('utf8')) as Template;
  return template;
}

const PLACEHOLDER = /\{(\w+)\}/;

/** A label with its placeholders replaced. `words` converts the text between placeholders. */
export function filledWith<T>(label: string, values: Readonly<Record<string, T>>, words: (text: string) => T) {
  // Splitting by a pattern with a group gives words and placeholders in turn.
  return label.split(PLACEHOLDER).map((part, index) => {
    if (index % 2 === 0) return words(part);
    const value = values[part];
    if (value === undefined) throw new Error(`templates/document.json: {${part}} in '${label}' has no value`);
    return value;
  });
}

export function fill(label: string, values: Readonly<Record<string, string>>) {
  return filledWith(label, values, (words) => words).join('');
}
