/** `reckoner status`. */
import { EXIT } from '../../errors/refusals.ts';
import { readStatus, type Status } from '../../reports/status.ts';
import { withContext } from '../context.ts';
import type { Definition } from '../define.ts';
import { type Output, printable, short, table } from '../output.ts';

export const define: Definition = (command, act) => {
  command.addHelpText('after', '\nExit status 4: something needs attention.').action(act(status));
};

export async function status(output: Output): Promise<number> {
  return withContext(async ({ environment, database }) => {
    const found = await database.reading((tx) => readStatus(tx, environment.now()));
    output.print(found, () => describeStatus(found));
    return found.attention.length > 0 ? EXIT.attention : EXIT.done;
  });
}

/** The status for people, on the screen and in the watch's e-mail. */
export function describeStatus(found: Status): string {
  const { months, deliveries, waiting, connected, jobs, attention } = found;
  const { sent, pending, held, failed, uncertain } = deliveries;
  const sections = [
    [
      `Environment  ${found.environment}${found.append_only === 'triggers' ? ' (append-only by triggers alone)' : ''}`,
      `Partners     ${found.partners}`,
      `Months       ${months.last_closed === null ? 'none closed yet' : `${months.first} to ${months.last_closed} closed`}` +
        (months.due.length > 0 ? `; due: ${months.due.join(', ')}` : ''),
      `Open rows    ${found.open_entries}`,
      `Deliveries   ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain`,
    ].join('\n'),
  ];
  if (waiting.length > 0) {
    const rows = waiting.map((each) => [
      each.number,
      short(each.partner_id, 18),
      each.status,
      printable(each.reason ?? ''),
    ]);
    sections.push(table(['document', 'partner', 'state', 'because'], rows));
  }
  if (connected.accounts.length > 0) {
    const rows = connected.accounts.map((each) => [
      short(each.account, 26),
      short(each.partners.join(', '), 18),
      each.balance_transactions_from === 'processor' ? 'processor' : 'settlement file',
      each.read_to?.slice(0, 16).replace('T', ' ') ?? 'never',
    ]);
    sections.push(table(['account', 'partner', 'told by', 'read up to'], rows));
  }
  if (jobs.length > 0) {
    const rows = jobs.map((each) => [each.job, each.finished_at.slice(0, 19).replace('T', ' '), each.exit_status]);
    sections.push(table(['job', 'last run (UTC)', '>exit'], rows));
  }
  sections.push(
    attention.length === 0
      ? 'Nothing needs a person.'
      : ['Needs a person:', ...attention.map((each) => `- ${each}`)].join('\n'),
  );
  return sections.join('\n\n');
}
