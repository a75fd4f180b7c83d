/** Our own payment page, with payment instructions but without a pay button. */
import { z } from 'zod';
import { provider } from './provider.ts';

export const page = provider('page', z.strictObject({ provider: z.literal('page') }), () => ({
  url: () => ({ kind: 'nothing' }),
}));
