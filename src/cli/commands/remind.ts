import { reminderRecord } from '#actions/remind';
import {
  acting,
  CommandContext,
  checkPresentable,
  Definition,
  EXIT,
  FORMAT,
  OUT,
  PresentOptions,
  present,
  REASON,
  repeatedArgument,
} from '#cli/command';
import { inFull } from '#cli/remedies';
import { reported } from '#cli/run-action';
import { readPartnerNames } from '#partners/partners.sql';
import { ReminderPlan, whySkipped } from '#payments/remind';
import { Sheet } from '#sheet';

export const define: Definition = (command, action) => {
  command
    .option('--partner <id>', 'remind only this partner; repeatable', repeatedArgument)
    .option('--without <account>', 'do not wait for the bank file of this account; repeatable', repeatedArgument)
    .option(...REASON)
    .option('--dry-run', 'show the reminders that are due; send nothing')
    .option(...FORMAT)
    .option(...OUT)
    .action(action(acting(remind)));
};

type RemindOptions = PresentOptions &
  Readonly<{
    partner?: string[];
    without?: string[];
    reason?: string;
    dryRun?: boolean;
  }>;

async function remind(context: CommandContext, options: RemindOptions): Promise<number> {
  const { database, output } = context;
  const { without, reason, partner: partnerIds } = options;
  checkPresentable(output, options);
  const names = await database.reading(readPartnerNames);
  const report = await reported(context, reminderRecord, { without, reason, partnerIds }, options);
  const text = await inFull(report);
  await present(
    context,
    null,
    options,
    report.json,
    () => sheetOf(report.json, names),
    () => text,
  );
  return report.attention ? EXIT.attention : EXIT.done;
}

type Names = ReadonlyMap<string, string>;

const sheetOf = ({ reminders, skipped }: ReminderPlan, names: Names): Sheet => ({
  name: 'Reminders',
  columns: {
    partner_id: 'text',
    partner_name: 'text',
    payer_id: 'text',
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
      documents.map((each) => ({
        ...{ ...each, payer_id: partner_id, partner_name: names.get(each.partner_id) ?? '', dunning_level },
      })),
    ),
    ...skipped.map((each) => ({
      ...each,
      partner_name: names.get(each.partner_id) ?? '',
      not_reminded: whySkipped(each),
    })),
  ],
});
