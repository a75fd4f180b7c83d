import { fieldName } from '#field-names';
import { SEE, toDo, toRun } from '#remedy';
import { answer, badInput, bullets, FieldProblem, refused } from './definition.ts';

export const PARTNERS = {
  partners_invalid: badInput<{ file: string; problems: readonly FieldProblem[] }>(
    (f) =>
      `No partner was imported: ${f.file} is invalid:\n${bullets(f.problems)}\nCorrect the file and import it again.`,
  ),
  arrangement_change: refused('Cannot change the arrangement of partner {partner_id}: {reason}.'),
  partner_parent_invalid: badInput('No partner was imported: partner {partner_id} cannot have this parent: {reason}.'),
  partner_unknown: answer(404, 'No such partner: {partner_id}.', SEE.partners),
  reminders_not_paused: refused('The reminders of partner {partner_id} are not paused.', ({ partner_id }) =>
    toDo('Pause them', 'reminder.pause', { partnerId: partner_id }),
  ),
  webhook_url_invalid: badInput('Events cannot be sent to {url}: it {reason}. Ask the partner for another URL.'),
  webhook_missing: badInput(
    'Partner {partner_id} has no webhook.',
    ({ partner_id }) => toDo('Set one', 'webhook.set', { partnerId: partner_id }),
    toRun('See all webhooks', 'webhook list'),
  ),
  webhook_position_unknown: badInput<{ partner_id: string; position: number; last: number; archived: number }>((f) =>
    f.position > f.last
      ? `Partner ${f.partner_id} has no event at position ${f.position}: its last one is ${f.last}. ` +
        `Give that position or an earlier one; ${f.archived} sends all events.`
      : `The events of partner ${f.partner_id} up to position ${f.archived} belong to archived months and cannot be ` +
        'sent. Give that position or a later one.',
  ),
  webhook_key_unusable: refused(
    [
      'Webhooks cannot be signed: {variable} {reason}. Restore the value that it had when the webhook was set, or ',
      "set a new key ('openssl rand -hex 32').",
    ],
    toDo('Rotate the secret of each webhook', 'webhook.rotate', {}, 'if the key is new'),
  ),
  client_unknown: answer(404, 'No such client: {client_id}.', SEE.clients),
  client_revoked: refused(
    'Client {client_id} has been revoked, which is permanent.',
    toDo('Create another one', 'client.create'),
  ),
  client_secrets_live: refused<{ client_id: string; ends_at: string }>(
    (f) =>
      `Client ${f.client_id} already has two valid secrets; the older one expires at ${f.ends_at}. ` +
      `Rotate again after that, or now with ${fieldName('overlapDays', '0')}, which revokes all older secrets immediately.`,
  ),
} as const;
