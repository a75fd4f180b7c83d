/**
 * Reruns documents: recomputes them from the ledger and the partners' current details. A void document without a
 * replacement is issued again, and keeps its hold. A live one that would differ is voided and replaced. Refusals:
 * document_unknown, document_void, not_of_the_ledger, payment_applied, credit_used, document_written_off,
 * document_on_hold, month_not_closed, partner_unknown, settings_incomplete, clock_behind, tax_rule_missing.
 */
import { keepArchives } from '#archive/archive.sql';
import { needRows } from '#archive/rows';
import { instructionsFor } from '#config/instructions';
import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { Refusal, refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { readClosedMonth } from '#ledger/closed-months.sql';
import { readPartners } from '#partners/partners.sql';
import { recordEvent } from '#people/audit-events';
import { Remedy, toDo } from '#remedy';
import { Amount, Month } from '#values';
import { refuseHeld, refuseSettled } from './correctable.ts';
import { voidDocuments } from './corrections.sql.ts';
import { readDocuments } from './documents.sql.ts';
import { holdDocument } from './hold.ts';
import { beginIssue, IssueContext } from './issue/context.ts';
import { keepReplacements, readDraftCurrencies } from './issue/drafts.sql.ts';
import { draftMonth } from './issue/drafts.ts';
import { issueDocuments } from './issue/issue.ts';
import { recordIssuerVersion } from './issue/issuer-version.sql.ts';
import { RerunCandidate, readLastOfChain, readReplacements, readRerunCandidates } from './rerun.sql.ts';

export type RerunOptions = Readonly<{
  /** Counts the due date of a replacement from today by the current terms, instead of keeping it. */
  newTerms: boolean;
  /** Finds the documents that would show a different payment link under the current settings. */
  otherLinks?: (tx: Transaction, documentIds: readonly number[]) => Promise<ReadonlySet<number>>;
}>;

type MonthRerunOptions = RerunOptions &
  Readonly<{
    /** Also replaces live documents that differ. */
    changed: boolean;
    partnerId?: string | undefined;
  }>;

export type Rerun = Readonly<{
  month: Month;
  unchanged: readonly string[];
  replaced: readonly Readonly<{
    number: string;
    replaced_by: string;
    why: readonly string[];
  }>[];
  issued: readonly Readonly<{ number: string; replaces: string }>[];
  /** Documents that differ but were only listed. */
  differing: readonly Readonly<{
    number: string;
    why: readonly string[];
    /** Why it could not be replaced either; null for a replaceable document. */
    refused: string | null;
    remedies: readonly Remedy[];
  }>[];
  refused: readonly Readonly<{
    number: string;
    code: string;
    message: string;
    remedies: readonly Remedy[];
  }>[];
}>;

/**
 * A void document gets its replacement, unless it has a live one. Refuses a live document that differs but may not be
 * replaced.
 */
export async function rerunDocument(
  tx: Transaction,
  context: IssueContext,
  number: string,
  options: RerunOptions,
): Promise<Rerun> {
  await keepArchives(tx);
  await lockLedgerWhole(tx);
  const document = await documentToRerun(tx, number);
  const candidates = await readCandidates(tx, context, document.month, options, document.partner_id);
  const own = candidates.filter((each) => each.number === document.number);
  for (const each of own.filter(differs)) refuseReplacing(each);
  return rerun(tx, context, document.month, { ...options, changed: true }, own, number);
}

/** The live document with this number or, if it and its last replacement are void, the latter. */
async function documentToRerun(tx: Transaction, number: string) {
  const [document] = await readDocuments(tx, { number });
  if (document === undefined) throw refuse('document_unknown', { number });
  const { voided_on, month, purpose, partner_id } = document;
  const last =
    voided_on === null ? { number, void: false } : await readLastOfChain(tx, { documentId: document.document_id });
  if (voided_on !== null && (purpose !== 'month' || !last.void)) {
    const replaced_by = last.number === number ? null : last.number;
    throw refuse('document_void', { number, voided_on, purpose, month, replaced_by });
  }
  if (purpose === 'opening') {
    const remedies = [toDo('Reverse it', 'opening.reverse', { numbers: [number] })];
    throw refuse('carried_over', {
      number,
      action: 'run again',
      instead: 'A corrected file carries it over again.',
      remedies,
    });
  }
  if (purpose !== 'month') throw refuse('not_of_the_ledger', { number, purpose });
  return { number: last.number, month, partner_id };
}

/** Issues the missing documents of a month and, with `changed`, replaces those that differ. */
export async function rerunMonth(
  tx: Transaction,
  context: IssueContext,
  month: Month,
  options: MonthRerunOptions,
): Promise<Rerun> {
  await keepArchives(tx);
  await lockLedgerWhole(tx);
  const { partnerId } = options;
  if (partnerId !== undefined && (await readPartners(tx, partnerId)).length === 0) {
    throw refuse('partner_unknown', { partner_id: partnerId });
  }
  const candidates = await readCandidates(tx, context, month, options, partnerId);
  return rerun(tx, context, month, options, candidates, month);
}

const differs = (candidate: RerunCandidate) => !candidate.void && candidate.differences.length > 0;

async function readCandidates(
  tx: Transaction,
  { environment, settings }: IssueContext,
  month: Month,
  { newTerms, otherLinks }: RerunOptions,
  partnerId?: string,
) {
  const closed = await readClosedMonth(tx, month);
  if (closed === undefined) throw refuse('month_not_closed', { month });
  await needRows(tx, { from: month, to: month, partnerIds: partnerId === undefined ? undefined : [partnerId] });
  await draftMonth(tx, settings, { month, previous: closed.previous, covered: 0, partnerId: partnerId ?? null });
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
  { newTerms, changed }: Pick<MonthRerunOptions, 'newTerms' | 'changed'>,
  candidates: readonly RerunCandidate[],
  subject: string,
) {
  failpoint('rerun.compared');
  const gaps = candidates.filter((each) => each.void);
  const different = candidates.filter(differs);
  const refusals = new Map(different.map((each) => [each.number, refusalOf(each)]));
  const replacing = changed ? different.filter((each) => refusals.get(each.number) === undefined) : [];
  const again = [...gaps, ...replacing].map((each) => each.document_id);
  let successors = new Map<string, string>();
  if (again.length > 0) {
    const details = { replaced: replacing.map((each) => each.number), issued: gaps.length, newTerms };
    const batch = await beginIssue(tx, context, { month, purpose: 'month', askedFor: 'rerun' }, (now) =>
      recordEvent(tx, context.actor, { action: 'invoice.rerun', subject, details, now }),
    );
    const documents = replacing.map(({ document_id, differences }) => ({
      document_id,
      reason: reasonFor(differences),
    }));
    await voidDocuments(tx, { documents, today: batch.issuedOn, now: batch.now, eventId: batch.eventId });
    await keepReplacements(tx, again, newTerms);
    await issueDocuments(tx, batch);
    successors = new Map(
      (await readReplacements(tx, { documentIds: again })).map((each) => [each.number, each.replaced_by]),
    );
  }
  const successorOf = (number: string) => successors.get(number) as string;
  // Only a release ends a hold, so a void does not.
  for (const { number, held_at, hold_reason, held_by_close } of gaps) {
    if (held_at === null) continue;
    const by = held_by_close ? 'close' : 'rerun';
    await holdDocument(tx, context, { number: successorOf(number), reason: hold_reason ?? '', by });
  }
  failpoint('rerun.issued');
  return {
    month,
    unchanged: candidates.filter((each) => !each.void && !differs(each)).map((each) => each.number),
    replaced: replacing.map(({ number, differences }) => ({
      number,
      replaced_by: successorOf(number),
      why: differences,
    })),
    issued: gaps.map(({ number }) => ({ number: successorOf(number), replaces: number })),
    differing: changed
      ? []
      : different.map(({ number, differences }) => ({
          number,
          why: differences,
          refused: refusals.get(number)?.message ?? null,
          remedies: refusals.get(number)?.remedies ?? [],
        })),
    refused: [...(changed ? refusals : [])].flatMap(([number, refusal]) =>
      refusal === undefined
        ? []
        : [{ number, code: refusal.code, message: refusal.message, remedies: refusal.remedies }],
    ),
  };
}

/** The reason for replacing a document, as the void copy explains it to the partner. */
const reasonFor = (differences: readonly string[]) =>
  `Replaced: ${differences.map((each) => each.replace("the partner's", 'your').replace("the issuer's", 'our')).join(', ')} changed.`;

function refuseReplacing(candidate: RerunCandidate) {
  refuseSettled(candidate, 'run again');
  refuseHeld(candidate);
  const { number, currency, disputed_on, disputed } = candidate;
  // The dispute would end with the invoice, and the replacement would be dunned.
  if (disputed_on !== null) {
    const amount = Amount.of(disputed ?? '0', currency).forPeople();
    throw refuse('invoice_disputed', { number, since: disputed_on, amount });
  }
}

function refusalOf(candidate: RerunCandidate) {
  try {
    refuseReplacing(candidate);
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}
