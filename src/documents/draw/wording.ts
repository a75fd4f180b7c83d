/** What a document says about itself, by its kind and by what is due: every sentence of it, ready to be drawn. */
import type { Address } from '../../config/validation.ts';
import { Amount } from '../../money.ts';
import { monthName } from '../../month.ts';
import type { DocumentFace } from '../face.ts';
import type { Locale } from '../locale.ts';
import { fill, type Labels, type Template } from './template.ts';
import { drawable } from './text.ts';

/** Why a document asks for money, or why not. */
export type Situation = 'due' | 'nothing_due' | 'covered_by_credit' | 'credit_note' | 'adjustment' | 'statement';

export function situationOf(face: DocumentFace): Situation {
  if (face.document === 'credit_note') return face.purpose === 'adjustment' ? 'adjustment' : 'credit_note';
  if (face.document === 'statement') return 'statement';
  if (!isZero(face, face.amount_due)) return 'due';
  return isZero(face, face.credit_applied) ? 'nothing_due' : 'covered_by_credit';
}

const isZero = (face: DocumentFace, amount: string): boolean => Amount.of(amount, face.currency).isZero();

export interface Headline {
  readonly label: string;
  /** What stands for `{amount}`, the only part that is emphasised. */
  readonly amount: string;
  readonly values: Readonly<Record<string, string>>;
}

export interface Total {
  readonly label: string;
  readonly amount: Amount;
}

export interface Wording {
  readonly title: string;
  readonly number: string;
  readonly headline: Headline;
  readonly sentence: string;
  /** How the total of the lines becomes what is owed, one step a row, the last being the result. */
  readonly steps: readonly Total[];
  /** Undefined where nothing is due. */
  readonly dueOn: string | undefined;
  readonly terms: string | undefined;
  /** The issuer's e-mail and phone; empty where it gave neither. */
  readonly reach: string;
  readonly contact: string;
}

export function wordingOf(face: DocumentFace, { labels }: Template, locale: Locale): Wording {
  const situation = situationOf(face);
  const amount = (text: string) => Amount.of(text, face.currency);
  const owed = amount(situation === 'due' ? face.amount_due : face.invoiceAmount);
  const values = {
    amount: locale.amount(owed),
    credit: locale.amount(amount(face.credit_applied)),
    credits: drawable(face.credits ?? ''),
    currency: face.currency,
    due_on: face.due_on === null ? '' : locale.date(face.due_on),
    issuer: drawable(face.issuer.legal_name),
    month: monthName(face.month),
    number: drawable(face.number),
    partner: drawable(face.partner.name),
    replaces: drawable(face.replaces ?? ''),
  };
  const title = labels.title[face.document];
  const reach = [face.issuer.email, face.issuer.phone].map(drawable).filter(Boolean).join(labels.or);
  return {
    title,
    number: values.number,
    headline: { label: headlineOf(face, situation, labels), amount: values.amount, values },
    sentence: sentencesOf(face, situation, labels)
      .map((sentence) => fill(sentence, values))
      .join(' '),
    steps: stepsOf(face, situation, labels),
    dueOn: situation === 'due' && face.due_on !== null ? values.due_on : undefined,
    terms: situation === 'due' ? termsOf(face.terms_days, labels) : undefined,
    reach,
    contact: reach === '' ? '' : fill(labels.contact, { contact: reach }),
  };
}

function sentencesOf(face: DocumentFace, situation: Situation, labels: Labels): string[] {
  const missing = situation === 'due' && face.purpose === 'missing_shares';
  return [
    labels.sentence[missing ? 'missing_shares' : situation],
    ...(face.replaces === null ? [] : [labels.replaces]),
  ];
}

function headlineOf(face: DocumentFace, situation: Situation, { headline }: Labels): string {
  switch (situation) {
    case 'due':
      return face.due_on === null ? headline.due_undated : headline.due;
    case 'credit_note':
      return headline.owed;
    case 'adjustment':
      return headline.credited;
    case 'nothing_due':
    case 'covered_by_credit':
    case 'statement':
      return headline.nothing_due;
  }
}

function stepsOf(face: DocumentFace, situation: Situation, { totals }: Labels): Total[] {
  const amount = (text: string) => Amount.of(text, face.currency);
  const credit = amount(face.credit_applied);
  switch (situation) {
    case 'credit_note':
      return [{ label: totals.owed, amount: amount(face.invoiceAmount) }];
    case 'adjustment':
      return [{ label: totals.credited, amount: amount(face.invoiceAmount) }];
    case 'statement':
      return [
        { label: totals.routed, amount: amount(face.invoiceAmount).negated() },
        { label: totals.amount_due, amount: Amount.zero(face.currency) },
      ];
    case 'due':
    case 'nothing_due':
    case 'covered_by_credit':
      return [
        ...(credit.isZero() ? [] : [{ label: totals.credit_applied, amount: credit.negated() }]),
        { label: totals.amount_due, amount: amount(face.amount_due) },
      ];
  }
}

function termsOf(days: number | null, { terms }: Labels): string | undefined {
  if (days === null) return undefined;
  if (days === 0) return terms.immediately;
  return days === 1 ? terms.one_day : fill(terms.days, { days: String(days) });
}

/** An address as the lines of an envelope, the country by its name. */
export function addressLines(address: Address, { theme, countries }: Template): string[] {
  const { line1, line2, city, region, postal_code, country } = address;
  const town = theme.postal_code_after_town.includes(country)
    ? spaced(listed(city, region), postal_code)
    : listed(spaced(postal_code, city), region);
  return [line1, line2, town, countries[country] ?? country].map(drawable).filter(Boolean);
}

const spaced = (...parts: string[]): string => parts.filter(Boolean).join(' ');
const listed = (...parts: string[]): string => parts.filter(Boolean).join(', ');
