/** Commands that read a report and show it, with the options of its format. */
import { Command } from 'commander';
import { namesOf } from '#actions/command';
import { readFields } from '#actions/fields';
import { withPartnerIds } from '#actions/partner-names';
import { todayOf } from '#config/today';
import { EXIT } from '#errors/refusals';
import { Report, reportText } from '#lists/report';
import { BooksOfDay, preliminaryNote } from '#reports/preliminary';
import { Sheet } from '#sheet';
import { CommandContext, Definition, Handler, reading, readingNow } from './define.ts';
import { addFields, givenTo, withContents } from './fields.ts';
import { outputWidth } from './output.ts';
import { FORMAT, OUT, PresentOptions, present } from './present.ts';

export type Shown = Readonly<{
  json: unknown;
  sheet: () => Sheet;
  text: () => string;
  /** Exit 4. */
  attention?: boolean;
  /** The books of the report's day. Tables and spreadsheets have no place for a note on them. */
  day?: BooksOfDay;
}>;

export const reportCommand = async (loading: Promise<Report>): Promise<{ readonly define: Definition }> => {
  const report = await loading;
  const { asked: fields, words, command: name, summary } = report;
  return {
    define(group, handle) {
      const command = group.command(name).description(summary);
      addFields(command, fields, words);
      showing(command, handle, async (context, ...values: unknown[]) => {
        const given = givenTo(fields, { values, options: values.at(-1) as object }, words);
        const asked = withContents(fields, readFields(fields, given, namesOf({ input: fields, command: words })));
        const seen = { today: todayOf(context), scope: null, period: null };
        const found = await context.database.reading(async (tx) =>
          report.read(tx, await withPartnerIds(tx, fields, asked, null), seen),
        );
        return {
          json: report.json ? report.json(found) : found,
          sheet: () => report.sheet(found),
          text: () => reportText(report, found, outputWidth()),
          attention: report.verdict(found).good === false,
          ...(report.day && { day: report.day(found) }),
        };
      });
    },
  };
};

/** Adds the action of a command that reads a report, from the replica unless it must be current. */
export function showing<Given extends unknown[]>(
  command: Command,
  handle: Handler,
  read: (context: CommandContext, ...given: Given) => Promise<Shown>,
  { current = false } = {},
) {
  const show = async (context: CommandContext, ...given: Given) => {
    const options = given.at(-1) as PresentOptions;
    const { json, sheet, text, attention = false, day } = await read(context, ...given);
    await present(context, `report ${command.name()}`, options, json, sheet, text);
    if (day && options.format !== undefined) for (const note of preliminaryNote(day)) context.output.note(note);
    return attention ? EXIT.attention : EXIT.done;
  };
  command
    .option(...FORMAT)
    .option(...OUT)
    .action(handle((current ? readingNow : reading)(show)));
}
