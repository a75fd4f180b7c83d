/** Our own payment page, with instructions and without a button that pays. */
import { z } from 'zod';
import { provider } from './provider.ts';

export const page = provider('page', z.strictObject({ provider: z.literal('page') }), () => ({
  url: () => ({ kind: 'nothing' }),
}));
