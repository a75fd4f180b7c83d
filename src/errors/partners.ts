/** Refusals about partners and API clients. */
import { bullets, EXIT, entry, type FieldProblem } from './definition.ts';

export const PARTNERS = {
  partners_invalid: entry<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) => `No partner was imported: ${f.file} has mistakes:\n${bullets(f.problems)}\nCorrect them and import again.`,
  ),
  arrangement_change: entry<{ partner_id: string; reason: string }>(
    EXIT.refused,
    (f) => `The arrangement of partner ${f.partner_id} cannot change: ${f.reason}.`,
  ),
  partner_unknown: entry<{ partner_id: string }>(
    EXIT.badInput,
    (f) => `There is no partner ${f.partner_id}. 'reckoner partner list' shows those there are.`,
    404,
  ),
  client_unknown: entry<{ client_id: string }>(
    EXIT.badInput,
    (f) => `There is no client ${f.client_id}. 'reckoner client list' shows those there are.`,
    404,
  ),
  client_revoked: entry<{ client_id: string }>(
    EXIT.refused,
    (f) => `Client ${f.client_id} is revoked for good. Create another with 'reckoner client create PARTNER'.`,
  ),
  client_secrets_live: entry<{ client_id: string; ends_at: string }>(
    EXIT.refused,
    (f) =>
      `Client ${f.client_id} has two live secrets; the older one ends at ${f.ends_at}. ` +
      'Rotate again after that, or now with --overlap-days 0, which ends every older secret at once.',
  ),
} as const;
