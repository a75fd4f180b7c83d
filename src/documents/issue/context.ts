/**
 * The issuer, the settings, and what documents issued together have in common. Refusals: settings_incomplete,
 * clock_behind.
 */
import { missingSettings } from '#config/missing-settings';
import { Settings, settingsFile } from '#config/settings';
import { todayOf } from '#config/today';
import { SchemaComparison } from '#database/schema';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { ActorContext, Installation } from '#people/audit-events';
import { IssueBatch, readLatestAction } from './issue.sql.ts';
import { recordIssuerVersion } from './issuer-version.sql.ts';

export type IssueContext = ActorContext &
  Readonly<{
    /**
     * Confirms that this machine's clock is right, and that the clock that dated the latest action ran ahead. The new
     * action then gets that date, to keep the order.
     */
    onLatestDate?: boolean | undefined;
    /**
     * The schema comparison of a caller that prevents later changes of it. If absent, a close compares the schema itself.
     */
    schema?: SchemaComparison | undefined;
  }>;

export function refuseIncompleteSettings({ environment, settings }: Installation) {
  if (environment.name !== 'production') return;
  const missing = missingSettings(settings).map((each) => each.path);
  if (missing.length > 0) throw refuse('settings_incomplete', { file: settingsFile(environment), missing });
}

/**
 * The date of an action on documents: today. A date before the latest action is refused, because dates follow the order
 * of document numbers.
 */
export async function dateOfAction(tx: Transaction, context: IssueContext) {
  const today = todayOf(context);
  const latest = await readLatestAction(tx);
  if (latest === undefined || today >= latest.dated) return today;
  if (context.onLatestDate) return latest.dated;
  throw refuse('clock_behind', { today, latest: latest.dated, number: latest.number, action: latest.action });
}

/** Checks that documents may be issued today. `record` records the event that issues them, and returns its id. */
export async function beginIssue(
  tx: Transaction,
  context: IssueContext,
  batch: Pick<IssueBatch, 'month' | 'purpose' | 'askedFor'>,
  record: (now: string) => Promise<number>,
): Promise<IssueBatch> {
  const { environment, settings } = context;
  refuseIncompleteSettings(context);
  const issuedOn = await dateOfAction(tx, context);
  const now = environment.now().toISO();
  return {
    ...batch,
    issuedOn,
    termsDays: settings.payment_terms_days,
    creditAtClose: settings.credit_at_close,
    issuerVersionId: await recordIssuerVersion(tx, settings.issuer, now),
    sandbox: environment.name === 'sandbox',
    now,
    eventId: await record(now),
    mailDomain: mailDomain(settings),
  };
}

/** The right-hand side of the Message-IDs: the sender's mail domain. */
export function mailDomain(settings: Settings) {
  return settings.mail_from.split('@').at(-1) || 'reckoner.invalid';
}
