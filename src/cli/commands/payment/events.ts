/** `reckoner payment events`. */
import { paymentEvents } from '../../../acts/payment/events.ts';
import type { Definition } from '../../define.ts';
import { readInput } from '../../input.ts';
import { doing } from '../../run-act.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('events')
    .argument('[file]', "the processor's events as NDJSON; '-' is stdin (default: only pending events)")
    .description('Store processor events and process them; safe to repeat and to reorder')
    .action(
      act(
        doing(paymentEvents, (name: string | undefined) => ({
          ...(name !== undefined && { file: { name, bytes: readInput(name) } }),
        })),
      ),
    );
};
