import { Amount } from '#money';
import { ReferenceField } from './bank/statement.ts';
import { OpenCredit, Payable, PlacedCredit, Receipt } from './evidence.ts';
import { NamePlace, PayerNames } from './payer-names.ts';
import {
  CarriedNumbers,
  FoundCreditNote,
  FoundReference,
  FoundReferences,
  findCreditNotes,
  findJoint,
  findReferences,
  ShortReference,
  WITHOUT_YEAR,
} from './reference.ts';
import { isSmallDifference, SmallDifferences } from './small-difference.ts';

export type KnownPayer = Readonly<{
  partner_id: string;
  name: string;
  parent?: string | null;
}>;

type NamedBySequence = Readonly<{
  document: Payable;
  reference: FoundReference & { readonly guess: string };
}>;

/** The partners that a name in a text may mean, and the words found. */
type Mention = Pick<NamePlace, 'ids' | 'fit' | 'complete'> &
  Readonly<{
    found: string;
  }>;

export type CarriedItems = Readonly<{
  invoices: CarriedNumbers;
  credits: CarriedNumbers;
}>;
const NONE_CARRIED: CarriedItems = { invoices: new CarriedNumbers([]), credits: new CarriedNumbers([]) };

/** By the body of a joint reference, the numbers of its invoices. */
export type JointNumbers = ReadonlyMap<string, readonly Readonly<{ number: string }>[]>;

/** The open items for matching. Each match updates the items, because the lines of a file are matched one by one. */
export class OpenItems {
  private readonly payables = new Map<string, Payable>();
  private readonly numbersOfPartner = new Map<string, Set<string>>();
  private readonly numbersOfSequence = new Map<string, Set<string>>();
  private readonly openWithBalance = new Map<string, Set<string>>();
  private readonly payers: ReadonlyMap<string, KnownPayer>;
  private readonly accounts: Map<string, string | null>;
  private readonly smallDifferences: SmallDifferences;
  private readonly creditNotes: Map<string, OpenCredit>;
  private readonly carried: CarriedItems;
  private readonly joint: JointNumbers;
  private readonly childrenOf = new Map<string, string[]>();
  private readonly names: PayerNames;

  /** `accounts` maps each account that payments came from to its partner, or to null if several partners use it. */
  constructor(
    payables: readonly Payable[],
    payers: readonly KnownPayer[],
    accounts: ReadonlyMap<string, string | null>,
    smallDifferences: SmallDifferences,
    creditNotes: readonly OpenCredit[] = [],
    carried: CarriedItems = NONE_CARRIED,
    joint: JointNumbers = new Map(),
  ) {
    this.carried = carried;
    this.joint = joint;
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

  private put(payable: Payable) {
    const { number, partner_id, status, balance } = payable;
    const before = this.payables.get(number);
    if (before?.status === 'open') this.openWithBalance.get(before.balance.forPeople())?.delete(number);
    if (status === 'open') addTo(this.openWithBalance, balance.forPeople(), number);
    this.payables.set(number, payable);
    addTo(this.numbersOfSequence, number.slice(number.lastIndexOf('-') + 1), number);
    addTo(this.numbersOfPartner, partner_id, number);
  }

  references(fields: readonly ReferenceField[]): FoundReferences {
    const found = findReferences(fields);
    const own = found.references;
    // Whether a number of the previous system is only a part of one of our own document numbers.
    const isInOurs = (each: FoundReference) =>
      own.some(
        ({ number, guess, field, found: written }) =>
          number === each.number || (guess === undefined && field === each.field && written.includes(each.found)),
      );
    const carried = this.carried.invoices.find(fields).filter((each) => !isInOurs(each));
    const joint = findJoint(fields).flatMap(({ body, ...where }) =>
      (this.joint.get(body) ?? []).map(({ number }) => ({
        number,
        ...where,
        guess: undefined,
        checked: true as const,
      })),
    );
    return { ...found, references: [...carried, ...joint, ...own] };
  }

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

  /** The partner's credit notes that a payment may use. */
  openCreditOf(partnerId: string, currency: string): OpenCredit[] {
    return [...this.creditNotes.values()].filter(
      (each) =>
        each.partner_id === partnerId &&
        each.currency === currency &&
        each.held_at === null &&
        each.balance.isPositive(),
    );
  }

  current(payable: Payable): Payable | undefined {
    let at: Payable | undefined = payable;
    while (at?.status === 'void') at = at.replaced_by === null ? undefined : this.payables.get(at.replaced_by);
    return at;
  }

  openOf(partnerId: string, currency: string): Payable[] {
    return [...(this.numbersOfPartner.get(partnerId) ?? [])]
      .map((number) => this.payables.get(number) as Payable)
      .filter((each) => each.status === 'open' && each.currency === currency)
      .sort(byDueDate);
  }

  /** Returns the open documents, the earliest due date first. */
  openPaidBy(payerId: string, currency: string): Payable[] {
    const children = this.childrenOf.get(payerId) ?? [];
    if (children.length === 0) return this.openOf(payerId, currency);
    return [...this.paidBy(payerId)].flatMap((each) => this.openOf(each, currency)).sort(byDueDate);
  }

  private paidBy(payerId: string) {
    const found = new Set([payerId]);
    for (const each of found) for (const child of this.childrenOf.get(each) ?? []) found.add(child);
    return found;
  }

  private payersOf(partnerId: string) {
    const found: string[] = [];
    for (let at: string | null = partnerId; at !== null && !found.includes(at); ) {
      found.push(at);
      at = this.payers.get(at)?.parent ?? null;
    }
    return found;
  }

  /** Whether the payer is the partner itself, its parent, or a parent further up. */
  paysFor(payerId: string, partnerId: string) {
    return this.payersOf(partnerId).includes(payerId);
  }

  areRelated(one: string, other: string) {
    return this.paysFor(one, other) || this.paysFor(other, one);
  }

  /** Returns the partners that pay for this partner, the nearest payer first. */
  payersOfAll(partnerIds: readonly string[]) {
    const [first = '', ...others] = partnerIds;
    return this.payersOf(first).filter((payer) => others.every((each) => this.paysFor(payer, each)));
  }

  /** Returns the open documents in the order of issue. */
  withBalance(amount: Amount): Payable[] {
    return [...(this.openWithBalance.get(amount.forPeople()) ?? [])]
      .map((number) => this.payables.get(number) as Payable)
      .sort((a, b) => a.document_id - b.document_id);
  }

  /** A sequence such as `000012` may belong to a document of any year. */
  withSequence(sequence: string): Payable[] {
    return [...(this.numbersOfSequence.get(sequence) ?? [])]
      .map((number) => this.payables.get(number) as Payable)
      .filter(({ status }) => status === 'open');
  }

  /** The open documents that sequences alone name, of those that `isPossible`. A sequence of several names none. */
  namedBySequence(
    short: readonly ShortReference[],
    currency: string,
    isPossible: (document: Payable) => boolean,
  ): NamedBySequence[] {
    return short.flatMap(({ sequence, field }) => {
      const possible = this.withSequence(sequence).filter((each) => each.currency === currency && isPossible(each));
      const [document] = possible;
      if (document === undefined || possible.length > 1) return [];
      return [{ document, reference: { number: document.number, field, found: sequence, guess: WITHOUT_YEAR } }];
    });
  }

  knownPayer({ payer, payer_account }: Pick<Receipt, 'payer' | 'payer_account'>) {
    return payer ?? this.partnerOfAccount(payer_account);
  }

  partnerOfAccount(account: string | undefined) {
    return account === undefined ? undefined : (this.accounts.get(account) ?? undefined);
  }

  /** An account that two partners use identifies neither. */
  learn({ payer_account, payer_name }: Pick<Receipt, 'payer_account' | 'payer_name'>, partnerId: string) {
    if (payer_account === undefined) return;
    const known = this.accounts.get(payer_account);
    if (known !== undefined && known !== partnerId) this.accounts.set(payer_account, null);
    else if (known === undefined && this.names.teaches(partnerId, { payer_account, payer_name }))
      this.accounts.set(payer_account, partnerId);
  }

  nameOf(partnerId: string) {
    return this.payers.get(partnerId)?.name ?? '';
  }

  /**
   * The partners that a receipt names, with one entry for each name that was found. If an entry contains several
   * partners, the name belongs to one of them.
   */
  namesIn({ payer_name, text, behind = [] }: Pick<Receipt, 'payer_name' | 'text' | 'behind'>): Mention[] {
    const rest = payer_name === undefined ? text : text.replaceAll(payer_name, ' | ');
    const mentions = (places: readonly NamePlace[], found: string) =>
      places.map(({ ids, fit, complete }) => ({ ids, fit, complete, found: found.slice(0, 140) }));
    return [
      ...(payer_name === undefined ? [] : [payer_name, ...behind]).flatMap((each) =>
        mentions(this.names.ofName(each), each),
      ),
      ...mentions(this.names.ofText(rest, { byItself: payer_name === undefined }), rest),
    ];
  }

  partnersNamedIn(text: string) {
    return this.names.namedIn(text);
  }

  /** Returns the limit in money, without the percentage limit. */
  largestSmallDifference(currency: string) {
    return Amount.of(this.smallDifferences[currency] ?? '0', currency);
  }

  isSmallDifference(short: Amount, owed: Amount) {
    return isSmallDifference(this.smallDifferences, short, owed);
  }

  apply(
    applied: readonly Readonly<{
      document: Payable;
      amount: Amount;
      small_difference: Amount | undefined;
    }>[],
  ) {
    for (const { document, amount, small_difference } of applied) {
      this.lower(document, amount.plus(small_difference ?? Amount.zero(amount.currency)));
    }
  }

  place(placed: readonly PlacedCredit[]) {
    for (const { credit, document, amount } of placed) {
      this.lower(document, amount);
      const open = this.creditNotes.get(credit.number) ?? credit;
      this.creditNotes.set(credit.number, { ...open, balance: open.balance.minus(amount) });
    }
  }

  private lower({ number }: Payable, by: Amount) {
    const payable = this.payables.get(number) as Payable;
    const balance = payable.balance.minus(by);
    this.put({ ...payable, balance, status: balance.isZero() ? 'paid' : 'open' });
  }
}

const addTo = (sets: Map<string, Set<string>>, key: string, number: string) => {
  sets.set(key, (sets.get(key) ?? new Set()).add(number));
};

export const byDueDate = (one: Payable, other: Payable): number =>
  one.due_on < other.due_on || (one.due_on === other.due_on && one.number < other.number) ? -1 : 1;
