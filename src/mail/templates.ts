/**
 * The templates of e-mails. Each kind has a subject and an HTML text, from which the plain text is made. Refusals:
 * settings_invalid (an unusable template), file_unreadable.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Handlebars from 'handlebars';
import { compile } from 'html-to-text';
import { Environment } from '#config/environment';
import { overridesIn } from '#config/overrides';
import { Refusal, reasonOf, refuse } from '#errors/refusals';
import { packageRoot } from '#package';
import { EmailKind, OTHER_EMAIL_KINDS } from './kinds.ts';
import { EmailText } from './message.ts';
import { oneLine } from './text.ts';

/** The `txt` of a kind is optional. */
type Channel = 'subject' | 'txt' | 'html';
const CHANNELS: readonly Channel[] = ['subject', 'txt', 'html'];

/** The kinds of the outbox, and the two e-mails that bypass it. */
type TemplateName = EmailKind | 'sign_in' | 'partner_sign_in';
const NAMES: readonly TemplateName[] = [
  ...(['sign_in', 'partner_sign_in', 'invoice', 'credit_note', 'statement'] as const),
  ...OTHER_EMAIL_KINDS,
];

/** Fields of every kind, in addition to its own. */
export type EmailView = Readonly<{
  sandbox: boolean;
  issuer: Readonly<{
    name: string;
    address: string;
    email: string;
    phone: string;
    taxId: string;
  }>;
}>;

export interface EmailTemplates {
  /** Refuses if a template of this kind, or a part of it, is unusable. */
  render<View extends EmailView>(kind: TemplateName, view: View): EmailText;
}

type Render = (view: object) => string;

/** The defaults, set explicitly because Handlebars otherwise warns when a template accesses inherited properties. */
const OWN_FIELDS_ONLY = { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false };

/** The installation's own templates, then the shipped ones. */
export const templatesOf = ({ home }: Environment): EmailTemplates =>
  loadTemplates([join(home, 'templates', 'email'), join(packageRoot, 'templates', 'email')]);

const STYLES = 'styles.css';

/**
 * Reads the templates of several folders; of files with the same name, that of the first. An unusable template is
 * refused only when an e-mail needs it, so only e-mails of its kind are held.
 */
export function loadTemplates(folders: readonly string[]): EmailTemplates {
  const files = new Map<string, string>();
  for (const folder of folders) {
    for (const name of overridesIn(folder).filter((each) => each.endsWith('.hbs') || each === STYLES)) {
      if (!files.has(name)) files.set(name, join(folder, name));
    }
  }
  const compiled = new Map(CHANNELS.map((channel) => [channel, compileChannel(channel, files, folders)]));
  const rendered = (kind: TemplateName, channel: Channel, view: object) => {
    const template = compiled.get(channel)?.get(kind);
    if (template === undefined) throw new TypeError(`there is no template ${kind}.${channel}`);
    return template(view);
  };
  return {
    render(kind, view) {
      const words = oneLine(rendered(kind, 'subject', { ...view, subject: '' }));
      // The mark is set here and not in a template, so that no overriding template can make a test look like a bill.
      const subject = view.sandbox ? `[SANDBOX] ${words}` : words;
      const named = { ...view, subject, plain: false };
      const text = compiled.get('txt')?.has(kind)
        ? rendered(kind, 'txt', named)
        : plainText(rendered(kind, 'html', { ...named, plain: true }));
      return { subject, text, html: rendered(kind, 'html', named) };
    },
  };
}

const block = (selector: string, leadingLineBreaks: number, trailingLineBreaks: number) => ({
  ...{ selector, format: 'block', options: { leadingLineBreaks, trailingLineBreaks } },
});
const textOf = compile({
  wordwrap: 78,
  baseElements: { selectors: ['body'] },
  selectors: [
    { selector: 'a', options: { hideLinkHrefIfSameAsText: true, linkBrackets: false } },
    { selector: 'h2', options: { leadingLineBreaks: 2, trailingLineBreaks: 1 } },
    { selector: 'ul', options: { itemPrefix: '- ' } },
    ...[block('h1', 2, 1), block('p.subtitle', 1, 1), block('p.parties', 1, 2)],
    ...['div.warning', 'div.sandbox', 'div.panel'].map((selector) => block(selector, 2, 2)),
  ],
});

/** Writes each row of a table as a line, `label: value`; what is below the label, and its link, follow on their own lines. */
const plainText = (html: string) =>
  `${textOf(
    html
      .replace(
        /<tr>\s*<th[^>]*>(.*?)(<br>.*?)?<\/th>\s*<td[^>]*>(.*?)<\/td>\s*<\/tr>/gs,
        (_, label: string, below: string | undefined, value: string) => {
          const [, link] = /href="([^"]*)"/.exec(label) ?? [];
          return `<div>${below ? '- ' : ''}${label.replace(/<\/?a\b[^>]*>/g, '')}: ${value}${below ?? ''}${link ? `<br>${link}` : ''}</div>`;
        },
      )
      .replace(/<div class="(?:warning|sandbox)"[^>]*>/g, '$&*** '),
  )}\n`;

/** Its partials are the files whose names begin with `_`. */
function compileChannel(
  channel: Channel,
  files: ReadonlyMap<string, string>,
  folders: readonly string[],
): ReadonlyMap<TemplateName, Render> {
  // Separate, because Handlebars compiles a partial by the rules of the first template that includes it. A text must
  // never use one that was compiled for HTML, nor HTML one for text.
  const environment = Handlebars.create();
  for (const helper of ['log', 'lookup', 'with']) environment.unregisterHelper(helper);
  const options = {
    // Subjects and plain texts are not markup.
    noEscape: channel !== 'html',
    // Templates contain no logic: only the built-in if, each and unless are allowed, and no registered helpers.
    knownHelpersOnly: true,
    // An unknown field is an error, not an empty space where an amount should be.
    strict: true,
  };
  const ending = `.${channel}.hbs`;
  const styles = channel === 'html' ? stylesOf(pathOf(files, STYLES, folders)) : undefined;
  const read = (path: string) => {
    const source = readTemplate(path);
    if (source instanceof Refusal || styles === undefined) return source;
    return styles instanceof Refusal ? styles : withStyles(source, styles);
  };
  for (const [name, path] of files) {
    if (name.startsWith('_') && name.endsWith(ending)) {
      const source = read(path);
      const partial = source instanceof Refusal ? refusing(source) : source;
      environment.registerPartial(name.slice(0, -ending.length), partial);
    }
  }
  return new Map(
    NAMES.filter((kind) => channel !== 'txt' || files.has(`${kind}${ending}`)).map((kind) => {
      const path = pathOf(files, `${kind}${ending}`, folders);
      const source = read(path);
      if (source instanceof Refusal) return [kind, refusing(source)];
      const render = environment.compile<object>(source, options);
      return [kind, (view: object) => used(path, () => render(view, OWN_FIELDS_ONLY))];
    }),
  );
}

function pathOf(files: ReadonlyMap<string, string>, name: string, folders: readonly string[]) {
  const path = files.get(name);
  if (path === undefined) throw refuse('file_unreadable', { file: name, reason: `is not in ${folders.join(', ')}` });
  return path;
}

const refusing = (refusal: Refusal) => () => {
  throw refusal;
};

/** Read once, so that one run does not mix two versions. */
const readTemplate = (path: string) =>
  readOnce(path, (source) => {
    used(path, () => Handlebars.parse(source));
    return source;
  });

/** Declarations by property, for each tag (`p`) and class (`.muted`). */
type Styles = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** Selectors are single tags and classes. A later rule overrides an earlier one. */
const stylesOf = (path: string) =>
  readOnce(path, (text): Styles => {
    const styles = new Map<string, Map<string, string>>();
    for (const [, selectors = '', body = ''] of text.replace(/\/\*[\s\S]*?\*\//g, '').matchAll(/([^{}]+)\{([^{}]*)\}/g))
      for (const selector of selectors.split(',').map((each) => each.trim()))
        styles.set(selector, new Map([...(styles.get(selector) ?? []), ...declarationsIn(body)]));
    return styles;
  });

const declarationsIn = (text: string): [string, string][] =>
  text.split(';').flatMap((each) => {
    const [, property, value] = /^\s*([^:]+?)\s*:\s*([\s\S]*?)\s*$/.exec(each) ?? [];
    return property && value ? [[property, value.replaceAll('"', "'").replace(/,\s+/g, ',')]] : [];
  });

/**
 * Copies the rules of the tag and the classes of each element into its style, because many mail programs ignore style
 * sheets. The element's own style comes last.
 */
const withStyles = (html: string, styles: Styles) =>
  html.replace(/<(\w+)((?: [\w-]+="[^"]*")*)/g, (_, tag: string, attributes: string) => {
    const attribute = (name: string) => new RegExp(` ${name}="([^"]*)"`).exec(attributes)?.[1] ?? '';
    const classes = attribute('class').split(' ');
    const rules = [tag, ...classes.map((each) => `.${each}`)].flatMap((each) => [...(styles.get(each) ?? [])]);
    const style = new Map([...rules, ...declarationsIn(attribute('style'))]);
    const written = [...style].map(([property, value]) => `${property}:${value}`).join(';');
    return `<${tag}${attributes.replace(/ style="[^"]*"/, '')}${written === '' ? '' : ` style="${written}"`}`;
  });

/** What is read from a file, or why it cannot be used. */
function readOnce<T>(path: string, read: (text: string) => T) {
  try {
    return read(readFileSync(path, 'utf8'));
  } catch (error) {
    return error instanceof Refusal ? error : refuse('file_unreadable', { file: path, reason: reasonOf(error) }, error);
  }
}

/** Reports a mistake in a template with the name of its file, or of the partial that contains the mistake. */
function used<T>(file: string, use: () => T) {
  try {
    return use();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw refuse('settings_invalid', { file, problems: [{ path: '', reason: reasonOf(error) }] }, error);
  }
}
