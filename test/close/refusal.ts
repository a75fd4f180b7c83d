/** The code and facts of a refused action. An action that succeeds, or fails in another way, fails the test. */
import { Refusal } from '../../src/errors/refusals.ts';

export async function refusalOf(action: Promise<unknown>): Promise<{ code: string; facts: Record<string, unknown> }> {
  try {
    await action;
  } catch (error) {
    if (error instanceof Refusal) return { code: error.code, facts: { ...error.facts } };
    throw error;
  }
  throw new Error('nothing was refused');
}
