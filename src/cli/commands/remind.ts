/** `reckoner remind`. */

import { EXIT } from '../../errors/refusals.ts';
import { groupThousands } from '../../money.ts';
import { sendEmails } from '../../month-end/month-end.ts';
import { planReminders, type ReminderPlan, recordReminders } from '../../payments/remind.ts';
import { plural } from '../../text.ts';
import { acting } from '../context.ts';
import type { Definition } from '../define.ts';
import { describeEmail } from '../deliveries.ts';
import { type Output, short, table } from '../output.ts';

export const define: Definition = (command, act) => {
  command.option('--dry-run', 'show the reminders that are due and send nothing').action(act(remind));
};

export async function remind(output: Output, { dryRun = false }: { dryRun?: boolean }): Promise<number> {
  return acting(output, async (context) => {
    const { database } = context;
    if (dryRun) {
      const plan = await database.reading((tx) => planReminders(tx, context));
      output.print({ ...plan, dry_run: true }, () => `${describePlan(plan)}\n\nPreview only: nothing was sent.`);
      return EXIT.done;
    }
    const plan = await database.transaction((tx) => recordReminders(tx, context));
    const statuses: string[] = [];
    await sendEmails(context, {
      onEmail: (result) => {
        statuses.push(result.status);
        if (result.status !== 'sent') output.note(describeEmail(result));
      },
    });
    const count = (status: string) => statuses.filter((each) => each === status).length;
    const emails = {
      ...{ sent: count('sent'), pending: count('deferred') + count('elsewhere'), held: count('held') },
      ...{ failed: count('failed'), uncertain: count('uncertain'), withdrawn: count('withdrawn') },
    };
    output.print(
      { ...plan, dry_run: false, emails },
      () => `${describePlan(plan)}\n\n${plural(emails.sent, 'e-mail')} sent.`,
    );
    return emails.held + emails.failed + emails.uncertain > 0 ? EXIT.attention : EXIT.done;
  });
}

const SILENT = {
  on_hold: 'it is on hold',
  disputed: 'a dispute about its payment is not decided',
  payment_to_confirm: 'a payment that may be for it waits to be confirmed',
  not_sent: 'its own e-mail was never sent',
} as const;

function describePlan({ reminders, silent }: ReminderPlan): string {
  const parts = [reminders.length === 0 ? 'No reminders are due today.' : ''];
  if (reminders.length > 0) {
    parts[0] = table(
      ['partner', 'step', 'document', 'due', '>open', ''],
      reminders.flatMap(({ partner_id, step, documents }) =>
        documents.map((each, index) => [
          index === 0 ? short(partner_id, 20) : '',
          index === 0 ? stepName(step) : '',
          each.number,
          each.due_on,
          groupThousands(each.balance),
          each.currency,
        ]),
      ),
    );
  }
  if (silent.length > 0) {
    parts.push(
      ['Overdue, but not reminded:', ...silent.map((each) => `  ${each.number}: ${SILENT[each.because]}`)].join('\n'),
    );
  }
  return parts.join('\n\n');
}

function stepName(step: number): string {
  if (step === 0) return 'due day';
  return step < 0 ? `${-step} d before` : `${step} d after`;
}
