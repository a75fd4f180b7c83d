import { commandOf, remediesJson } from '#actions/remedies';
import { CommandContext, Definition, EXIT, fitted, outputWidth, readingNow } from '#cli/command';
import { inCommands } from '#cli/remedies';
import { Finding } from '#findings/finding';
import { readStatus, Status } from '#reports/status';
import { adviceOn, describeStatus } from '#reports/status-text';

export const define: Definition = (command, action) => {
  command.addHelpText('after', '\nExit status 4: something needs attention.').action(action(readingNow(status)));
};

async function status(context: CommandContext) {
  const { settings, database, output } = context;
  const found = await database.reading((tx) => readStatus(tx, context));
  const advice = adviceOn(settings);
  const attention = await inCommands(found.findings);
  const json = output.json ? { ...found, ...(await remediesOf(found)), attention, advice } : undefined;
  output.print(json, () => fitted(describeStatus(found, { urgent: attention, advice, width: outputWidth() })));
  return attention.length > 0 ? EXIT.attention : EXIT.done;
}

const remediesOf = async ({ findings, unfinished_emails, books }: Status) => ({
  findings: await Promise.all(findings.map(inJson)),
  unfinished_emails: await Promise.all(
    unfinished_emails.map(async ({ remedies, ...email }) => ({
      ...email,
      remedies: await Promise.all(remedies.map(commandOf)),
    })),
  ),
  books: {
    ...books,
    due: await Promise.all(
      books.due.map(async ({ remedies, ...due }) => ({
        ...due,
        remedies: await Promise.all(remedies.map(remediesJson)),
      })),
    ),
  },
});

const inJson = async (finding: Finding) => ({ ...finding, remedies: await remediesJson(finding.remedies) });
