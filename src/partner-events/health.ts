/** How the webhooks of partners stand, for the status and the metrics. */
import type { DateTime } from 'luxon';
import { type Environment, WEBHOOK_SIGNING_KEY } from '../config/environment.ts';
import type { Transaction } from '../database/transaction.ts';
import { minuteOf, plural } from '../text.ts';
import { PAUSED_AFTER_HOURS } from './send.ts';
import { keyCheck } from './signature.ts';
import { type Webhook, webhookOf, withoutSecrets } from './webhook.ts';
import { readWebhooks } from './webhook-queries.ts';

export interface WebhookHealth {
  readonly active: number;
  /** Events that are published and not acknowledged. */
  readonly waiting: number;
  readonly troubled: readonly (Pick<
    Webhook,
    'partner_id' | 'url' | 'state' | 'waiting' | 'failing_since' | 'paused_at' | 'last_failure'
  > & {
    /** The key of this environment is not the one that the secret is derived from. */
    readonly unsigned: boolean;
  })[];
}

export async function readWebhookHealth(
  tx: Transaction,
  { webhookKey: key }: Pick<Environment, 'webhookKey'>,
): Promise<WebhookHealth> {
  const check = key === undefined ? undefined : keyCheck(key);
  const all = (await readWebhooks(tx)).map((row) => ({
    ...webhookOf(row),
    url: withoutSecrets(row.url ?? ''),
    unsigned: row.key_check !== check,
  }));
  const troubled = all.filter(({ state, unsigned }) => state !== 'active' || unsigned);
  return {
    active: all.length - troubled.length,
    waiting: all.reduce((sum, { waiting }) => sum + waiting, 0),
    troubled: troubled.map(({ partner_id, url, state, waiting, failing_since, paused_at, last_failure, unsigned }) => ({
      ...{ partner_id, url, state, waiting, failing_since, paused_at, last_failure, unsigned },
    })),
  };
}

/** A partner's server may be down for a while without anybody here having to know. */
const LATE_HOURS = 1;

/** A sentence for each webhook that needs attention, and what it is about, which stays as it is. */
export function attentionToWebhooks(
  { troubled }: WebhookHealth,
  now: DateTime<true>,
): { sentence: string; about: string }[] {
  return troubled.flatMap((each) => {
    const { partner_id: id, state, failing_since: since, last_failure: reason, paused_at: paused } = each;
    const waits = `${plural(each.waiting, 'event')} ${each.waiting === 1 ? 'is' : 'are'} waiting`;
    if (each.unsigned) {
      const sentence =
        `The webhook of ${id} sends nothing: ${WEBHOOK_SIGNING_KEY} is not the key that its secret is derived from; ` +
        `${waits}. Set the variable as it was, or run 'reckoner webhook rotate ${id}' and give the partner the new secret.`;
      return [{ sentence, about: `webhook of ${id} unsigned` }];
    }
    if (state === 'paused') {
      const sentence =
        `The webhook of ${id} is paused since ${minuteOf(paused ?? '')} (${reason}); ${waits}. Ask the partner, then run ` +
        `'reckoner webhook resume ${id}', or 'reckoner webhook remove ${id}'.`;
      return [{ sentence, about: `webhook of ${id} paused` }];
    }
    if (since === null || (now.toMillis() - Date.parse(since)) / 3_600_000 < LATE_HOURS) return [];
    const sentence =
      `The webhook of ${id} fails since ${minuteOf(since)} (${reason}); ${waits}. Ask the partner. It is tried again ` +
      `until it is paused after ${PAUSED_AFTER_HOURS} hours.`;
    return [{ sentence, about: `webhook of ${id} failing` }];
  });
}
