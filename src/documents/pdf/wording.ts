/** The title, sentences and totals of a document, by its kind and by what is due. */
import type { Address } from '../../config/validation.ts';
import { Amount } from '../../money.ts';
import { monthName } from '../../month.ts';
import type { Locale } from '../locale.ts';
import type { DocumentSnapshot } from '../snapshot.ts';
import { fill, type Labels, type Template } from './template.ts';
import { printable } from './text.ts';

/** Why a document asks for money, or why not. */
export type Situation = 'due' | 'nothing_due' | 'covered_by_credit' | 'credit_note' | 'adjustment' | 'statement';

export function situationOf(snapshot: DocumentSnapshot): Situation {
  if (snapshot.document === 'credit_note') return snapshot.purpose === 'adjustment' ? 'adjustment' : 'credit_note';
  if (snapshot.document === 'statement') return 'statement';
  if (!isZero(snapshot, snapshot.amount_due)) return 'due';
  return isZero(snapshot, snapshot.credit_applied) ? 'nothing_due' : 'covered_by_credit';
}

const isZero = (snapshot: DocumentSnapshot, amount: string): boolean => Amount.of(amount, snapshot.currency).isZero();

export interface Headline {
  readonly label: string;
  /** The value of `{amount}`, the only part that is emphasized. */
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
  /** The steps from the total of the lines to the amount due, the last being the result. */
  readonly steps: readonly Total[];
  /** Undefined if nothing is due. */
  readonly dueOn: string | undefined;
  readonly terms: string | undefined;
  /** The issuer's e-mail and phone; empty if it gave neither. */
  readonly reach: string;
  readonly contact: string;
}

export function wordingOf(snapshot: DocumentSnapshot, { labels }: Template, locale: Locale): Wording {
  const situation = situationOf(snapshot);
  const amount = (text: string) => Amount.of(text, snapshot.currency);
  const owed = amount(situation === 'due' ? snapshot.amount_due : snapshot.invoiceAmount);
  const values = {
    amount: locale.amount(owed),
    credit: locale.amount(amount(snapshot.credit_applied)),
    credits: printable(snapshot.credits ?? ''),
    currency: snapshot.currency,
    due_on: snapshot.due_on === null ? '' : locale.date(snapshot.due_on),
    issuer: printable(snapshot.issuer.legal_name),
    month: monthName(snapshot.month),
    number: printable(snapshot.number),
    partner: printable(snapshot.partner.name),
    replaces: printable(snapshot.replaces ?? ''),
  };
  const title = labels.title[snapshot.document];
  const reach = [snapshot.issuer.email, snapshot.issuer.phone].map(printable).filter(Boolean).join(labels.or);
  return {
    title,
    number: values.number,
    headline: { label: headlineOf(snapshot, situation, labels), amount: values.amount, values },
    sentence: sentencesOf(snapshot, situation, labels)
      .map((sentence) => fill(sentence, values))
      .join(' '),
    steps: stepsOf(snapshot, situation, labels),
    dueOn: situation === 'due' && snapshot.due_on !== null ? values.due_on : undefined,
    terms: situation === 'due' ? termsOf(snapshot.terms_days, labels) : undefined,
    reach,
    contact: reach === '' ? '' : fill(labels.contact, { contact: reach }),
  };
}

function sentencesOf(snapshot: DocumentSnapshot, situation: Situation, labels: Labels): string[] {
  const missing = situation === 'due' && snapshot.purpose === 'missing_shares';
  return [
    labels.sentence[missing ? 'missing_shares' : situation],
    ...(snapshot.replaces === null ? [] : [labels.replaces]),
  ];
}

function headlineOf(snapshot: DocumentSnapshot, situation: Situation, { headline }: Labels): string {
  switch (situation) {
    case 'due':
      return snapshot.due_on === null ? headline.due_undated : headline.due;
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

function stepsOf(snapshot: DocumentSnapshot, situation: Situation, { totals }: Labels): Total[] {
  const amount = (text: string) => Amount.of(text, snapshot.currency);
  const credit = amount(snapshot.credit_applied);
  switch (situation) {
    case 'credit_note':
      return [{ label: totals.owed, amount: amount(snapshot.invoiceAmount) }];
    case 'adjustment':
      return [{ label: totals.credited, amount: amount(snapshot.invoiceAmount) }];
    case 'statement':
      return [
        { label: totals.routed, amount: amount(snapshot.invoiceAmount).negated() },
        { label: totals.amount_due, amount: Amount.zero(snapshot.currency) },
      ];
    case 'due':
    case 'nothing_due':
    case 'covered_by_credit':
      return [
        ...(credit.isZero() ? [] : [{ label: totals.credit_applied, amount: credit.negated() }]),
        { label: totals.amount_due, amount: amount(snapshot.amount_due) },
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
  return [line1, line2, town, countries[country] ?? country].map(printable).filter(Boolean);
}

const spaced = (...parts: string[]): string => parts.filter(Boolean).join(' ');
const listed = (...parts: string[]): string => parts.filter(Boolean).join(', ');
