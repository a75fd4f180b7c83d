/** Refusals about partners and API clients. */
import { bullets, define, EXIT, type FieldProblem } from './definition.ts';

export const PARTNERS = {
  partners_invalid: define<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) =>
      `No partner was imported: ${f.file} is invalid:\n${bullets(f.problems)}\nCorrect the file and import it again.`,
  ),
  arrangement_change: define<{ partner_id: string; reason: string }>(
    EXIT.refused,
    (f) => `Cannot change the arrangement of partner ${f.partner_id}: ${f.reason}.`,
  ),
  partner_unknown: define<{ partner_id: string }>(
    EXIT.badInput,
    (f) => `No such partner: ${f.partner_id}. 'reckoner partner list' shows all partners.`,
    404,
  ),
  client_unknown: define<{ client_id: string }>(
    EXIT.badInput,
    (f) => `No such client: ${f.client_id}. 'reckoner client list' shows all clients.`,
    404,
  ),
  client_revoked: define<{ client_id: string }>(
    EXIT.refused,
    (f) =>
      `Client ${f.client_id} has been revoked, which is permanent. ` +
      "Create another one with 'reckoner client create PARTNER'.",
  ),
  client_secrets_live: define<{ client_id: string; ends_at: string }>(
    EXIT.refused,
    (f) =>
      `Client ${f.client_id} already has two valid secrets; the older one expires at ${f.ends_at}. ` +
      'Rotate again after that, or now with --overlap-days 0, which revokes all older secrets immediately.',
  ),
} as const;
