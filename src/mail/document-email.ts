/**
 * The letter that carries a document: its subject, its plain text and its HTML, from templates that hold words and
 * layout and no logic. Refusals: settings_invalid (a template that cannot be used), file_unreadable.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Handlebars from 'handlebars';
import type { AchInstructions, WireInstructions } from '../config/instructions.ts';
import type { Address } from '../config/validation.ts';
import { localeOf } from '../documents/locale.ts';
import type { DocumentKind, DocumentSnapshot } from '../documents/snapshot.ts';
import { Refusal, reasonOf, refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import { monthName } from '../month.ts';

export interface Letter {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** What a letter says beyond the snapshot of its document. */
export interface LetterFacts {
  /** Whom to greet; empty where nobody is named. */
  readonly contactName: string;
  readonly attachments: readonly { readonly filename: string; readonly note: string }[];
  /** The rows behind the document are too many to attach. */
  readonly rowsOmitted: boolean;
}

// --- What the templates see -----------------------------------------------------------------------------------------

/**
 * Everything a template may name; `templates/email/README.md` lists the same for those who write their own. Every
 * field is always there and empty where it does not apply, so that a misspelt one is an error and never a silent gap.
 */
interface LetterView {
  readonly subject: string;
  readonly number: string;
  readonly month: string;
  readonly currency: string;
  readonly issuedOn: string;
  readonly sandbox: boolean;
  readonly contactName: string;
  /** A credit against an invoice, and not that of a month. */
  readonly adjustment: boolean;
  /** The invoice that an adjustment credits, and why; both empty on anything else. */
  readonly credits: string;
  readonly reason: string;
  /** An invoice for what the processor did not route, and not for a month's sales. */
  readonly missingShares: boolean;
  /** The void document that this one replaces, or empty. */
  readonly replaces: string;
  /** There is something to pay. */
  readonly due: boolean;
  readonly dueOn: string;
  /** What is due on an invoice; what is owed to the partner on a credit note; our routed share on a statement. */
  readonly amount: string;
  /** These three are empty on a document that stands for no ledger rows, such as a credit against an invoice. */
  readonly enrollments: string;
  readonly spotPrice: string;
  readonly partnerCut: string;
  readonly invoiceAmount: string;
  /** The credit that was applied; empty where there was none. */
  readonly creditApplied: string;
  readonly paymentLink: string;
  readonly paymentReference: string;
  readonly instructionsChanged: boolean;
  readonly ach: AchView | null;
  readonly wire: WireView | null;
  readonly attachments: readonly { readonly filename: string; readonly note: string }[];
  readonly rowsOmitted: boolean;
  readonly issuer: {
    readonly name: string;
    readonly address: string;
    readonly email: string;
    readonly phone: string;
    readonly taxId: string;
  };
  readonly partner: { readonly name: string; readonly purchaseOrder: string };
}

interface AchView {
  readonly accountHolder: string;
  readonly accountHolderAddress: string;
  readonly bankName: string;
  readonly bankAddress: string;
  readonly routingNumber: string;
  readonly accountNumber: string;
  readonly accountType: string;
}

interface WireView {
  readonly accountHolder: string;
  readonly accountHolderAddress: string;
  readonly bankName: string;
  readonly bankAddress: string;
  readonly routingNumber: string;
  readonly accountNumber: string;
  readonly iban: string;
  readonly bic: string;
  readonly intermediary: { readonly bankName: string; readonly bankAddress: string; readonly bic: string } | null;
}

export function writeLetter(snapshot: DocumentSnapshot, facts: LetterFacts, templates: TemplateFolder): Letter {
  const unnamed = viewOf(snapshot, facts);
  const words = oneLine(templates.render(snapshot.document, 'subject', unnamed));
  // The mark is set here and not in a template: whatever an override says, a test is never mistaken for a bill.
  const subject = snapshot.sandbox ? `[SANDBOX] ${words}` : words;
  const view = { ...unnamed, subject };
  return {
    subject,
    text: templates.render(snapshot.document, 'txt', view),
    html: templates.render(snapshot.document, 'html', view),
  };
}

function viewOf(snapshot: DocumentSnapshot, facts: LetterFacts): LetterView {
  const locale = localeOf(snapshot.partner.address.country);
  const isZero = (text: string) => Amount.of(text, snapshot.currency).isZero();
  const amount = (text: string) => locale.amount(Amount.of(text, snapshot.currency));
  const due = snapshot.document === 'invoice' && !isZero(snapshot.amount_due);
  const rows = snapshot.lines.length > 0;
  return {
    subject: '',
    number: oneLine(snapshot.number),
    month: monthName(snapshot.month),
    currency: snapshot.currency,
    issuedOn: locale.date(snapshot.issued_on),
    sandbox: snapshot.sandbox,
    contactName: oneLine(facts.contactName),
    adjustment: snapshot.purpose === 'adjustment',
    credits: oneLine(snapshot.credits ?? ''),
    reason: snapshot.purpose === 'adjustment' ? oneLine(snapshot.reason ?? '') : '',
    missingShares: snapshot.purpose === 'missing_shares',
    replaces: oneLine(snapshot.replaces ?? ''),
    due,
    dueOn: due && snapshot.due_on !== null ? locale.date(snapshot.due_on) : '',
    amount: amount(snapshot.document === 'invoice' ? snapshot.amount_due : snapshot.invoiceAmount),
    enrollments: rows ? locale.number(String(snapshot.enrollments)) : '',
    spotPrice: rows ? amount(snapshot.spotPrice) : '',
    partnerCut: rows ? amount(snapshot.partnerCut) : '',
    invoiceAmount: amount(snapshot.invoiceAmount),
    creditApplied: isZero(snapshot.credit_applied) ? '' : amount(snapshot.credit_applied),
    paymentLink: due ? oneLine(snapshot.payment_link ?? '') : '',
    paymentReference: oneLine(snapshot.number),
    instructionsChanged: due && snapshot.instructions_changed,
    ach: due && snapshot.instructions?.ach ? achView(snapshot.instructions.ach) : null,
    wire: due && snapshot.instructions?.wire ? wireView(snapshot.instructions.wire) : null,
    attachments: facts.attachments.map(({ filename, note }) => ({ filename: oneLine(filename), note: oneLine(note) })),
    rowsOmitted: facts.rowsOmitted,
    issuer: {
      name: oneLine(snapshot.issuer.legal_name),
      address: addressLine(snapshot.issuer.address),
      email: oneLine(snapshot.issuer.email),
      phone: oneLine(snapshot.issuer.phone),
      taxId: oneLine(snapshot.issuer.tax_id),
    },
    partner: { name: oneLine(snapshot.partner.name), purchaseOrder: oneLine(snapshot.partner.purchase_order) },
  };
}

const achView = (ach: AchInstructions): AchView => ({
  accountHolder: oneLine(ach.account_holder),
  accountHolderAddress: addressLine(ach.account_holder_address),
  bankName: oneLine(ach.bank_name),
  bankAddress: addressLine(ach.bank_address),
  routingNumber: ach.routing_number,
  accountNumber: oneLine(ach.account_number),
  accountType: ach.account_type,
});

const wireView = (wire: WireInstructions): WireView => ({
  accountHolder: oneLine(wire.account_holder),
  accountHolderAddress: addressLine(wire.account_holder_address),
  bankName: oneLine(wire.bank_name),
  bankAddress: addressLine(wire.bank_address),
  routingNumber: wire.routing_number ?? '',
  accountNumber: oneLine(wire.account_number ?? ''),
  iban: oneLine(wire.iban ?? ''),
  bic: oneLine(wire.bic ?? ''),
  intermediary: wire.intermediary
    ? {
        bankName: oneLine(wire.intermediary.bank_name),
        bankAddress: wire.intermediary.bank_address ? addressLine(wire.intermediary.bank_address) : '',
        bic: oneLine(wire.intermediary.bic),
      }
    : null,
});

/** «350 Fifth Avenue, New York, NY 10118, US»: a letter has one line for it, the document the lines of an envelope. */
export function addressLine({ line1, line2, city, region, postal_code, country }: Address): string {
  const town = [region, postal_code].filter(Boolean).join(' ');
  return [line1, line2, city, town, country].filter(Boolean).map(oneLine).join(', ');
}

/**
 * A text as one line: control characters, line separators and what turns the reading direction become spaces, so that no
 * name can end a header, begin a line of its own in a letter, or show its letters in another order; invisible marks of
 * direction are dropped.
 */
export function oneLine(text: string): string {
  return text
    .replace(/\p{Cs}/gu, '\u{fffd}')
    .replace(/[\u{61c}\u{200e}\u{200f}]/gu, '')
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\u{202a}-\u{202e}\u{2066}-\u{2069}\s]+/gu, ' ')
    .trim();
}

// --- Templates ------------------------------------------------------------------------------------------------------

type Channel = 'subject' | 'txt' | 'html';
const CHANNELS: readonly Channel[] = ['subject', 'txt', 'html'];
/** Letters: one for each kind of document, and the reminder of several. */
type LetterKind = DocumentKind | 'reminder';
const KINDS: readonly LetterKind[] = ['invoice', 'credit_note', 'statement', 'reminder'];

/** The templates in use, each compiled once. */
export interface TemplateFolder {
  /** Refuses where this letter's template, or a part of it, cannot be used. */
  render(kind: LetterKind, channel: Channel, view: object): string;
}

type Render = (view: object) => string;

/** Handlebars' default, said aloud: else it prints a warning whenever a template reaches for more. */
const OWN_FIELDS_ONLY = { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false };

/**
 * Reads the templates of several folders; of files with the same name that of the first folder wins. Folders that are
 * not there are passed over: nobody needs to override anything. A template that cannot be used is refused when a letter
 * needs it, and not before: it holds the letters that it belongs to, and no others.
 */
export function loadTemplates(folders: readonly string[]): TemplateFolder {
  const files = new Map<string, string>();
  for (const folder of folders) {
    for (const name of templateNames(folder)) if (!files.has(name)) files.set(name, join(folder, name));
  }
  const compiled = new Map(CHANNELS.map((channel) => [channel, compileChannel(channel, files, folders)]));
  return {
    render(kind, channel, view) {
      const template = compiled.get(channel)?.get(kind);
      if (template === undefined) throw new TypeError(`there is no template ${kind}.${channel}`);
      return template(view);
    },
  };
}

function templateNames(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.hbs'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw refuse('file_unreadable', { file: folder, reason: reasonOf(error) }, error);
  }
}

/** The letters of one channel with its partials, which are the files whose names begin with `_`. */
function compileChannel(
  channel: Channel,
  files: ReadonlyMap<string, string>,
  folders: readonly string[],
): ReadonlyMap<LetterKind, Render> {
  // An environment for each channel: a partial is compiled by the rules of whoever includes it first, and text must
  // never borrow what was compiled for HTML or the other way round.
  const environment = Handlebars.create();
  // A template says what is in a letter: it looks nothing up, and writes to no log.
  for (const helper of ['log', 'lookup', 'with']) environment.unregisterHelper(helper);
  const options = {
    // HTML is escaped; a subject and a text are no markup, and escaping would only spoil them.
    noEscape: channel !== 'html',
    // No logic: the built-in if, each and unless, and nothing that could be registered.
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
    KINDS.map((kind) => {
      const name = `${kind}${ending}`;
      const path = files.get(name);
      if (path === undefined) {
        throw refuse('file_unreadable', { file: name, reason: `is in none of ${folders.join(', ')}` });
      }
      const source = readTemplate(path);
      if (source instanceof Refusal) return [kind, refusing(source)];
      const render = environment.compile<object>(source, options);
      return [kind, (view: object) => used(path, () => render(view, OWN_FIELDS_ONLY))];
    }),
  );
}

/** What Handlebars takes for a partial: its source, or where that cannot be used, something that says so by name. */
function partial(path: string): string | Handlebars.TemplateDelegate {
  const source = readTemplate(path);
  return source instanceof Refusal ? refusing(source) : source;
}

const refusing = (refusal: Refusal) => (): never => {
  throw refusal;
};

/** A template's source, read once, so that a run is not of two minds; or why it cannot be used. */
function readTemplate(path: string): string | Refusal {
  try {
    const source = readFileSync(path, 'utf8');
    used(path, () => Handlebars.parse(source));
    return source;
  } catch (error) {
    return error instanceof Refusal ? error : refuse('file_unreadable', { file: path, reason: reasonOf(error) }, error);
  }
}

/** A slip in a template is a person's to mend: told with the file's name, that of the part where it lies in one. */
function used<T>(file: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw refuse('settings_invalid', { file, problems: [{ path: '', reason: reasonOf(error) }] }, error);
  }
}
