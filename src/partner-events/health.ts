import { Environment } from '#config/environment';
import { Transaction } from '#database/transaction';
import { keysByCheck } from './signature.ts';
import { Webhook, webhookOf, withoutSecrets } from './webhook.ts';
import { readWebhooks } from './webhooks.sql.ts';

export type WebhookHealth = Readonly<{
  active: number;
  /** The number of events that are published but not acknowledged. */
  waiting: number;
  troubled: readonly (Webhook & {
    /** Whether the secret was derived from a different key than the key of this environment. */
    readonly unsigned: boolean;
  })[];
}>;

export async function readWebhookHealth(
  tx: Transaction,
  environment: Pick<Environment, 'webhookKey' | 'webhookKeyBefore'>,
): Promise<WebhookHealth> {
  const keys = keysByCheck(environment);
  const all = (await readWebhooks(tx)).map((row) => ({
    ...webhookOf(row),
    url: withoutSecrets(row.url ?? ''),
    unsigned: !keys.has(row.key_check),
  }));
  const troubled = all.filter(({ state, unsigned }) => state !== 'active' || unsigned);
  return {
    active: all.length - troubled.length,
    waiting: all.reduce((sum, { waiting }) => sum + waiting, 0),
    troubled,
  };
}
