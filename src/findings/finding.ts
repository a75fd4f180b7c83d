/**
 * What needs a person, item by item. Nothing is stored: a finding exists as long as the state behind it. The work queue
 * lists the findings that finance decides. The status, its e-mail and the exit status of jobs cover all urgent ones.
 *
 * To add a kind: add its name here, and a function that reads it in the file of its noun (findings/documents.ts).
 */
import type { Transaction } from '../database/transaction.ts';
import type { Scope } from '../people/scope.ts';
import type { Remedy } from '../remedy.ts';

/** The tabs of the work queue. */
export const FINDING_KINDS = [
  ...(['approvals', 'receipts', 'e-mails', 'holds', 'documents', 'disputes', 'links', 'findings'] as const),
] as const;
export type QueueKind = (typeof FINDING_KINDS)[number];
/** The kinds that are not tabs appear only in the status: operations resolves them, or the close does. */
export type FindingKind = QueueKind | 'months' | 'machine' | 'accounts' | 'webhooks';

export interface Finding {
  /** Its name while it exists: `dispute:INV-2026-000003`. */
  readonly item: string;
  readonly kind: FindingKind;
  /** In a few words: `on hold`, `unknown payer`. */
  readonly state: string;
  readonly tone: 'good' | 'warn' | 'bad';
  /** Its subject, such as a document's number. */
  readonly title: string;
  /** The partners that it affects; none: the whole ledger. */
  readonly partners: readonly { readonly id: string; readonly name: string }[];
  readonly money: { readonly amount: string; readonly currency: string } | null;
  /** `YYYY-MM-DD` */
  readonly since: string;
  /** As a user wrote it. */
  readonly reason: string;
  /** Why it is urgent, in one sentence without the remedy; null: it is not. */
  readonly urgent: string | null;
  readonly remedies: readonly Remedy[];
  /** How many things it stands for; default: one. An increase is reported again. */
  readonly count?: number;
}

/** Something urgent about the whole ledger, or the machine. */
export const troubleOf = (
  kind: FindingKind,
  item: string,
  { urgent, since, remedies = [], count }: FindingDetails,
): Finding => ({
  ...{ item, kind, state: 'needs attention', tone: 'bad', title: item, partners: [], money: null, reason: '' },
  ...{ since: since.slice(0, 10), urgent, remedies },
  ...(count !== undefined && { count }),
});

interface FindingDetails {
  readonly urgent: string;
  /** A day, or a time. */
  readonly since: string;
  readonly remedies?: readonly Remedy[];
  readonly count?: number;
}

export const isUrgent = (finding: Finding): finding is Finding & { readonly urgent: string } => finding.urgent !== null;

export interface FindingQuestion {
  /** The partners whose findings are read; null: all partners, and findings without a partner. */
  readonly scope: Scope;
  /** `YYYY-MM-DD` */
  readonly today: string;
  /** In milliseconds. */
  readonly now: number;
  /** The most findings of each kind; null: all. */
  readonly limit: number | null;
}

export type ReadFindings = (tx: Transaction, question: FindingQuestion) => Promise<Finding[]>;
