import { z } from 'zod';
import { ExactNumber } from '#json';
import { EVENT_TYPES } from '#partner-events/event';
import { eventAnswer } from './event-schemas.ts';
import { operation } from './operation.ts';
import { pageLimit } from './schemas.ts';

const query = z.strictObject({
  limit: pageLimit,
  cursor: z
    .string()
    .regex(/^(0|[1-9]\d{0,14})$/, 'must be the position of an event, such as 17')
    .transform(Number)
    .optional()
    .describe('Only events after this position; from the first one if absent'),
  type: z.enum(EVENT_TYPES).optional().describe('Only events of this type'),
});

export const listEvents = operation({
  id: 'listEvents',
  action: 'reads',
  path: '/api/v1/events',
  summary: 'What happened to your quotes and documents',
  description:
    'Your events in order of publication, from the beginning; they are kept permanently. Store the position of the ' +
    'last event that you handled and send it as the cursor: you get each event once, in order, without gaps. ' +
    'The order never changes; an event of a long import may appear some seconds after it was recorded.',
  query,
  answer: z.array(eventAnswer),
  example: [
    {
      event_id: 'evt_3f0c8a52be1d4b06a1c5e7d2f4930b68',
      position: 17,
      type: 'quote.accepted',
      recorded_at: '2026-10-05T09:31:12.480Z',
      data: {
        quote_id: 'q-0f8f8d3e-6f5c-4a55-9d3c-2f6f4f6e1a11',
        policy_id: 'ticket-protection',
        enrollment_id: 'e-53a9a0c7-1a39-45a7-9b0e-7c1f6d2e8b33',
        currency: 'USD',
        accepted_at: '2026-10-05T09:31:12.480Z',
        order_reference: 'ORD-2231',
        cover_from: '2026-10-05',
        cover_to: '2026-12-31',
        month: '2026-10',
        posted_month: '2026-10',
        spotPrice: new ExactNumber('21.25'),
        partnerCut: new ExactNumber('6.38'),
        invoiceAmount: new ExactNumber('14.87'),
      },
    },
    {
      event_id: 'evt_9b2d6e0f7c3845a1b8f4d0c2a6e71539',
      position: 18,
      type: 'payment.applied',
      recorded_at: '2026-11-20T14:02:11.000Z',
      data: { number: 'INV-2026-000014', currency: 'USD', amount: '6125.17', method: 'ach', received_on: '2026-11-20' },
    },
  ],
  refusals: ['request_invalid', 'events_archived'],
});
