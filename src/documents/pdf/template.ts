/** The labels and the theme of documents, read once from `templates/document.json` and validated. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { packageRoot } from '../../package.ts';

const text = z.string();
const byDocument = z.strictObject({ invoice: text, credit_note: text, statement: text });

const labelsSchema = z.strictObject({
  title: byDocument,
  headline: z.strictObject({ due: text, due_undated: text, nothing_due: text, owed: text, credited: text }),
  sentence: z.strictObject({
    due: text,
    nothing_due: text,
    covered_by_credit: text,
    credit_note: text,
    statement: text,
    adjustment: text,
    missing_shares: text,
  }),
  /** Follows the sentence of a document that replaces another. */
  replaces: text,
  addressee: byDocument,
  facts: z.strictObject({
    issued_on: text,
    due_on: text,
    terms: text,
    month: text,
    partner_id: text,
    purchase_order: text,
    enrollments: text,
    tax_id: text,
    replaces: text,
    credits: text,
  }),
  terms: z.strictObject({ days: text, one_day: text, immediately: text }),
  lines: z.strictObject({
    heading: text,
    currency: text,
    credit_note_signs: text,
    late: text,
    continued: text,
    subtotal: text,
    policy: text,
    what: text,
    count: text,
    spotPrice: text,
    partnerCut: text,
    invoiceAmount: byDocument,
    kind: z.strictObject({ quote_accepted: text, requote_accepted: text, reversal: text }),
  }),
  totals: z.strictObject({
    total: text,
    credit_applied: text,
    routed: text,
    amount_due: text,
    owed: text,
    credited: text,
  }),
  adjustment: z.strictObject({ heading: text, reason: text, what: text, amount: text, line: text }),
  payment: z.strictObject({
    heading: text,
    changed_title: text,
    changed: text,
    online: text,
    online_contents: text,
    scan: text,
    scan_contents: text,
    ach: text,
    ach_note: text,
    wire: text,
    wire_note: text,
    account_holder: text,
    bank: text,
    routing_number_ach: text,
    routing_number_wire: text,
    account_number: text,
    account_type: text,
    checking: text,
    savings: text,
    iban: text,
    bic: text,
    intermediary: text,
    intermediary_bic: text,
    reference: text,
    none: text,
  }),
  /** What the payment page says beyond the labels of the document, or shorter than they do. */
  payment_page: z.strictObject({
    account_holder_address: text,
    bank_address: text,
    routing_number_ach: text,
    routing_number_wire: text,
    bic: text,
    intermediary_bic: text,
    paid: text,
    balance: text,
  }),
  /** Labels of the account statement. */
  account: z.strictObject({
    title: text,
    period: text,
    addressee: text,
    sandbox: text,
    heading: text,
    open: text,
    date: text,
    what: text,
    amount: text,
    balance: text,
    due: text,
    overdue: text,
    days: text,
    one_day: text,
    brought_forward: text,
    closing: text,
    credit: text,
    unapplied: text,
    nothing: text,
    favor: text,
    movements: z.strictObject({
      document_issued: text,
      document_voided: text,
      written_off: text,
      payment_received: text,
      payment_assigned: text,
      small_difference: text,
      small_difference_undone: text,
      payment_returned: text,
      payment_refunded: text,
      payment_disputed: text,
      payment_mistake: text,
      payment_duplicate: text,
      payment_reinstated: text,
      credit_refunded: text,
      credit_refund_returned: text,
    }),
  }),
  contact: text,
  or: text,
  running: z.strictObject({ page: text, continued: text }),
  seal: text,
  sandbox: byDocument,
  void: z.strictObject({
    mark: text,
    banner: text,
    title: byDocument,
    text,
    replaced: text,
    not_replaced: text,
    document_title: text,
  }),
});
export type Labels = z.output<typeof labelsSchema>;

const COLORS = [
  'ink',
  'muted',
  'accent',
  'link',
  'rule',
  'strong_rule',
  'panel',
  'white',
  'warning',
  'warning_panel',
  'warning_rule',
  'sandbox',
  'watermark',
  'void_mark',
  'code',
] as const;
export type Color = (typeof COLORS)[number];

const STYLES = [
  'title',
  'number',
  'issuer',
  'headline',
  'headline_strong',
  'heading',
  'label',
  'small',
  'body',
  'strong',
  'link',
  'button',
  'column',
  'cell',
  'cell_strong',
  'section',
  'total',
  'warning',
  'warning_strong',
  'running',
  'running_strong',
  'banner',
  'watermark',
  'void_mark',
] as const;

const points = z.number().positive();
const styleSchema = z.strictObject({
  font: z.enum(['regular', 'bold']),
  size: points,
  /** Height of one line. */
  leading: points,
  color: z.enum(COLORS),
});
export type Style = z.output<typeof styleSchema>;

const themeSchema = z.strictObject({
  paper: z.strictObject({ letter: z.tuple([points, points]), a4: z.tuple([points, points]) }),
  /** Countries that print on Letter; all others use A4. */
  letter_countries: z.array(z.string()),
  postal_code_after_town: z.array(z.string()),
  colors: z.record(z.enum(COLORS), z.string().regex(/^#[0-9a-f]{6}$/)),
  styles: z.record(z.enum(STYLES), styleSchema),
});
export type Theme = z.output<typeof themeSchema>;

const templateSchema = z.strictObject({
  labels: labelsSchema,
  theme: themeSchema,
  /**
   * English names by ISO 3166 code. A table of our own: the JavaScript engine's tables change with its
   * version, and would change the bytes of documents.
   */
  countries: z.record(z.string().regex(/^[A-Z]{2}$/), z.string()),
});
export type Template = z.output<typeof templateSchema>;

export const readTemplateFile = (...path: string[]): Buffer => readFileSync(join(packageRoot, 'templates', ...path));

let template: Template | undefined;

export function readTemplate(): Template {
  template ??= templateSchema.parse(JSON.parse(readTemplateFile('document.json').toString('utf8')));
  return template;
}

const PLACEHOLDER = /\{(\w+)\}/;

/** A label with its placeholders replaced; `words` converts the text between them. */
export function filledWith<T>(label: string, values: Readonly<Record<string, T>>, words: (text: string) => T): T[] {
  // Splitting by a pattern with a group alternates words and placeholders, words first.
  return label.split(PLACEHOLDER).map((part, index) => {
    if (index % 2 === 0) return words(part);
    const value = values[part];
    if (value === undefined) throw new Error(`templates/document.json: nothing stands for {${part}} in '${label}'`);
    return value;
  });
}

export function fill(label: string, values: Readonly<Record<string, string>>): string {
  return filledWith(label, values, (words) => words).join('');
}
