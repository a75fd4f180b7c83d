/** `reckoner remind`. */
import { EXIT } from '../../errors/refusals.ts';
import type { EmailResult } from '../../mail/outbox.ts';
import { groupThousands } from '../../money.ts';
import { sendEmails } from '../../month-end/month-end.ts';
import { readPartnerNames } from '../../partners/queries.ts';
import { planReminders, type ReminderPlan, recordReminders } from '../../payments/remind.ts';
import type { Sheet } from '../../sheet.ts';
import { plural } from '../../text.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';
import { countKinds, describeEmail } from '../deliveries.ts';
import { table } from '../output.ts';
import { checkPresentable, FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (command, act) => {
  command
    .option('--dry-run', 'show the reminders that are due and send nothing')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(acting(remind)));
};

export async function remind(context: CommandContext, options: PresentOptions & { dryRun?: boolean }): Promise<number> {
  const { database, output } = context;
  const { dryRun = false } = options;
  checkPresentable(output, options);
  const names = await database.reading(readPartnerNames);
  if (dryRun) {
    const plan = await database.reading((tx) => planReminders(tx, context));
    await present(
      output,
      options,
      { ...plan, dry_run: true },
      () => sheetOf(plan, names),
      () => `${describePlan(plan, names)}\n\nPreview only: nothing was sent.`,
    );
    return EXIT.done;
  }
  const plan = await database.transaction((tx) => recordReminders(tx, context));
  const results: EmailResult[] = [];
  await sendEmails(context, {
    onEmail: (result) => {
      results.push(result);
      if (result.status !== 'sent') output.note(describeEmail(result));
    },
  });
  const count = (status: string) => results.filter((each) => each.status === status).length;
  const emails = {
    ...{ sent: count('sent'), pending: count('deferred') + count('elsewhere'), held: count('held') },
    ...{ failed: count('failed'), uncertain: count('uncertain'), withdrawn: count('withdrawn') },
  };
  await present(
    output,
    options,
    { ...plan, dry_run: false, emails },
    () => sheetOf(plan, names),
    () => `${describePlan(plan, names)}\n\n${describeEmails(results)}`,
  );
  return count('deferred') + emails.held + emails.failed + emails.uncertain > 0 ? EXIT.attention : EXIT.done;
}

/** What was sent, and what of it is no reminder; what waits goes out with the next `deliver`. */
function describeEmails(results: readonly EmailResult[]): string {
  const sent = results.filter(({ status }) => status === 'sent');
  const queued = results.filter(({ status }) => status === 'deferred');
  return [
    sent.length === 0 ? '0 e-mails sent.' : `${plural(sent.length, 'e-mail')} sent: ${countKinds(sent)}.`,
    ...(queued.length === 0
      ? []
      : [`${plural(queued.length, 'e-mail')} queued: ${countKinds(queued)}. 'reckoner deliver' sends what is queued.`]),
  ].join('\n');
}

const SKIPPED = {
  on_hold: 'on hold',
  disputed: 'the partner disputes it',
  card_dispute: 'a dispute about its payment is undecided',
  payment_to_confirm: 'it may be paid by a payment that is not confirmed yet',
  possible_duplicate: 'it may be paid by a payment that may be a duplicate',
  not_sent: 'it has not been e-mailed',
  covered_by_credit: 'open credit or unapplied cash covers it',
  covered_by_parent: "its parent's unapplied cash covers it",
} as const;

type Names = ReadonlyMap<string, string>;

/** A row for each document, with why it is left out. */
const sheetOf = ({ reminders, skipped }: ReminderPlan, names: Names): Sheet => ({
  name: 'Reminders',
  columns: {
    partner_id: 'text',
    partner_name: 'text',
    number: 'text',
    due_on: 'date',
    currency: 'text',
    balance: 'amount',
    disputed: 'amount',
    dunning_level: 'count',
    not_reminded: 'text',
  },
  rows: [
    ...reminders.flatMap(({ partner_id, dunning_level, documents }) =>
      documents.map((each) => ({ ...each, partner_id, partner_name: names.get(partner_id) ?? '', dunning_level })),
    ),
    ...skipped.map((each) => ({
      ...each,
      partner_name: names.get(each.partner_id) ?? '',
      not_reminded: SKIPPED[each.reason],
    })),
  ],
});

function describePlan({ reminders, skipped }: ReminderPlan, names: Names): string {
  const parts = [reminders.length === 0 ? 'No reminders are due today.' : ''];
  if (reminders.length > 0) {
    parts[0] = table(
      ['~partner', 'level', 'document', 'due', '>open', '>disputed', ''],
      reminders.flatMap(({ partner_id, dunning_level, documents }) =>
        documents.map((each, index) => [
          index === 0 ? (names.get(partner_id) ?? partner_id) : '',
          index === 0 ? levelName(dunning_level) : '',
          each.number,
          each.due_on,
          groupThousands(each.balance),
          Number(each.disputed) === 0 ? '' : groupThousands(each.disputed),
          each.currency,
        ]),
      ),
    );
  }
  if (skipped.length > 0) {
    parts.push(['Not reminded:', ...skipped.map((each) => `  ${each.number}: ${SKIPPED[each.reason]}`)].join('\n'));
  }
  return parts.join('\n\n');
}

function levelName(days: number): string {
  if (days === 0) return 'due day';
  return days < 0 ? `${-days} d before` : `${days} d after`;
}
