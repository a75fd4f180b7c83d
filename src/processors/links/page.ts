/** Our own payment page, with instructions but no button for paying. */
import { z } from 'zod';
import { provider } from './provider.ts';

export const page = provider('page', z.strictObject({ provider: z.literal('page') }), () => ({
  url: () => ({ kind: 'nothing' }),
}));
