/**
 * The templates of e-mails: for each kind a subject, a plain text and an HTML text, which have words and layout but no
 * logic. Refusals: settings_invalid (a template that cannot be used), file_unreadable.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Handlebars from 'handlebars';
import type { Environment } from '../config/environment.ts';
import { overridesIn } from '../config/overrides.ts';
import { Refusal, reasonOf, refuse } from '../errors/refusals.ts';
import { packageRoot } from '../package.ts';
import { type EmailKind, OTHER_EMAIL_KINDS } from './kinds.ts';
import type { EmailText } from './message.ts';
import { oneLine } from './text.ts';

type Channel = 'subject' | 'txt' | 'html';
const CHANNELS: readonly Channel[] = ['subject', 'txt', 'html'];

/** The kinds of the outbox, and the two e-mails with a sign-in link, which do not go through it. */
type TemplateName = EmailKind | 'sign_in' | 'partner_sign_in';
const NAMES: readonly TemplateName[] = [
  ...(['sign_in', 'partner_sign_in', 'invoice', 'credit_note', 'statement'] as const),
  ...OTHER_EMAIL_KINDS,
];

/** The fields a template may name. Every kind has these and its own; a field that does not exist is an error. */
export interface EmailView {
  readonly sandbox: boolean;
  readonly issuer: {
    readonly name: string;
    readonly address: string;
    readonly email: string;
    readonly phone: string;
    readonly taxId: string;
  };
}

/** The templates in use, each compiled once. */
export interface EmailTemplates {
  /** Refuses if a template of this kind, or a part of it, cannot be used. */
  render<View extends EmailView>(kind: TemplateName, view: View): EmailText;
}

type Render = (view: object) => string;

/**
 * Handlebars' default, set explicitly because Handlebars otherwise prints a warning when a template tries to access
 * more.
 */
const OWN_FIELDS_ONLY = { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false };

/** The templates of this installation: its own under RECKONER_HOME, then those that are shipped. */
export const templatesOf = ({ home }: Environment): EmailTemplates =>
  loadTemplates([join(home, 'templates', 'email'), join(packageRoot, 'templates', 'email')]);

/**
 * Reads the templates of several folders; if several folders have a file, the first folder's is used. Missing folders
 * are skipped, because overriding is optional. An unusable template is refused only when an e-mail needs it, so it
 * holds only the e-mails of its kind.
 */
export function loadTemplates(folders: readonly string[]): EmailTemplates {
  const files = new Map<string, string>();
  for (const folder of folders) {
    for (const name of overridesIn(folder).filter((each) => each.endsWith('.hbs'))) {
      if (!files.has(name)) files.set(name, join(folder, name));
    }
  }
  const compiled = new Map(CHANNELS.map((channel) => [channel, compileChannel(channel, files, folders)]));
  const rendered = (kind: TemplateName, channel: Channel, view: object): string => {
    const template = compiled.get(channel)?.get(kind);
    if (template === undefined) throw new TypeError(`there is no template ${kind}.${channel}`);
    return template(view);
  };
  return {
    render(kind, view) {
      const words = oneLine(rendered(kind, 'subject', { ...view, subject: '' }));
      // The mark is set here and not in a template, so that no override lets a test be mistaken for a bill.
      const subject = view.sandbox ? `[SANDBOX] ${words}` : words;
      const named = { ...view, subject };
      return { subject, text: rendered(kind, 'txt', named), html: rendered(kind, 'html', named) };
    },
  };
}

/** The templates of one channel with its partials, which are the files whose names begin with `_`. */
function compileChannel(
  channel: Channel,
  files: ReadonlyMap<string, string>,
  folders: readonly string[],
): ReadonlyMap<TemplateName, Render> {
  // An environment for each channel: a partial is compiled by the rules of the first template that includes it, and
  // text must never use what was compiled for HTML, or the reverse.
  const environment = Handlebars.create();
  // A template only lays out an e-mail: it looks nothing up and does not log.
  for (const helper of ['log', 'lookup', 'with']) environment.unregisterHelper(helper);
  const options = {
    // HTML is escaped. A subject and a plain text are not markup, and escaping would only garble them.
    noEscape: channel !== 'html',
    // No logic: only the built-in if, each and unless, and no registered helpers.
    knownHelpersOnly: true,
    // A field that does not exist is an error, not an empty space where an amount should be.
    strict: true,
  };
  const ending = `.${channel}.hbs`;
  for (const [name, path] of files) {
    if (name.startsWith('_') && name.endsWith(ending)) {
      environment.registerPartial(name.slice(0, -ending.length), partial(path));
    }
  }
  return new Map(
    NAMES.map((kind) => {
      const name = `${kind}${ending}`;
      const path = files.get(name);
      if (path === undefined) {
        throw refuse('file_unreadable', { file: name, reason: `is not in ${folders.join(', ')}` });
      }
      const source = readTemplate(path);
      if (source instanceof Refusal) return [kind, refusing(source)];
      const render = environment.compile<object>(source, options);
      return [kind, (view: object) => used(path, () => render(view, OWN_FIELDS_ONLY))];
    }),
  );
}

/**
 * What Handlebars uses as a partial: its source or, if that is unusable, a function that refuses and names the file.
 */
function partial(path: string): string | Handlebars.TemplateDelegate {
  const source = readTemplate(path);
  return source instanceof Refusal ? refusing(source) : source;
}

const refusing = (refusal: Refusal) => (): never => {
  throw refusal;
};

/** A template's source, or why it cannot be used. It is read once, so that one run does not use two versions. */
function readTemplate(path: string): string | Refusal {
  try {
    const source = readFileSync(path, 'utf8');
    used(path, () => Handlebars.parse(source));
    return source;
  } catch (error) {
    return error instanceof Refusal ? error : refuse('file_unreadable', { file: path, reason: reasonOf(error) }, error);
  }
}

/** Reports a mistake in a template with the name of its file, or of the partial that contains it. */
function used<T>(file: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw refuse('settings_invalid', { file, problems: [{ path: '', reason: reasonOf(error) }] }, error);
  }
}
