import { PaymentProcessor } from './processor.ts';
import { stripe } from './stripe/stripe.ts';

export * from './stripe/splits/plan.ts';

export const PROCESSORS: readonly PaymentProcessor[] = [stripe];

/** The processor of connected accounts, split requests and payment events. */
export const PROCESSOR: PaymentProcessor = stripe;

export function processorOf(name: string) {
  const found = PROCESSORS.find((each) => each.name === name);
  if (found === undefined) throw new Error(`${name} is not a payment processor`);
  return found;
}
