/** No payment link: documents have payment instructions only. */
import { z } from 'zod';
import { provider } from './provider.ts';

export const none = provider('none', z.strictObject({ provider: z.literal('none') }), () => ({
  url: () => ({ kind: 'nothing' }),
}));
