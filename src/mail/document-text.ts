/**
 * Renders the e-mail of a document: collects the data of its templates. Refusals: settings_invalid (an unusable
 * template), file_unreadable.
 */
import { addressLine, PaymentFact, present } from '#documents/present';
import { DocumentSnapshot } from '#documents/snapshot';
import { Amount } from '#money';
import { issuerView } from './letter.ts';
import { EmailTemplates } from './templates.ts';
import { oneLine } from './text.ts';

/** The data of an e-mail that its document does not contain. */
export type DocumentEmailFacts = Readonly<{
  /** The name in the greeting; empty if there is none. */
  contactName: string;
  attachments: readonly Readonly<{ filename: string; note: string }>[];
  rowsOmitted: boolean;
  /**
   * Whether the bank details on the document are no longer valid. The e-mail then omits them and links to the payment
   * page.
   */
  instructionsOutdated?: boolean;
  /** The replaced document that the reader may have received. By default, the one that the document names. */
  replaces?: string | null;
}>;

export const renderDocumentEmail = (snapshot: DocumentSnapshot, facts: DocumentEmailFacts, templates: EmailTemplates) =>
  templates.render(snapshot.document, viewOf(snapshot, facts));

/**
 * The fields that a template may name. Every field is present, so that a misspelled one is an error and never a silent
 * gap.
 */
function viewOf(snapshot: DocumentSnapshot, facts: DocumentEmailFacts) {
  const { locale, ...presented } = present(snapshot, oneLine);
  const amount = (text: string) => locale.amount(Amount.of(text, snapshot.currency));
  const due = presented.situation === 'due';
  const adjustment = snapshot.purpose === 'adjustment';
  const outdated = due && (facts.instructionsOutdated ?? false);
  const rows = snapshot.lines.length > 0;
  const replaces = facts.replaces === undefined ? presented.replaces : oneLine(facts.replaces ?? '');
  return {
    number: presented.number,
    month: presented.month,
    currency: snapshot.currency,
    issuedOn: presented.issuedOn,
    sandbox: snapshot.sandbox,
    contactName: oneLine(facts.contactName),
    adjustment,
    credits: presented.credits,
    reason: adjustment ? presented.reason : '',
    missingShares: snapshot.purpose === 'missing_shares',
    replaces,
    due,
    dueOn: presented.dueOn,
    dueDateKept: presented.dueDateKept && replaces !== '',
    amount: presented.amount,
    enrollments: rows ? locale.number(String(snapshot.enrollments)) : '',
    spotPrice: rows && presented.showsSales ? amount(snapshot.spotPrice) : '',
    partnerCut: rows && presented.showsSales ? amount(snapshot.partnerCut) : '',
    byPrincipal: snapshot.by_principal ?? false,
    invoiceAmount: amount(snapshot.invoiceAmount),
    taxes: presented.tax.steps.map((each) => ({ label: each.label, amount: locale.amount(each.amount) })),
    taxNotes: presented.tax.notes,
    creditApplied: presented.credit.length === 0 ? '' : amount(snapshot.credit_applied),
    credit: presented.credit.map((each) => ({ label: each.label, amount: locale.amount(each.amount) })),
    leaves: presented.leaves,
    paymentLink: due ? oneLine(snapshot.payment_link ?? '') : '',
    paymentReference: presented.number,
    creditorReference: presented.creditorReference,
    instructionsChanged: due && snapshot.instructions_changed && !outdated,
    instructionsOutdated: outdated,
    ach: outdated ? null : bankView(presented.ach),
    wire: outdated ? null : bankView(presented.wire),
    attachments: facts.attachments.map(({ filename, note }) => ({ filename: oneLine(filename), note: oneLine(note) })),
    rowsOmitted: facts.rowsOmitted,
    issuer: issuerView(snapshot.issuer),
    partner: presented.partner,
  };
}

/** Bank details as rows. */
export const bankView = (facts: readonly PaymentFact[] | null) =>
  facts?.map(({ label, value, address }) => ({ label, value, address: address && addressLine(address, oneLine) })) ??
  null;
