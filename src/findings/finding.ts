/**
 * What needs a person, one by one. Nothing of it is stored: a finding is there as long as the state that it is made of. The
 * work queue lists those that finance decides; the status, its e-mail and the exit of jobs those of all that are urgent.
 *
 * To add a kind: its name here, and a function that reads it beside the others of its noun (findings/documents.ts).
 */
import type { Transaction } from '../database/transaction.ts';
import type { Scope } from '../people/scope.ts';
import type { Remedy } from '../remedy.ts';

/** The tabs of the work queue. */
export const FINDING_KINDS = [
  ...(['approvals', 'receipts', 'e-mails', 'holds', 'documents', 'disputes', 'links', 'findings'] as const),
] as const;
export type QueueKind = (typeof FINDING_KINDS)[number];
/** Those after the tabs are in the status alone: operations settles them, or the close does. */
export type FindingKind = QueueKind | 'months' | 'machine' | 'accounts' | 'webhooks';

export interface Finding {
  /** Names it as long as it is there: `dispute:INV-2026-000003`. */
  readonly item: string;
  readonly kind: FindingKind;
  /** In a few words: `on hold`, `unknown payer`. */
  readonly state: string;
  readonly tone: 'good' | 'warn' | 'bad';
  /** What it is about, such as a document's number. */
  readonly title: string;
  /** Those that it touches; none: the whole ledger. */
  readonly partners: readonly { readonly id: string; readonly name: string }[];
  readonly money: { readonly amount: string; readonly currency: string } | null;
  /** `YYYY-MM-DD` */
  readonly since: string;
  /** As somebody wrote it. */
  readonly reason: string;
  /** Why it cannot wait, in one sentence without what to do; null: it can. */
  readonly urgent: string | null;
  readonly remedies: readonly Remedy[];
  /** How many things it stands for; default: one. More of them are told again. */
  readonly count?: number;
}

/** Something of the whole ledger, or of the machine, that cannot wait. */
export const troubleOf = (
  kind: FindingKind,
  item: string,
  { urgent, since, remedies = [], count }: Troubled,
): Finding => ({
  ...{ item, kind, state: 'needs attention', tone: 'bad', title: item, partners: [], money: null, reason: '' },
  ...{ since: since.slice(0, 10), urgent, remedies },
  ...(count !== undefined && { count }),
});

interface Troubled {
  readonly urgent: string;
  /** A day, or an instant of it. */
  readonly since: string;
  readonly remedies?: readonly Remedy[];
  readonly count?: number;
}

export const isUrgent = (finding: Finding): finding is Finding & { readonly urgent: string } => finding.urgent !== null;

export interface FindingQuestion {
  /** The partners whose findings are read; null: all, and what belongs to no partner. */
  readonly scope: Scope;
  /** `YYYY-MM-DD` */
  readonly today: string;
  /** In milliseconds. */
  readonly now: number;
  /** At most so many of each kind; null: all. */
  readonly limit: number | null;
}

export type ReadFindings = (tx: Transaction, question: FindingQuestion) => Promise<Finding[]>;
