/** Verifies signatures of Stripe's webhooks with the `stripe` package. */
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
    if (now.getTime() / 1000 - seconds > TOLERANCE_SECONDS + 1) {
      return `its signature is more than ${TOLERANCE_SECONDS} seconds old`;
    }
    return tooFarAhead(header, now);
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
  async problem(body, header, secrets, now) {
    if (header === undefined) return 'the header Stripe-Signature is missing';
    const { default: Stripe } = await import('stripe');
    // The signature covers the raw bytes. Malformed events are refused later.
    const signatures = Stripe.webhooks.signature as NonNullable<typeof Stripe.webhooks.signature>;
    let reason = 'no webhook secret is set';
    for (const secret of secrets) {
      try {
        signatures.verifyHeader(body, header, secret.trim(), TOLERANCE_SECONDS, undefined, now.getTime());
        return tooFarAhead(header, now);
      } catch (error) {
        if (!(error instanceof Stripe.errors.StripeSignatureVerificationError)) throw error;
        reason = error.message.split('\n', 1)[0] as string;
      }
    }
    return reason;
  },
};

/** Returns seconds since 1970, or NaN. If the header states several times, the last time is used, as in the package. */
const timeOf = (header: string) =>
  Number.parseInt(
    header
      .match(/(?:^|,)t=(\d{1,12})(?=,|$)/g)
      ?.at(-1)
      ?.replace(/^,?t=/, '') ?? '',
    10,
  );

/** The package does not check for times in the future. */
function tooFarAhead(header: string, now: Date) {
  if (timeOf(header) - now.getTime() / 1000 <= TOLERANCE_SECONDS) return undefined;
  return `its signature is more than ${TOLERANCE_SECONDS} seconds ahead of our clock`;
}
