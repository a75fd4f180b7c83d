/**
 * Our role (docs/settings.md, `we_are`): the partners' supplier, or the principal. The journal reads the recorded role,
 * never the settings, so that journaled entries never change. Refusal: we_are_fixed.
 */
import type { Settings } from '../config/settings.ts';
import { execute, queryOne, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';

type WeAre = Settings['we_are'];
type Asked = Pick<Settings, 'we_are'>;

/** Records the setting while the ledger has no row; after that, refuses a different one. */
export async function settleWeAre(tx: Transaction, { we_are: asked }: Asked): Promise<void> {
  const { recorded, free } = await queryOne<{ recorded: WeAre | null; free: boolean }>(
    tx,
    `SELECT (SELECT we_are FROM presentation) AS recorded, has_no_rows() AS free`,
  );
  if (recorded === asked) return;
  if (recorded !== null && !free) throw refuse('we_are_fixed', { asked, recorded });
  await execute(
    tx,
    `INSERT INTO presentation (we_are) VALUES (:asked) ON CONFLICT (only_one) DO UPDATE SET we_are = excluded.we_are`,
    { asked },
  );
}

/** The recorded role if the settings differ from it; null if they agree, or can still decide. */
export async function recordedOtherwise(tx: Transaction, { we_are: asked }: Asked): Promise<WeAre | null> {
  const { recorded } = await queryOne<{ recorded: WeAre | null }>(
    tx,
    `SELECT (SELECT we_are FROM presentation WHERE we_are <> :asked AND NOT has_no_rows()) AS recorded`,
    { asked },
  );
  return recorded;
}
