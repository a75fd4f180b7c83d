import { reminderRecord, SKIPPED } from '../../actions/remind.ts';
import { EXIT } from '../../errors/refusals.ts';
import { readPartnerNames } from '../../partners/partners.sql.ts';
import type { ReminderPlan } from '../../payments/remind.ts';
import type { Sheet } from '../../sheet.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';
import { checkPresentable, FORMAT, OUT, type PresentOptions, present } from '../present.ts';
import { inFull } from '../remedies.ts';
import { reported } from '../run-action.ts';

export const define: Definition = (command, action) => {
  command
    .option('--dry-run', 'show the reminders that are due; send nothing')
    .option(...FORMAT)
    .option(...OUT)
    .action(action(acting(remind)));
};

async function remind(context: CommandContext, options: PresentOptions & { dryRun?: boolean }): Promise<number> {
  const { database, output } = context;
  checkPresentable(output, options);
  const names = await database.reading(readPartnerNames);
  const report = await reported(context, reminderRecord, {}, options);
  const text = await inFull(report);
  await present(
    output,
    options,
    report.json,
    () => sheetOf(report.json, names),
    () => text,
  );
  return report.attention ? EXIT.attention : EXIT.done;
}

type Names = ReadonlyMap<string, string>;

/** One row for each document. If a document is not reminded, its row states the reason. */
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
