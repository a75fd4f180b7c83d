/** Refusals about partners and API clients. */
import { badInput, bullets, type FieldProblem, refused } from './definition.ts';

export const PARTNERS = {
  partners_invalid: badInput<{ file: string; problems: readonly FieldProblem[] }>(
    (f) =>
      `No partner was imported: ${f.file} is invalid:\n${bullets(f.problems)}\nCorrect the file and import it again.`,
  ),
  arrangement_change: refused<{ partner_id: string; reason: string }>(
    (f) => `Cannot change the arrangement of partner ${f.partner_id}: ${f.reason}.`,
  ),
  partner_parent_invalid: badInput<{ partner_id: string; reason: string }>(
    (f) => `No partner was imported: partner ${f.partner_id} cannot have this parent: ${f.reason}.`,
  ),
  partner_unknown: badInput<{ partner_id: string }>(
    (f) => `No such partner: ${f.partner_id}. 'reckoner partner list' shows all partners.`,
    404,
  ),
  client_unknown: badInput<{ client_id: string }>(
    (f) => `No such client: ${f.client_id}. 'reckoner client list' shows all clients.`,
    404,
  ),
  client_revoked: refused<{ client_id: string }>(
    (f) =>
      `Client ${f.client_id} has been revoked, which is permanent. ` +
      "Create another one with 'reckoner client create PARTNER'.",
  ),
  client_secrets_live: refused<{ client_id: string; ends_at: string }>(
    (f) =>
      `Client ${f.client_id} already has two valid secrets; the older one expires at ${f.ends_at}. ` +
      'Rotate again after that, or now with --overlap-days 0, which revokes all older secrets immediately.',
  ),
} as const;
