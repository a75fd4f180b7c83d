/** Commands that read a report and show it, with the options of its format. */
import { Command } from 'commander';
import { EXIT } from '#errors/refusals';
import { BooksOfDay, preliminaryNote } from '#reports/preliminary';
import { Sheet } from '#sheet';
import { CommandContext, Handler, reading, readingNow } from './define.ts';
import { FORMAT, OUT, PresentOptions, present } from './present.ts';

export type Shown = Readonly<{
  json: unknown;
  sheet: () => Sheet;
  text: () => string;
  /** Exit 4. */
  attention?: boolean;
  /** The books of the report's day. Tables and spreadsheets have no place for a note on them. */
  day?: BooksOfDay;
  note?: string | undefined;
}>;

/** Adds the action of a command that reads a report, from the replica unless it must be current. */
export function showing<Given extends unknown[]>(
  command: Command,
  handle: Handler,
  read: (context: CommandContext, ...given: Given) => Promise<Shown>,
  { current = false } = {},
) {
  const show = async (context: CommandContext, ...given: Given) => {
    const options = given.at(-1) as PresentOptions;
    const { json, sheet, text, attention = false, day, note } = await read(context, ...given);
    await present(context, `report ${command.name()}`, options, json, sheet, text);
    const notes = [...(day && options.format !== undefined ? preliminaryNote(day) : []), ...(note ? [note] : [])];
    for (const each of notes) context.output.note(each);
    return attention ? EXIT.attention : EXIT.done;
  };
  command
    .option(...FORMAT)
    .option(...OUT)
    .action(handle((current ? readingNow : reading)(show)));
}
