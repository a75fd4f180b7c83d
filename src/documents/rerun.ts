/**
 * Running documents again: they are computed anew from the ledger and the partners' present details, and where they
 * differ they are voided and replaced. Refusals: document_unknown, document_void, not_of_the_ledger, payment_applied,
 * credit_used, document_written_off, document_on_hold, month_not_closed, settings_incomplete, clock_behind.
 */
import { instructionsFor } from '../config/instructions.ts';
import { lockLedgerWhole } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import { Refusal, refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { readClosedMonth } from '../ledger/closed-months.ts';
import type { Month } from '../month.ts';
import { recordEvent } from '../people/audit-events.ts';
import { documentToCorrect, refuseSettled } from './correctable.ts';
import { voidDocuments } from './corrections.sql.ts';
import { beginIssue, type IssueContext } from './issue/context.ts';
import { draftMonth, keepReplacements, readDraftCurrencies } from './issue/drafts.ts';
import { issueDocuments } from './issue/issue.ts';
import { recordIssuerVersion } from './issue/issuer-version.ts';
import { type RerunCandidate, readReplacements, readRerunCandidates } from './rerun.sql.ts';

export interface RerunOptions {
  /** Due by the present terms, counted from today, instead of on the old due date. */
  readonly newTerms: boolean;
  /** Finds the documents that would show another payment link under the present settings. */
  readonly otherLinks?: (tx: Transaction, documentIds: readonly number[]) => Promise<ReadonlySet<number>>;
}

export interface Rerun {
  readonly month: Month;
  /** How many documents would not differ. */
  readonly unchanged: number;
  readonly replaced: readonly {
    readonly number: string;
    readonly replaced_by: string;
    readonly why: readonly string[];
  }[];
  /** Documents issued for those that were void without a replacement. */
  readonly issued: readonly { readonly number: string; readonly replaces: string }[];
  /** Documents that differ but may not be replaced, with the reason. */
  readonly refused: readonly { readonly number: string; readonly code: string; readonly message: string }[];
}

/** Runs one document again. Refuses a document that differs but may not be replaced. */
export async function rerunDocument(
  tx: Transaction,
  context: IssueContext,
  number: string,
  options: RerunOptions,
): Promise<Rerun> {
  const document = await documentToCorrect(tx, number);
  const { month, purpose } = document;
  if (purpose !== 'month') throw refuse('not_of_the_ledger', { number, purpose });
  const candidates = await readCandidates(tx, context, month, options, document.partner_id);
  const own = candidates.filter((each) => each.number === number);
  for (const each of own.filter(differs)) refuseReplacing(each);
  return rerun(tx, context, month, options, own, number);
}

/** Runs a whole month again, and replaces its void documents that have no replacement. */
export async function rerunMonth(
  tx: Transaction,
  context: IssueContext,
  month: Month,
  options: RerunOptions,
): Promise<Rerun> {
  await lockLedgerWhole(tx);
  return rerun(tx, context, month, options, await readCandidates(tx, context, month, options), month);
}

const differs = (candidate: RerunCandidate): boolean => !candidate.void && candidate.differences.length > 0;

async function readCandidates(
  tx: Transaction,
  { environment, settings }: IssueContext,
  month: Month,
  { newTerms, otherLinks }: RerunOptions,
  partnerId?: string,
): Promise<RerunCandidate[]> {
  const closed = await readClosedMonth(tx, month);
  if (closed === undefined) throw refuse('month_not_closed', { month });
  await draftMonth(tx, month, closed.previous, partnerId);
  const currencies = await readDraftCurrencies(tx);
  const candidates = await readRerunCandidates(tx, {
    month,
    partnerId,
    issuerVersionId: await recordIssuerVersion(tx, settings.issuer, environment.now().toISO()),
    instructions: Object.fromEntries(currencies.map((each) => [each, instructionsFor(settings, each) ?? null])),
    termsDays: settings.payment_terms_days,
    newTerms,
  });
  const live = candidates.filter((each) => !each.void).map((each) => each.document_id);
  const other = await otherLinks?.(tx, live);
  return candidates.map((each) =>
    other?.has(each.document_id) ? { ...each, differences: [...each.differences, 'the payment link'] } : each,
  );
}

async function rerun(
  tx: Transaction,
  context: IssueContext,
  month: Month,
  options: RerunOptions,
  candidates: readonly RerunCandidate[],
  subject: string,
): Promise<Rerun> {
  failpoint('rerun.compared');
  const gaps = candidates.filter((each) => each.void);
  const different = candidates.filter(differs);
  const refusals = new Map(different.map((each) => [each.number, refusalOf(each)]));
  const replacing = different.filter((each) => refusals.get(each.number) === undefined);
  const again = [...gaps, ...replacing].map((each) => each.document_id);
  let successors = new Map<string, string>();
  if (again.length > 0) {
    const details = { replaced: replacing.map((each) => each.number), issued: gaps.length, newTerms: options.newTerms };
    const batch = await beginIssue(tx, context, { month, purpose: 'month', askedFor: 'rerun' }, (now) =>
      recordEvent(tx, context.actor, { action: 'invoice.rerun', subject, details, now }),
    );
    const documents = replacing.map(({ document_id, differences }) => ({
      document_id,
      reason: reasonFor(differences),
    }));
    await voidDocuments(tx, { documents, today: batch.issuedOn, now: batch.now, eventId: batch.eventId });
    await keepReplacements(tx, again, options.newTerms);
    await issueDocuments(tx, batch);
    successors = new Map((await readReplacements(tx, again)).map((each) => [each.number, each.replaced_by]));
  }
  const successorOf = (number: string) => successors.get(number) as string;
  failpoint('rerun.issued');
  return {
    month,
    unchanged: candidates.length - gaps.length - different.length,
    replaced: replacing.map(({ number, differences }) => ({
      number,
      replaced_by: successorOf(number),
      why: differences,
    })),
    issued: gaps.map(({ number }) => ({ number: successorOf(number), replaces: number })),
    refused: [...refusals].flatMap(([number, refusal]) =>
      refusal === undefined ? [] : [{ number, code: refusal.code, message: refusal.message }],
    ),
  };
}

/** Why a document was replaced, as its void copy says it to the partner. */
const reasonFor = (differences: readonly string[]): string =>
  `Replaced: ${differences.map((each) => each.replace("the partner's", 'your').replace("the issuer's", 'our')).join(', ')} changed.`;

function refuseReplacing(candidate: RerunCandidate): void {
  refuseSettled(candidate, 'run again');
  const { number, held_at, hold_reason } = candidate;
  if (held_at !== null) throw refuse('document_on_hold', { number, since: held_at, reason: hold_reason ?? '' });
}

function refusalOf(candidate: RerunCandidate): Refusal | undefined {
  try {
    refuseReplacing(candidate);
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}
