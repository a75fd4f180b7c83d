/** The open items that cash can be applied to, and how their payers are known. */
import { Amount } from '../money.ts';
import type { ReferenceField } from './bank/statement.ts';
import type { OpenCredit, Payable, PlacedCredit, Receipt } from './evidence.ts';
import { type NamePlace, PayerNames } from './payer-names.ts';
import {
  CarriedNumbers,
  type FoundCreditNote,
  type FoundReference,
  type FoundReferences,
  findCreditNotes,
  findReferences,
} from './reference.ts';
import { isSmallDifference, type SmallDifferences } from './small-difference.ts';

export interface KnownPayer {
  readonly partner_id: string;
  readonly name: string;
  /** The partner that pays for this one. */
  readonly parent?: string | null;
}

/** The partners that a name may mean, and the words of the name. */
interface Mention {
  readonly ids: ReadonlySet<string>;
  readonly fit: NamePlace['fit'];
  readonly found: string;
}

/** The numbers of items carried over from the previous system. */
export interface CarriedItems {
  readonly invoices: CarriedNumbers;
  readonly credits: CarriedNumbers;
}
const NONE_CARRIED: CarriedItems = { invoices: new CarriedNumbers([]), credits: new CarriedNumbers([]) };

/** The open items for matching. They are kept current while the lines of a file are matched one by one. */
export class OpenItems {
  private readonly payables = new Map<string, Payable>();
  private readonly numbersOfPartner = new Map<string, Set<string>>();
  /** The numbers of open documents, by balance and currency. */
  private readonly openWithBalance = new Map<string, Set<string>>();
  private readonly payers: ReadonlyMap<string, KnownPayer>;
  private readonly accounts: Map<string, string | null>;
  private readonly smallDifferences: SmallDifferences;
  private readonly creditNotes: Map<string, OpenCredit>;
  private readonly carried: CarriedItems;
  private readonly childrenOf = new Map<string, string[]>();
  private readonly names: PayerNames;

  /**
   * `carried` are the numbers of invoices and credits carried over from the previous system. `accounts` maps each
   * account that payments came from to its partner, or to null if it has several.
   */
  constructor(
    payables: readonly Payable[],
    payers: readonly KnownPayer[],
    accounts: ReadonlyMap<string, string | null>,
    smallDifferences: SmallDifferences,
    creditNotes: readonly OpenCredit[] = [],
    carried: CarriedItems = NONE_CARRIED,
  ) {
    this.carried = carried;
    this.payers = new Map(payers.map((payer) => [payer.partner_id, payer]));
    this.accounts = new Map(accounts);
    this.smallDifferences = smallDifferences;
    this.creditNotes = new Map(creditNotes.map((each) => [each.number, each]));
    for (const payable of payables) this.put(payable);
    for (const payer of payers) {
      const { partner_id, parent = null } = payer;
      if (parent !== null) this.childrenOf.set(parent, [...(this.childrenOf.get(parent) ?? []), partner_id]);
    }
    this.names = new PayerNames(payers);
  }

  private put(payable: Payable): void {
    const { number, partner_id, status, balance } = payable;
    const before = this.payables.get(number);
    if (before?.status === 'open') this.openWithBalance.get(before.balance.forPeople())?.delete(number);
    if (status === 'open') addTo(this.openWithBalance, balance.forPeople(), number);
    this.payables.set(number, payable);
    addTo(this.numbersOfPartner, partner_id, number);
  }

  /** The invoices that a remittance names. */
  references(fields: readonly ReferenceField[]): FoundReferences {
    const found = findReferences(fields);
    const own = found.references;
    // Whether a text is one of our numbers, or a part of it.
    const isInOurs = (each: FoundReference) =>
      own.some(
        ({ number, guess, field, found: written }) =>
          number === each.number || (guess === undefined && field === each.field && written.includes(each.found)),
      );
    const carried = this.carried.invoices.find(fields).filter((each) => !isInOurs(each));
    return { ...found, references: [...carried, ...own] };
  }

  /** The credit notes that a remittance names. */
  creditReferences(fields: readonly ReferenceField[]): FoundCreditNote[] {
    const carried = this.carried.credits.find(fields).filter(({ guess }) => guess === undefined);
    return [...findCreditNotes(fields), ...carried];
  }

  byNumber(number: string): Payable | undefined {
    return this.payables.get(number);
  }

  creditNote(number: string): OpenCredit | undefined {
    return this.creditNotes.get(number);
  }

  /** The document itself, or the live one that replaced it. */
  current(payable: Payable): Payable | undefined {
    let at: Payable | undefined = payable;
    while (at?.status === 'void') at = at.replaced_by === null ? undefined : this.payables.get(at.replaced_by);
    return at;
  }

  /** A partner's open documents in a currency, the earliest due first. */
  openOf(partnerId: string, currency: string): Payable[] {
    return [...(this.numbersOfPartner.get(partnerId) ?? [])]
      .map((number) => this.payables.get(number) as Payable)
      .filter((each) => each.status === 'open' && each.currency === currency)
      .sort(byDueDate);
  }

  /** A payer's own open documents in a currency and those of the partners that it pays for, the earliest due first. */
  openPaidBy(payerId: string, currency: string): Payable[] {
    const children = this.childrenOf.get(payerId) ?? [];
    if (children.length === 0) return this.openOf(payerId, currency);
    return [...this.paidBy(payerId)].flatMap((each) => this.openOf(each, currency)).sort(byDueDate);
  }

  /** A partner and those that it pays for, directly or through others. */
  private paidBy(payerId: string): Set<string> {
    const found = new Set([payerId]);
    for (const each of found) for (const child of this.childrenOf.get(each) ?? []) found.add(child);
    return found;
  }

  /** A partner, its parent, the parent's parent, and so on. */
  private payersOf(partnerId: string): string[] {
    const found: string[] = [];
    for (let at: string | null = partnerId; at !== null && !found.includes(at); ) {
      found.push(at);
      at = this.payers.get(at)?.parent ?? null;
    }
    return found;
  }

  /** Whether a partner pays for a second one: it is that partner itself, its parent, or a parent further up. */
  paysFor(payerId: string, partnerId: string): boolean {
    return this.payersOf(partnerId).includes(payerId);
  }

  /** Whether either of two partners pays for the other. */
  areRelated(one: string, other: string): boolean {
    return this.paysFor(one, other) || this.paysFor(other, one);
  }

  /** The partners that pay for all of these, the nearest first. */
  payersOfAll(partnerIds: readonly string[]): string[] {
    const [first = '', ...others] = partnerIds;
    return this.payersOf(first).filter((payer) => others.every((each) => this.paysFor(payer, each)));
  }

  /** All open documents with exactly this balance, the first issued first. */
  withBalance(amount: Amount): Payable[] {
    return [...(this.openWithBalance.get(amount.forPeople()) ?? [])]
      .map((number) => this.payables.get(number) as Payable)
      .sort((a, b) => a.document_id - b.document_id);
  }

  /** Open documents with this sequence, such as `000012`, of any year. */
  withSequence(sequence: string): Payable[] {
    return [...this.payables.values()].filter((each) => each.status === 'open' && each.number.endsWith(`-${sequence}`));
  }

  /** The payer that finance has named, or whose account it is. */
  knownPayer({ payer, payer_account }: Pick<Receipt, 'payer' | 'payer_account'>): string | undefined {
    return payer ?? this.partnerOfAccount(payer_account);
  }

  partnerOfAccount(account: string | undefined): string | undefined {
    return account === undefined ? undefined : (this.accounts.get(account) ?? undefined);
  }

  /** Records that a rule applied a payment from this account. An account of two partners no longer identifies one. */
  learn({ payer_account, payer_name }: Pick<Receipt, 'payer_account' | 'payer_name'>, partnerId: string): void {
    if (payer_account === undefined) return;
    const known = this.accounts.get(payer_account);
    if (known !== undefined && known !== partnerId) this.accounts.set(payer_account, null);
    else if (known === undefined && this.names.teaches(partnerId, { payer_account, payer_name }))
      this.accounts.set(payer_account, partnerId);
  }

  nameOf(partnerId: string): string {
    return this.payers.get(partnerId)?.name ?? '';
  }

  /**
   * The partners that a receipt names, for each place in it. If a place matches several partners, one of them is meant.
   */
  namesIn({ payer_name, text }: Pick<Receipt, 'payer_name' | 'text'>): Mention[] {
    const rest = payer_name === undefined ? text : text.replaceAll(payer_name, ' | ');
    const mentions = (places: readonly NamePlace[], found: string) =>
      places.map(({ ids, fit }) => ({ ids, fit, found: found.slice(0, 140) }));
    return [
      ...(payer_name === undefined ? [] : mentions(this.names.ofName(payer_name), payer_name)),
      ...mentions(this.names.ofText(rest, { byItself: payer_name === undefined }), rest),
    ];
  }

  /** Partners whose names may occur in a text. */
  partnersNamedIn(text: string): string[] {
    return this.names.namedIn(text);
  }

  /** Considers only the limit in money. */
  largestSmallDifference(currency: string): Amount {
    return Amount.of(this.smallDifferences[currency] ?? '0', currency);
  }

  /** Whether the shortfall of a payment may be written to bank charges. */
  isSmallDifference(short: Amount, owed: Amount): boolean {
    return isSmallDifference(this.smallDifferences, short, owed);
  }

  /** Deducts applied amounts from the documents' balances. */
  apply(
    applied: readonly {
      readonly document: Payable;
      readonly amount: Amount;
      readonly small_difference: Amount | undefined;
    }[],
  ): void {
    for (const { document, amount, small_difference } of applied) {
      this.lower(document, amount.plus(small_difference ?? Amount.zero(amount.currency)));
    }
  }

  /** Deducts credit that was placed from the documents' balances and from the credit notes' open amounts. */
  place(placed: readonly PlacedCredit[]): void {
    for (const { credit, document, amount } of placed) {
      this.lower(document, amount);
      const open = this.creditNotes.get(credit.number) ?? credit;
      this.creditNotes.set(credit.number, { ...open, balance: open.balance.minus(amount) });
    }
  }

  private lower({ number }: Payable, by: Amount): void {
    const payable = this.payables.get(number) as Payable;
    const balance = payable.balance.minus(by);
    this.put({ ...payable, balance, status: balance.isZero() ? 'paid' : 'open' });
  }
}

const addTo = (sets: Map<string, Set<string>>, key: string, number: string): void => {
  sets.set(key, (sets.get(key) ?? new Set()).add(number));
};

export const byDueDate = (one: Payable, other: Payable): number =>
  one.due_on < other.due_on || (one.due_on === other.due_on && one.number < other.number) ? -1 : 1;
