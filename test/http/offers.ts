/** Quotes and requotes over the API, as tests need them: each gives the id of what it made. */
import { expect } from 'vitest';
import type { Caller } from '../support/service.ts';

/** `present` gives the caller of the moment: its token changes as the clock moves. */
export function offersOf(present: () => Caller) {
  const quoted = async (insured_amount: unknown = '250.00', caller = present()) => {
    const answer = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount });
    expect(answer.status).toBe(201);
    return answer.body['quote_id'] as string;
  };
  const accepted = async (insured: unknown = '250.00') => {
    const id = await quoted(insured);
    expect((await present().get(`/api/v1/quote/${id}/accept`)).status).toBe(200);
    return id;
  };
  const requoted = async (quoteId: string, insured_amount: unknown) => {
    const answer = await present().post(`/api/v1/quote/${quoteId}/requote`, { insured_amount });
    expect(answer.status).toBe(201);
    return answer.body['requote_id'] as string;
  };
  return { quoted, accepted, requoted };
}
