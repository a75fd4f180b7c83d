/**
 * Our role (docs/settings.md, `we_are`): the partners' supplier, or the principal. The journal uses the recorded role
 * and not the setting, so that journaled entries never change. Refusal: we_are_fixed.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Asked, readRecordedWeAre, upsertWeAre } from './partners.sql.ts';

/**
 * Records the setting while the ledger has no row. After the first row, refuses a setting that differs from the
 * recorded role.
 */
export async function settleWeAre(tx: Transaction, { we_are: asked }: Asked) {
  const { recorded, free } = await readRecordedWeAre(tx);
  if (recorded === asked) return;
  if (recorded !== null && !free) throw refuse('we_are_fixed', { asked, recorded });
  await upsertWeAre(tx, { asked });
}
