import { accountKeyVariable, WEBHOOK_SIGNING_KEY } from '#config/environment';
import { WebhookHealth } from '#partner-events/health';
import { PAUSED_AFTER_HOURS } from '#partner-events/send';
import { AccountHealth, STALE_HOURS } from '#splits/account-health';
import { WATCHED_DAYS } from '#splits/accounts.sql';
import { minuteOf, plural } from '#text';
import { Finding, seeMonthOfAccounts, toDo, toRun, troubleOf } from './finding.ts';

const POLL = toRun('Read it', 'processor poll');
const SEE_MONTH = toRun('See them', 'reconcile MONTH', '/console/accounts');

export function staleAccounts(
  { accounts, stale }: Pick<AccountHealth, 'accounts' | 'stale'>,
  today: string,
): Finding[] {
  return stale.map((account) => {
    const found = accounts.find((each) => each.account === account);
    const { partners = [], read_to = null, followed = false } = found ?? {};
    const last =
      read_to === null ? 'was never read' : `was last read up to ${read_to}, more than ${STALE_HOURS} hours ago`;
    const key = accountKeyVariable(account);
    const urgent = followed
      ? `${account}, the former account of ${partners.join(', ')}, ${last}: it may receive balance transactions for ` +
        `${WATCHED_DAYS} days after the last sale. Set ${key} to read it.`
      : `${account} of ${partners.join(', ')} ${last}. Set ${key} to read it, or use settlement files with ` +
        'balance_transactions_from set to settlement_file.';
    const imports = toDo('Import its balance transactions', 'processor.import', { account }, 'without a key');
    return troubleOf('accounts', `stale:${account}`, {
      ...{ urgent, since: read_to ?? today, remedies: followed ? [POLL] : [POLL, imports] },
    });
  });
}

export function openAtProcessors({ open, unknown, payouts }: AccountHealth, today: string): Finding[] {
  return [
    ...Object.entries(open).map(([month, count]) =>
      troubleOf('accounts', `quotes:${month}`, {
        urgent: `${plural(count, 'quote')} of ${month} not routed as expected.`,
        ...{ since: today, remedies: [seeMonthOfAccounts('See them', month)], count },
      }),
    ),
    ...(unknown > 0
      ? [
          troubleOf('accounts', 'balance transactions of unknown quotes', {
            urgent: `${plural(unknown, 'balance transaction')} of connected accounts with unknown quotes.`,
            ...{ since: today, remedies: [SEE_MONTH], count: unknown },
          }),
        ]
      : []),
    ...(payouts > 0
      ? [
          troubleOf('accounts', 'payouts to review', {
            urgent:
              `${plural(payouts, 'payout')} of connected accounts to review: not in the bank, contents unknown, or transactions ` +
              'skipped.',
            ...{ since: today, remedies: [SEE_MONTH], count: payouts },
          }),
        ]
      : []),
  ];
}

/** The hours that a partner's server may be down before a finding reports the webhook. */
const LATE_HOURS = 1;

export function troubledWebhooks(
  { troubled }: WebhookHealth,
  { now, today }: { now: number; today: string },
): Finding[] {
  return troubled.flatMap((each) => {
    const { partner_id: partnerId, state, failing_since: since, last_failure: reason, paused_at: paused } = each;
    const waits = `${plural(each.waiting, 'event')} ${each.waiting === 1 ? 'is' : 'are'} waiting`;
    const trouble = (what: string, urgent: string, at: string, remedies: Finding['remedies']) =>
      troubleOf('webhooks', `webhook:${partnerId} ${what}`, { urgent, since: at, remedies });
    if (each.unsigned) {
      const urgent =
        `The webhook of ${partnerId} sends nothing: ${WEBHOOK_SIGNING_KEY} is not the key that its secret is ` +
        `derived from; ${waits}. Restore the variable, or give the partner a new secret.`;
      return [trouble('unsigned', urgent, today, [toDo('Make a new secret', 'webhook.rotate', { partnerId })])];
    }
    if (state === 'paused') {
      const urgent =
        `The webhook of ${partnerId} has been paused since ${minuteOf(paused ?? '')} (${reason}); ${waits}. Ask the ` +
        'partner.';
      return [
        trouble('paused', urgent, paused ?? today, [
          toDo('Resume it', 'webhook.resume', { partnerId }),
          toDo('Remove it', 'webhook.remove', { partnerId }, 'instead'),
        ]),
      ];
    }
    if (since === null || (now - Date.parse(since)) / 3_600_000 < LATE_HOURS) return [];
    const urgent =
      `The webhook of ${partnerId} has failed since ${minuteOf(since)} (${reason}); ${waits}. Ask the partner. ` +
      `Retries continue until it is paused after ${PAUSED_AFTER_HOURS} hours.`;
    return [trouble('failing', urgent, since, [])];
  });
}
