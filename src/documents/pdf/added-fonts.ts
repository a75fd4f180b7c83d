/**
 * Fonts that an installation adds in RECKONER_HOME/templates/fonts, for scripts that the program's own lack, such as
 * Japanese. A document records their hashes, and is rendered again with exactly these. Right-to-left scripts are not
 * supported: their words would be in the wrong order.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { create, Font } from 'fontkit';
import { hasGlyph, STAND_INS, Weight } from './fonts.ts';

/** Serializable, because it is passed to the threads that render. */
export type AddedFont = Readonly<{
  path: string;
  sha256: string;
}>;

const FONT_FILE = /\.(ttf|otf|ttc|otc|woff2?)$/i;

const listed = new Map<string, Readonly<{ changed: string; fonts: readonly AddedFont[] }>>();

/** The fonts of a folder by name; none if the folder does not exist. Files that are not fonts are skipped. */
export function addedFontsIn(folder: string): readonly AddedFont[] {
  const names = statSync(folder, { throwIfNoEntry: false })?.isDirectory()
    ? readdirSync(folder)
        .filter((name) => FONT_FILE.test(name))
        .sort()
    : [];
  const files = names.map((name) => ({ path: join(folder, name), ...statSync(join(folder, name)) }));
  const changed = files.map(({ path, size, mtimeMs }) => `${path} ${size} ${mtimeMs}`).join('\n');
  const known = listed.get(folder);
  if (known?.changed === changed) return known.fonts;
  const fonts = files.flatMap(({ path }) => {
    const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
    return isFont({ path, sha256 }) ? [{ path, sha256 }] : [];
  });
  listed.set(folder, { changed, fonts });
  return fonts;
}

// --- Parsed fonts ---

type ParsedFont = Readonly<{
  open: () => Font;
  /** Used only for queries. When rendering, each document has its own font object (see fonts.ts). */
  font: Font;
  weight: Weight;
}>;

const parsed = new Map<string, ParsedFont>();

/** Weights from semibold up, in the font's own scale. */
const BOLD_FROM = 600;

function parsedFont({ path, sha256 }: AddedFont) {
  const known = parsed.get(sha256);
  if (known !== undefined) return known;
  const data = readFileSync(path);
  if (createHash('sha256').update(data).digest('hex') !== sha256) throw new Error(`${path} has changed meanwhile`);
  const font = firstOf(data);
  const open = () => {
    const own = firstOf(data);
    own._tables = font._tables;
    return own;
  };
  const weight = (font['OS/2']?.usWeightClass ?? 0) >= BOLD_FROM ? ('bold' as const) : ('regular' as const);
  const made = { open, font, weight };
  parsed.set(sha256, made);
  return made;
}

/** The font of a file; for a collection, the first font. */
function firstOf(data: Uint8Array) {
  const made = create(data);
  return made.fonts?.[0] ?? made;
}

function isFont(file: AddedFont) {
  try {
    const { font } = parsedFont(file);
    font.createSubset();
    return font.unitsPerEm > 0;
  } catch {
    return false;
  }
}

export const openAddedFont = (font: AddedFont) => parsedFont(font).open();

// --- Fonts of characters ---

let inUse: readonly AddedFont[] = [];

/** Renders or queries with these fonts in addition to the program's own. `work` must be synchronous. */
export function withAddedFonts<Result>(fonts: readonly AddedFont[], work: () => Result) {
  const before = inUse;
  // Sorted by hash, because a document records the hashes and not the names.
  inUse = [...fonts].sort((one, other) => (one.sha256 < other.sha256 ? -1 : 1));
  try {
    return work();
  } finally {
    inUse = before;
  }
}

/** Hebrew, Arabic, Syriac, Thaana, N'Ko and their presentation forms. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

const prints = (font: AddedFont, codePoint: number) => parsedFont(font).font.hasGlyphForCodePoint(codePoint);

/** The font that prints a character, preferably in this weight. */
function fontAmong(fonts: readonly AddedFont[], codePoint: number, weight: Weight) {
  if (STAND_INS.has(codePoint) || RIGHT_TO_LEFT.test(String.fromCodePoint(codePoint))) return undefined;
  const able = fonts.filter((font) => prints(font, codePoint));
  return able.find((font) => parsedFont(font).weight === weight) ?? able[0];
}

export const isPrintable = (codePoint: number) =>
  hasGlyph(codePoint) || fontAmong(inUse, codePoint, 'regular') !== undefined;

export function fontsNeeded(texts: readonly string[], fonts: readonly AddedFont[]): readonly AddedFont[] {
  if (fonts.length === 0) return [];
  const needed = new Set<AddedFont>();
  for (const character of new Set(texts.join('').normalize('NFC'))) {
    const codePoint = character.codePointAt(0) as number;
    if (hasGlyph(codePoint)) continue;
    for (const weight of ['regular', 'bold'] as const) {
      const font = fontAmong(fonts, codePoint, weight);
      if (font !== undefined) needed.add(font);
    }
  }
  return fonts.filter((font) => needed.has(font));
}

/** A part of a text in one font. If `font` is undefined, it is the program's own. */
type Stretch = Readonly<{
  text: string;
  font: AddedFont | undefined;
}>;

/** The stretches of a text. A combining mark stays with the preceding character. */
export function stretchesOf(text: string, weight: Weight): readonly Stretch[] {
  if (inUse.length === 0) return [{ text, font: undefined }];
  const found: { text: string; font: AddedFont | undefined }[] = [];
  for (const character of text) {
    const codePoint = character.codePointAt(0) as number;
    const last = found.at(-1);
    const follows = last?.font !== undefined && /^\p{M}$/u.test(character) && prints(last.font, codePoint);
    const font = follows ? last.font : hasGlyph(codePoint) ? undefined : fontAmong(inUse, codePoint, weight);
    if (last !== undefined && last.font === font) last.text += character;
    else found.push({ text: character, font });
  }
  return found;
}
