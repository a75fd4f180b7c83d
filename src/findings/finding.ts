/**
 * A finding is a thing that needs a person. Findings are not stored: each is derived from the current state of the
 * ledger or the machine. The work queue lists the findings that finance decides. The status, its e-mail and the exit
 * status of jobs cover all urgent findings.
 *
 * To add a kind, add its name here, and add a function that reads its findings (findings/documents.ts).
 */
import { Transaction } from '#database/transaction';
import { Scope } from '#people/scope';
import { Remedy } from '#remedy';
import { names } from '#text';

export * from '#remedy';

export const FINDING_KINDS = names('approvals rows receipts e-mails holds documents disputes links findings');
export type QueueKind = (typeof FINDING_KINDS)[number];
/**
 * Kinds that are not in the work queue appear only in the status. Operations or the close resolves findings of these
 * kinds.
 */
export type FindingKind = QueueKind | 'months' | 'machine' | 'accounts' | 'webhooks';

export type Finding = Readonly<{
  /** A name such as `dispute:INV-2026-000003`, valid while the finding exists. */
  item: string;
  kind: FindingKind;
  /** A few words such as `on hold` or `unknown payer`. */
  state: string;
  tone: 'good' | 'warn' | 'bad';
  /** The subject, such as a document's number. */
  title: string;
  /** The partners affected. An empty list stands for the whole ledger. */
  partners: readonly Readonly<{ id: string; name: string }>[];
  money: Readonly<{ amount: string; currency: string }> | null;
  since: string;
  reason: string;
  /** One sentence on why the finding is urgent, without the remedy. Null if the finding is not urgent. */
  urgent: string | null;
  remedies: readonly Remedy[];
  /** The number of things that the finding stands for; 1 by default. An increase of this number is reported again. */
  count?: number;
}>;

/** Returns an urgent finding about the whole ledger or the machine. */
export const troubleOf = (
  kind: FindingKind,
  item: string,
  { urgent, since, remedies = [], count }: FindingDetails,
): Finding => ({
  ...{ item, kind, state: 'needs attention', tone: 'bad', title: item, partners: [], money: null, reason: '' },
  ...{ since: since.slice(0, 10), urgent, remedies },
  ...(count !== undefined && { count }),
});

type FindingDetails = Readonly<{
  urgent: string;
  /** Either a date or a time. */
  since: string;
  remedies?: readonly Remedy[];
  count?: number;
}>;

export const isUrgent = (finding: Finding): finding is Finding & { readonly urgent: string } => finding.urgent !== null;

export type FindingQuestion = Readonly<{
  /** The partners whose findings are read. Null reads all partners and the findings without a partner. */
  scope: Scope;
  today: string;
  now: number;
  limit: number | null;
}>;

export type ReadFindings = (tx: Transaction, question: FindingQuestion) => Promise<Finding[]>;
