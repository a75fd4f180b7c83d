/**
 * Sets, rotates, resumes and removes webhooks of partners. Each change has an audit event, which never contains a
 * secret.
 */

import { DateTime } from 'luxon';
import { Environment } from '#config/environment';
import { readInstallation } from '#database/installation.sql';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { partnerExists } from '#partners/clients.sql';
import { Actor, recordEvent } from '#people/audit-events';
import { changesBetween, fieldsOf, Value } from '#people/field-changes';
import { readLastArchived, readLastPosition } from './events.sql.ts';
import { urlProblem } from './post.ts';
import { keyCheck, keysByCheck, requiredKey, secretOf, secretText } from './signature.ts';
import { lockWebhook, readWebhooks, removeUrl, WebhookRow, writeWebhook } from './webhooks.sql.ts';

/** The period in which events are signed with the previous secret as well. */
const OVERLAP_HOURS = 24;

export type WebhookContext = Readonly<{
  environment: Environment;
  actor: Actor;
}>;

export type Webhook = Readonly<{
  partner_id: string;
  url: string;
  state: 'active' | 'failing' | 'paused';
  acknowledged: number;
  waiting: number;
  failing_since: string | null;
  last_failure: string | null;
  next_attempt_at: string | null;
  paused_at: string | null;
  previous_secret_until: string | null;
}>;

export type SetWebhook = Webhook &
  Readonly<{
    /** The new secret; null if the secret stays unchanged. */
    secret: string | null;
  }>;

export const webhookOf = (row: WebhookRow): Webhook => ({
  partner_id: row.partner_id,
  url: row.url ?? '',
  state: row.paused_at !== null ? 'paused' : row.failures > 0 ? 'failing' : 'active',
  acknowledged: row.acknowledged,
  waiting: row.waiting,
  failing_since: row.failing_since,
  last_failure: row.last_failure,
  next_attempt_at: row.paused_at === null ? row.next_attempt_at : null,
  paused_at: row.paused_at,
  previous_secret_until: row.previous_until,
});

/**
 * Sends a partner's events to a URL from now on, beginning after the position `after`. The default is the last
 * acknowledged position; for a new webhook, the partner's last event.
 */
export async function setWebhook(
  tx: Transaction,
  context: WebhookContext,
  { partnerId, url, after }: { partnerId: string; url: string; after?: number | undefined },
): Promise<SetWebhook> {
  const problem = urlProblem(url, isProduction(context));
  if (problem !== undefined) throw refuse('webhook_url_invalid', { url: withoutSecrets(url), reason: problem });
  const key = requiredKey(context.environment);
  await refuseUnknown(tx, partnerId);
  await lockWebhook(tx, { partnerId });
  const [before] = await readWebhooks(tx, partnerId);
  const last = await readLastPosition(tx, { partnerId });
  await checkPosition(tx, partnerId, after, last);
  const isNew = before === undefined || before.url === null;
  if (!isNew) checkKey(before, context);
  const version = isNew ? (before?.secret_version ?? 0) + 1 : before.secret_version;
  await writeWebhook(tx, {
    partnerId,
    url,
    secretVersion: version,
    keyCheck: isNew ? keyCheck(key) : before.key_check,
    previousUntil: isNew ? null : before.previous_until,
    acknowledged: after ?? (isNew ? last : before.acknowledged),
  });
  const details = { url: withoutSecrets(url), after: after ?? null };
  const row = await recordChange(tx, context, 'webhook.set', partnerId, details, before);
  return { ...webhookOf(row), secret: isNew ? await readSecret(tx, key, { partnerId, version }) : null };
}

async function readSecret(tx: Transaction, key: string, of: { partnerId: string; version: number }) {
  const { installation_id: installationId } = await readInstallation(tx);
  return secretText(secretOf(key, { installationId, ...of }));
}

/**
 * Makes a new secret. During OVERLAP_HOURS, events are signed with the previous secret as well, unless the previous key
 * is gone.
 */
export async function rotateWebhook(tx: Transaction, context: WebhookContext, partnerId: string): Promise<SetWebhook> {
  const { environment } = context;
  const key = requiredKey(environment);
  await lockWebhook(tx, { partnerId });
  const row = await rowNamed(tx, partnerId);
  const until = keysByCheck(environment).has(row.key_check) ? hoursAfter(environment.now(), OVERLAP_HOURS) : null;
  const version = row.secret_version + 1;
  await writeWebhook(tx, { ...stateOf(row), secretVersion: version, keyCheck: keyCheck(key), previousUntil: until });
  const after = await recordChange(tx, context, 'webhook.rotate', partnerId, { previous_until: until }, row);
  return { ...webhookOf(after), secret: await readSecret(tx, key, { partnerId, version }) };
}

/**
 * Resumes sending at once, even if the webhook is paused or the next attempt is not due yet. If a position is given,
 * sending starts from there.
 */
export async function resumeWebhook(
  tx: Transaction,
  context: WebhookContext,
  { partnerId, after }: { partnerId: string; after?: number | undefined },
): Promise<Webhook> {
  requiredKey(context.environment);
  await lockWebhook(tx, { partnerId });
  const row = await rowNamed(tx, partnerId);
  checkKey(row, context);
  await checkPosition(tx, partnerId, after, row.last);
  await writeWebhook(tx, { ...stateOf(row), acknowledged: after ?? row.acknowledged });
  return webhookOf(await recordChange(tx, context, 'webhook.resume', partnerId, { after: after ?? null }, row));
}

const stateOf = (row: WebhookRow) => ({
  partnerId: row.partner_id,
  url: row.url as string,
  secretVersion: row.secret_version,
  keyCheck: row.key_check,
  previousUntil: row.previous_until,
  acknowledged: row.acknowledged,
});

/** Stops sending. A webhook that is set later gets a new secret. */
export async function removeWebhook(
  tx: Transaction,
  context: WebhookContext,
  partnerId: string,
): Promise<{ partner_id: string; removed: true }> {
  await lockWebhook(tx, { partnerId });
  const row = await rowNamed(tx, partnerId);
  await removeUrl(tx, { partnerId });
  await recordChange(tx, context, 'webhook.remove', partnerId, { acknowledged: row.acknowledged }, row);
  return { partner_id: partnerId, removed: true };
}

export const webhookNamed = async (tx: Transaction, partnerId: string): Promise<Webhook> =>
  webhookOf(await rowNamed(tx, partnerId));

async function rowNamed(tx: Transaction, partnerId: string) {
  const [row] = await readWebhooks(tx, partnerId);
  if (row !== undefined && row.url !== null) return row;
  await refuseUnknown(tx, partnerId);
  throw refuse('webhook_missing', { partner_id: partnerId });
}

async function refuseUnknown(tx: Transaction, partnerId: string) {
  if (!(await partnerExists(tx, { partnerId }))) throw refuse('partner_unknown', { partner_id: partnerId });
}

export const isProduction = ({ environment }: Pick<WebhookContext, 'environment'>) => environment.name === 'production';

const hoursAfter = (now: DateTime<true>, hours: number) => now.plus({ hours }).toUTC().toISO();

/** Refuses a different key, because the partner's server could not check its signatures. */
function checkKey(row: WebhookRow, { environment }: WebhookContext) {
  if (keysByCheck(environment).has(row.key_check)) return;
  const reason = `is not the key that the secret of ${row.partner_id} was derived from`;
  throw refuse('webhook_key_unusable', { variable: 'WEBHOOK_SIGNING_KEY', reason });
}

async function checkPosition(tx: Transaction, partnerId: string, after: number | undefined, last: number) {
  if (after === undefined) return;
  const archived = await readLastArchived(tx, { partnerId });
  if (after >= archived && after <= last) return;
  throw refuse('webhook_position_unknown', { partner_id: partnerId, position: after, last, archived });
}

/** Removes the query of a URL, because partners put their own keys there. */
export function withoutSecrets(url: string) {
  if (!URL.canParse(url)) return url.replace(/[?#].*$/s, '').slice(0, 200);
  const { origin, pathname, protocol } = new URL(url);
  return /^https?:$/.test(protocol) ? `${origin}${pathname}` : `${protocol}…`;
}

/** Records a change with the changed fields, which the database demands. Returns the webhook after it. */
async function recordChange(
  tx: Transaction,
  { actor, environment }: WebhookContext,
  action: string,
  subject: string,
  details: Record<string, unknown>,
  before: WebhookRow | undefined,
) {
  const [after] = (await readWebhooks(tx, subject)) as [WebhookRow];
  const changes = changesBetween(fieldsFor(before), fieldsFor(after)).map((change) => ({
    ...change,
    ...{ old: withoutQuery(change.old), new: withoutQuery(change.new) },
  }));
  await recordEvent(tx, actor, { action, subject, details: { ...details, changes }, now: environment.now().toISO() });
  return after;
}

function fieldsFor(row: WebhookRow | undefined) {
  if (row === undefined) return fieldsOf({});
  const { url, secret_version, key_check, acknowledged } = row;
  return fieldsOf({ url, secret_version, key_check, acknowledged });
}

/** Leaves out the query of a URL, as withoutSecrets does. */
const withoutQuery = (value: Value | null) => (typeof value === 'string' ? value.replace(/\?.*$/s, '') : value);
