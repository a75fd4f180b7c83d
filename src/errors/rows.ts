/** Refusals about held rows. */
import { SEE, toDo } from '../remedy.ts';
import { refused, says } from './definition.ts';

export const ROWS = {
  no_doubled_rows: refused<{ partner_id: string }>(
    (f) => `No row of ${f.partner_id} repeats another one, so there is nothing to decide. Check the partner.`,
  ),
  held_row_unknown: refused<{ held_row_id: number }>((f) => says(`No such held row: ${f.held_row_id}.`, SEE.held)),
  held_row_decided: refused<{ held_row_id: number; decision: string }>((f) =>
    says(`Held row ${f.held_row_id} is already ${f.decision}, and a decision is final.`, SEE.held),
  ),
  held_row_is_reversal: refused<{ held_row_id: number }>((f) =>
    says(
      `Held row ${f.held_row_id} is a reversal. Nothing was recorded.`,
      toDo('Grant it', 'reversal.grant', { row: String(f.held_row_id) }, 'if our share goes back'),
      toDo('Refuse it', 'reversal.refuse', { row: String(f.held_row_id) }, 'if it does not'),
    ),
  ),
  held_row_no_reversal: refused<{ held_row_id: number }>((f) =>
    says(`Held row ${f.held_row_id} is not a reversal.`, SEE.held),
  ),
  held_row_invalid: refused<{ held_row_id: number; reason: string; is_request: boolean }>((f) => {
    const row = String(f.held_row_id);
    return says(
      `Nothing was recorded: held row ${row} cannot be recorded now: ${f.reason}.`,
      f.is_request
        ? toDo('Refuse it', 'reversal.refuse', { row }, 'or grant other amounts')
        : toDo('Discard it', 'rows.discard', { rows: [row] }, 'if it repeats a sale'),
    );
  }),
};
