/** Verifies signatures of Stripe's webhooks: HMAC-SHA256 over the time and the raw body. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { WebhookVerifier } from '#processors/processor';

/** The largest accepted difference between the time of a signature and the current time. */
const TOLERANCE_SECONDS = 300;

export const webhooks: WebhookVerifier = {
  secretVariable: (account) => ['STRIPE_WEBHOOK_SECRET', account ?? []].flat().join('_'),
  secrets: ({ stripeWebhookSecrets }, account = '') => stripeWebhookSecrets.get(account) ?? [],
  header: 'stripe-signature',
  headerProblem(header, now) {
    if (header === undefined) return 'the header Stripe-Signature is missing';
    const seconds = timeOf(header);
    if (Number.isNaN(seconds)) return 'the header Stripe-Signature has no time';
    if (!/(?:^|,)v1=[0-9a-f]{64}(?=,|$)/.test(header)) return 'the header Stripe-Signature has no signature v1';
    const old = Math.floor(now.getTime() / 1000) - seconds;
    if (old > TOLERANCE_SECONDS) return `its signature is more than ${TOLERANCE_SECONDS} seconds old`;
    if (-old > TOLERANCE_SECONDS) return `its signature is more than ${TOLERANCE_SECONDS} seconds ahead of our clock`;
    return undefined;
  },
  isSigned(body, header = '', secrets) {
    const signatures = [...header.matchAll(/(?:^|,)v1=([0-9a-f]{64})(?=,|$)/g)].map(([, hex = '']) =>
      Buffer.from(hex, 'hex'),
    );
    return secrets.some((secret) => {
      const ours = createHmac('sha256', secret.trim())
        .update(`${timeOf(header)}.`)
        .update(body)
        .digest();
      return signatures.some((signature) => timingSafeEqual(signature, ours));
    });
  },
};

/** Returns seconds since 1970, or NaN. If the header states several times, the last time is used, as in Stripe's package. */
const timeOf = (header: string) =>
  Number.parseInt(
    header
      .match(/(?:^|,)t=(\d{1,12})(?=,|$)/g)
      ?.at(-1)
      ?.replace(/^,?t=/, '') ?? '',
    10,
  );
