import Stripe from 'stripe';
import { LinkMark, LinkOrder, MadeLink, PaymentLinks, ProcessorAccess } from '#processors/processor';
import { StripeCalls } from './calls.ts';
import { StripeCheckouts } from './checkouts.ts';

const PAGE = 100;

export function linkRequest(order: LinkOrder): Stripe.PaymentLinkCreateParams {
  const metadata = {
    installation: order.installation,
    invoice: order.invoice,
    version: String(order.version),
    partner_id: order.partnerId,
    month: order.month,
  };
  return {
    line_items: [
      {
        quantity: 1,
        price_data: {
          currency: order.currency.toLowerCase(),
          unit_amount: order.unitAmount,
          product_data: { name: `Invoice ${order.invoice}` },
        },
      },
    ],
    payment_method_types: [...order.methods],
    restrictions: { completed_sessions: { limit: 1 } },
    submit_type: 'pay',
    inactive_message: `Invoice ${order.invoice} is paid, or its amount has changed. Please use its latest payment page.`,
    metadata,
    payment_intent_data: { description: `Invoice ${order.invoice}`, metadata },
  };
}

export const idempotencyKey = (mark: LinkMark, attempt: number) =>
  `reckoner-${mark.installation}-${mark.invoice}-v${mark.version}-${attempt}`;

export const openStripeLinks = (access: ProcessorAccess): PaymentLinks => new StripeLinks(access);

class StripeLinks implements PaymentLinks {
  readonly checkouts: StripeCheckouts;
  private readonly stripe: StripeCalls;

  constructor(access: ProcessorAccess) {
    this.stripe = new StripeCalls(access);
    this.checkouts = new StripeCheckouts(this.stripe);
  }

  async make(request: object, idempotencyKey: string): Promise<MadeLink> {
    const link = await this.stripe.call((client) =>
      client.paymentLinks.create(request as Stripe.PaymentLinkCreateParams, { idempotencyKey }),
    );
    return { providerId: link.id, url: link.url };
  }

  async find(mark: LinkMark, isOlder: (providerIds: string[]) => Promise<boolean>): Promise<MadeLink[]> {
    const found: MadeLink[] = [];
    // Links are read from the list, newest first, because links have no date and cannot be searched by metadata.
    for (let after: string | undefined; ; ) {
      const cursor = after === undefined ? {} : { starting_after: after };
      const page = await this.stripe.ask((client) =>
        client.paymentLinks.list({ active: true, limit: PAGE, ...cursor }),
      );
      for (const link of page.data) {
        const { installation, invoice, version } = link.metadata;
        if (installation === mark.installation && invoice === mark.invoice && version === String(mark.version)) {
          found.unshift({ providerId: link.id, url: link.url });
        }
      }
      const last = page.data.at(-1);
      if (!page.has_more || last === undefined || (await isOlder(page.data.map(({ id }) => id)))) return found;
      after = last.id;
    }
  }

  async close(providerId: string) {
    await this.stripe.ask((client) => client.paymentLinks.update(providerId, { active: false }));
    return this.expireOpenSessions(providerId);
  }

  private async expireOpenSessions(providerId: string) {
    let expired = 0;
    for (;;) {
      const open = await this.stripe.ask((client) =>
        client.checkout.sessions.list({ payment_link: providerId, status: 'open', limit: PAGE }),
      );
      for (const session of open.data) {
        if ((await this.checkouts.expire(session.id)) === 'expired') expired += 1;
      }
      if (!open.has_more) return expired;
    }
  }
}
