import { fieldName } from '#field-names';
import { SEE, toDo, toRun } from '#remedy';
import { badInput, bullets, FieldProblem, refused, says } from './definition.ts';

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
    (f) => says(`No such partner: ${f.partner_id}.`, SEE.partners),
    404,
  ),
  reminders_not_paused: refused<{ partner_id: string }>((f) =>
    says(
      `The reminders of partner ${f.partner_id} are not paused.`,
      toDo('Pause them', 'reminder.pause', { partnerId: f.partner_id }),
    ),
  ),
  webhook_url_invalid: badInput<{ url: string; reason: string }>(
    (f) => `Events cannot be sent to ${f.url}: it ${f.reason}. Ask the partner for another URL.`,
  ),
  webhook_missing: badInput<{ partner_id: string }>((f) =>
    says(
      `Partner ${f.partner_id} has no webhook.`,
      toDo('Set one', 'webhook.set', { partnerId: f.partner_id }),
      toRun('See all webhooks', 'webhook list'),
    ),
  ),
  webhook_position_unknown: badInput<{ partner_id: string; position: number; last: number; archived: number }>((f) =>
    f.position > f.last
      ? `Partner ${f.partner_id} has no event at position ${f.position}: its last one is ${f.last}. ` +
        `Give that position or an earlier one; ${f.archived} sends all events.`
      : `The events of partner ${f.partner_id} up to position ${f.archived} belong to archived months and cannot be ` +
        'sent. Give that position or a later one.',
  ),
  webhook_key_unusable: refused<{ variable: string; reason: string }>((f) =>
    says(
      `Webhooks cannot be signed: ${f.variable} ${f.reason}. Restore the value that it had when the webhook was set, or ` +
        "set a new key ('openssl rand -hex 32').",
      toDo('Rotate the secret of each webhook', 'webhook.rotate', {}, 'if the key is new'),
    ),
  ),
  client_unknown: badInput<{ client_id: string }>((f) => says(`No such client: ${f.client_id}.`, SEE.clients), 404),
  client_revoked: refused<{ client_id: string }>((f) =>
    says(`Client ${f.client_id} has been revoked, which is permanent.`, toDo('Create another one', 'client.create')),
  ),
  client_secrets_live: refused<{ client_id: string; ends_at: string }>(
    (f) =>
      `Client ${f.client_id} already has two valid secrets; the older one expires at ${f.ends_at}. ` +
      `Rotate again after that, or now with ${fieldName('overlapDays', '0')}, which revokes all older secrets immediately.`,
  ),
} as const;
