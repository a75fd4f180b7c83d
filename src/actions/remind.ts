import { Block } from '#blocks';
import { EmailResult } from '#mail/outbox';
import { readPartnerNames } from '#partners/partners.sql';
import { ReminderPlan, recordReminders, whySkipped } from '#payments/remind';
import { DELIVER } from '#remedy';
import { Amount, inShort, plural } from '#values';
import { defineAction, line, partner, several, text } from './action.ts';
import { checkWithout } from './books.ts';
import { countKinds, needsAttention, sendDue } from './emails.ts';

export const reminderRecord = defineAction({
  name: 'reminder.record',
  title: 'Send the payment reminders that are due',
  command: { called: 'remind', options: { without: '--without <account>', partnerIds: '--partner <id>' } },
  role: 'finance',
  input: {
    partnerIds: several(partner('Remind only this partner. Default: all partners.')).optional(),
    without: several(text('Without', 'A bank account whose file is not waited for.')).optional(),
    reason: line('Reason', 'The reason not to wait for that file. It is recorded.').optional(),
  },
  check: checkWithout,
  subject: ({ partnerIds }) => (partnerIds === undefined ? 'today' : inShort(partnerIds)),
  perform: (tx, context, { without: accounts, reason, partnerIds }) =>
    recordReminders(tx, context, accounts && reason !== undefined ? { accounts, reason } : undefined, partnerIds),
  after: sendDue,
  facts: async (_tx, _input, plan) =>
    Object.fromEntries(
      (plan?.reminders ?? []).map(({ partner_id, dunning_level, documents }) => [
        `a reminder to ${partner_id}`,
        { level: levelName(dunning_level), documents: documents.map(({ number }) => number).join(' ') },
      ]),
    ),
  async report({ input: { partnerIds = [] }, result: plan, followed: results, preview }, _context, tx) {
    const names = await readPartnerNames(tx);
    const due = new Set(plan.reminders.map(({ partner_id }) => partner_id));
    const others = [...new Set(partnerIds)].filter((each) => !due.has(each)).map((each) => names.get(each) ?? each);
    const json: ReminderPlan & { dry_run: boolean; emails?: EmailCounts } = {
      ...plan,
      dry_run: preview,
      ...(results !== undefined && { emails: countsOf(results) }),
    };
    const queued = results === undefined || results.some(({ status }) => status === 'deferred');
    return {
      json,
      text: [
        plan.reminders.length === 0
          ? 'No reminders are due today.'
          : `${plural(plan.reminders.length, 'reminder is', 'reminders are')} due.`,
        ...(others.length === 0 ? [] : [`No reminder is due to ${others.join(', ')}.`]),
        ...(results === undefined ? [] : [describeEmails(results)]),
      ].join('\n'),
      blocks: blocksOf(plan, names),
      button: `Send ${plural(plan.reminders.length, 'reminder')}`,
      remedies: queued && !preview ? [{ ...DELIVER, label: 'Send queued e-mails' }] : [],
      attention: (results ?? []).some((each) => each.status === 'deferred' || needsAttention(each)),
    };
  },
});

type EmailCounts = ReturnType<typeof countsOf>;

function countsOf(results: readonly EmailResult[]) {
  const count = (status: string) => results.filter((each) => each.status === status).length;
  return {
    ...{ sent: count('sent'), pending: count('deferred') + count('elsewhere'), held: count('held') },
    ...{ failed: count('failed'), uncertain: count('uncertain'), withdrawn: count('withdrawn') },
  };
}

/** Counts all e-mails sent, not only reminders. The next run of `deliver` sends the queued e-mails. */
function describeEmails(results: readonly EmailResult[]) {
  const sent = results.filter(({ status }) => status === 'sent');
  const queued = results.filter(({ status }) => status === 'deferred');
  return [
    sent.length === 0 ? '0 e-mails sent.' : `${plural(sent.length, 'e-mail')} sent: ${countKinds(sent)}.`,
    ...(queued.length === 0 ? [] : [`${plural(queued.length, 'e-mail')} queued: ${countKinds(queued)}.`]),
  ].join('\n');
}

type Names = ReadonlyMap<string, string>;

function blocksOf({ reminders, skipped }: ReminderPlan, names: Names): Block[] {
  const rows = reminders.flatMap(({ partner_id, dunning_level, documents }) =>
    documents.map((each, index) => [
      index === 0 ? (names.get(partner_id) ?? partner_id) : '',
      index === 0 ? levelName(dunning_level) : '',
      each.partner_id === partner_id ? each.number : `${each.number} of ${names.get(each.partner_id)}`,
      each.due_on,
      Amount.of(each.balance, each.currency),
      Number(each.disputed) === 0 ? '' : Amount.of(each.disputed, each.currency),
    ]),
  );
  const headings = ['~partner', 'level', 'document', 'due', '>open', '>disputed'];
  return [
    ...(rows.length === 0 ? [] : [{ title: 'Reminders', table: { headings, rows } }]),
    ...(skipped.length === 0
      ? []
      : [
          {
            title: 'Not reminded',
            tone: 'warn' as const,
            lines: skipped.map((each) => `${each.number}: ${whySkipped(each)}`),
          },
        ]),
  ];
}

function levelName(days: number) {
  if (days === 0) return 'due day';
  return days < 0 ? `${-days} d before` : `${days} d after`;
}
