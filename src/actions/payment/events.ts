import { ActionContext, defineAction, Facts, FileInput, file } from '#actions/action';
import { contentOf } from '#actions/contents';
import { Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { EventsReport, processEvents } from '#payments/processor-events/process';
import { eventFile } from '#payments/processor-events/read';
import { storeEvents } from '#payments/processor-events/store';
import { plural } from '#text';
import { printable, wrapped } from '#text-table';

export const paymentEvents = defineAction({
  name: 'payment.events',
  title: "Store the processor's events and process them",
  command: {
    summary: 'Store processor events and process them; safe to repeat, in any order',
    arguments: { file: '[file]' },
  },
  role: 'finance',
  input: { file: file('File', "The processor's events as NDJSON. Default: only pending events.").optional() },
  subject: ({ file }) => file?.name ?? 'pending events',
  read: async (context, { file }) => file && readFile(context, file),
  perform: async (tx, context, { file }) => ({
    stored: await storeFile(tx, context, file),
    report: await processEvents(tx, context),
  }),
  async run({ permitted, ...context }, { file }) {
    const stored = file === undefined ? NOTHING : await permitted.transaction((tx) => storeFile(tx, context, file));
    failpoint('inbox.stored');
    const report = await permitted.transaction((tx) => processEvents(tx, context));
    failpoint('inbox.processed');
    return { stored, report };
  },
  facts: async (_tx, _input, done): Promise<Facts> =>
    done === undefined
      ? {}
      : { events: { stored: String(done.stored.stored), 'with an effect': String(done.report.effects) } },
  report: async ({ result: { stored, report } }) => ({
    json: { ...stored, ...report },
    text: describeInbox(stored, report),
    attention: report.manual_review.length + report.waiting.length > 0,
  }),
});

const NOTHING = { stored: 0, known: 0, accounts: [] };

const storeFile = async (tx: Transaction, context: ActionContext, file: FileInput | undefined) =>
  file === undefined ? NOTHING : storeEvents(tx, context, { name: file.name, text: '' }, await readFile(context, file));

const readFile = ({ environment }: ActionContext, file: FileInput) =>
  contentOf(file, eventFile, { now: environment.now().toMillis() });

function describeInbox(stored: { stored: number; known: number }, report: EventsReport) {
  const lines = [
    `${plural(stored.stored, 'event')} stored, ${stored.known} already stored. Processed: ${report.effects} with an effect, ` +
      `${report.without_effect} without.`,
  ];
  for (const each of report.waiting)
    lines.push(...wrapped(`waiting: ${each.id} (${each.type}): ${printable(each.reason)}`, 80, '  '));
  for (const each of report.manual_review)
    lines.push(...wrapped(`needs review: ${each.id} (${each.type}): ${printable(each.reason)}`, 80, '  '));
  return lines.join('\n');
}
