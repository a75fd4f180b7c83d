/**
 * The e-mail that carries a document: what its templates see. Refusals: settings_invalid (a template that cannot be used),
 * file_unreadable.
 */
import type { AchInstructions, WireInstructions } from '../config/instructions.ts';
import { localeOf } from '../documents/locale.ts';
import type { DocumentSnapshot } from '../documents/snapshot.ts';
import { Amount } from '../money.ts';
import { monthName } from '../month.ts';
import type { EmailText } from './email.ts';
import { issuerView } from './issuer-view.ts';
import type { EmailTemplates, EmailView } from './templates.ts';
import { addressLine, oneLine } from './text.ts';

/** What an e-mail says beyond the data of its document. */
export interface DocumentEmailFacts {
  /** Whom to greet; empty where nobody is named. */
  readonly contactName: string;
  readonly attachments: readonly { readonly filename: string; readonly note: string }[];
  /** The rows behind the document are too many to attach. */
  readonly rowsOmitted: boolean;
}

/**
 * Everything a template may name; `templates/email/README.md` lists the same for those who write their own. Every
 * field is always there and empty where it does not apply, so that a misspelt one is an error and never a silent gap.
 */
interface DocumentView extends EmailView {
  readonly number: string;
  readonly month: string;
  readonly currency: string;
  readonly issuedOn: string;
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

export const renderDocumentEmail = (
  snapshot: DocumentSnapshot,
  facts: DocumentEmailFacts,
  templates: EmailTemplates,
): EmailText => templates.render(snapshot.document, viewOf(snapshot, facts));

function viewOf(snapshot: DocumentSnapshot, facts: DocumentEmailFacts): DocumentView {
  const locale = localeOf(snapshot.partner.address.country);
  const isZero = (text: string) => Amount.of(text, snapshot.currency).isZero();
  const amount = (text: string) => locale.amount(Amount.of(text, snapshot.currency));
  const due = snapshot.document === 'invoice' && !isZero(snapshot.amount_due);
  const rows = snapshot.lines.length > 0;
  return {
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
    issuer: issuerView(snapshot.issuer),
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
