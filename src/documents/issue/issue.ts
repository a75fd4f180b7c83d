/**
 * IssueContext documents for rows that are totalled: by the close, and again by a rerun. The caller holds the ledger's lock,
 * so numbers can be taken by looking. Refusals: settings_incomplete, clock_behind.
 */

import {
  applyOpenCredit,
  type Issue,
  insertDocumentLines,
  insertDocuments,
  queueSendings,
  readConservation,
  readLatestAct,
  recordIssuerVersion,
} from '../../close/queries.ts';
import type { Environment } from '../../config/environment.ts';
import { missingSettings } from '../../config/missing-settings.ts';
import { type Settings, settingsFile } from '../../config/settings.ts';
import type { Transaction } from '../../database/transaction.ts';
import { refuse } from '../../errors/refusals.ts';
import type { Month } from '../../month.ts';
import type { Actor } from '../../people/audit-events.ts';

/** Who issues, by which settings and in which environment. */
export interface IssueContext {
  readonly environment: Environment;
  readonly settings: Settings;
  readonly actor: Actor;
}

/** Today in the issuer's zone, `YYYY-MM-DD`: the date of whatever happens to documents now. */
export function todayOf({ environment, settings }: Pick<IssueContext, 'environment' | 'settings'>): string {
  return environment.now().setZone(settings.time_zone).toFormat('yyyy-MM-dd');
}

/** In production no document may name an issuer who is not there yet. */
export function refuseIncompleteSettings({
  environment,
  settings,
}: Pick<IssueContext, 'environment' | 'settings'>): void {
  if (environment.name !== 'production') return;
  const missing = missingSettings(settings).map((each) => each.path);
  if (missing.length > 0) throw refuse('settings_incomplete', { file: settingsFile(environment), missing });
}

/** Documents are dated in the order of their numbers, and what happens to them after it: a clock that went back dates none. */
export async function refuseClockBehind(tx: Transaction, today: string): Promise<void> {
  const latest = await readLatestAct(tx);
  if (latest !== undefined && today < latest.dated) {
    throw refuse('clock_behind', { today, latest: latest.dated, number: latest.number, act: latest.act });
  }
}

/** What the documents issued now have in common. `record` records the event that they are issued by. */
export async function beginIssue(
  tx: Transaction,
  context: IssueContext,
  month: Month,
  askedFor: Issue['askedFor'],
  record: (now: string) => Promise<number>,
): Promise<Issue> {
  const { environment, settings } = context;
  refuseIncompleteSettings(context);
  const issuedOn = todayOf(context);
  await refuseClockBehind(tx, issuedOn);
  const now = environment.now().toISO();
  return {
    month,
    issuedOn,
    termsDays: settings.payment_terms_days,
    issuerVersionId: await recordIssuerVersion(tx, settings.issuer, now),
    sandbox: environment.name === 'sandbox',
    now,
    askedFor,
    eventId: await record(now),
    mailDomain: mailDomain(settings),
  };
}

/** Issues the documents of the rows in `month_lines`, with their lines, their credit and their sendings. */
export async function issueDocuments(tx: Transaction, issue: Issue): Promise<void> {
  await insertDocuments(tx, issue);
  await insertDocumentLines(tx, issue.month);
  await applyOpenCredit(tx, issue);
  await assertConservation(tx, issue.month);
  await queueSendings(tx, issue);
}

async function assertConservation(tx: Transaction, month: Month): Promise<void> {
  const { rows, lines, documents, differences } = await readConservation(tx);
  if (rows !== lines || rows !== documents || differences !== 0) {
    throw new Error(
      `the documents of ${month} do not add up to its rows: ${rows} rows, ${lines} on lines, ${documents} on ` +
        `documents, ${differences} documents with other sums`,
    );
  }
}

/** The right-hand side of the Message-IDs: the sender's mail domain. */
export function mailDomain(settings: Settings): string {
  return settings.mail_from.split('@').at(-1) || 'reckoner.invalid';
}
