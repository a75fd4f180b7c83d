/**
 * What we are (docs/settings.md, `we_are`): the supplier of our partners, or the principal. The journal reads what the database has
 * recorded, never the settings, so that nothing that was journaled changes. Refusal: we_are_fixed.
 */
import type { Settings } from '../config/settings.ts';
import { execute, queryOne, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';

type WeAre = Settings['we_are'];
type Asked = Pick<Settings, 'we_are'>;

/** Records what the settings say while the ledger has no row; after that, refuses other settings. */
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

/** What stays recorded although the settings say something else; null where they agree, or where they can still decide. */
export async function recordedOtherwise(tx: Transaction, { we_are: asked }: Asked): Promise<WeAre | null> {
  const { recorded } = await queryOne<{ recorded: WeAre | null }>(
    tx,
    `SELECT (SELECT we_are FROM presentation WHERE we_are <> :asked AND NOT has_no_rows()) AS recorded`,
    { asked },
  );
  return recorded;
}
