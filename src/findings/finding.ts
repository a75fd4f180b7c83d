/**
 * What needs a person, one by one. Nothing of it is stored: a finding is there as long as the state that it is made of. The
 * work queue lists all findings; the status, its e-mail and the exit of jobs those that are urgent.
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
export type FindingKind = (typeof FINDING_KINDS)[number];

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
}

export const isUrgent = (finding: Finding): finding is Finding & { readonly urgent: string } => finding.urgent !== null;

export interface FindingQuestion {
  /** The partners whose findings are read; null: all, and what belongs to no partner. */
  readonly scope: Scope;
  /** `YYYY-MM-DD` */
  readonly today: string;
  /** At most so many of each kind; null: all. */
  readonly limit: number | null;
}

export type ReadFindings = (tx: Transaction, question: FindingQuestion) => Promise<Finding[]>;
