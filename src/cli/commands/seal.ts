/** `reckoner seal letters`: every seal, and the letter that told it to the auditor. */
import { readSealLetters, type SealLetter } from '../../reports/seal-letters.ts';
import { sealTitle } from '../../seals/signature.ts';
import type { Sheet } from '../../sheet.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (seal, act) => {
  seal
    .command('letters')
    .description('List every seal with its letter, signature and time stamp')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(letters)));
};

async function letters({ database, output }: CommandContext, options: PresentOptions): Promise<void> {
  const found = await database.reading(readSealLetters);
  const listed = () =>
    found.length === 0
      ? "Nothing is sealed yet. 'reckoner checkpoint' seals the open month so far."
      : table(
          ['seal of', 'seal', 'made (UTC)', 'letter', '~to', 'signed', 'stamped'],
          found.map((each) => [
            { month: each.name, books: `books ${each.name}`, checkpoint: `checkpoint ${each.name}` }[each.kind],
            each.seal.slice(0, 16),
            minute(each.made_at),
            each.sent_at === null ? (each.letter ?? 'none') : minute(each.sent_at),
            each.to?.join(', ') ?? '',
            each.signed_by === null ? 'no' : 'yes',
            each.stamped_at === null ? 'no' : 'yes',
          ]),
        );
  await present(output, options, found, () => sheetOf(found), listed);
}

const minute = (instant: string): string => instant.slice(0, 16).replace('T', ' ');

const sheetOf = (found: readonly SealLetter[]): Sheet => ({
  name: 'Letters',
  columns: {
    ...({ kind: 'text', name: 'text', about: 'text', seal: 'text', made_at: 'text', letter: 'text' } as const),
    ...({ sent_at: 'text', to: 'text', message_id: 'text', signed_by: 'text' } as const),
    ...({ stamped_at: 'text', stamped_by: 'text' } as const),
  },
  rows: found.map((each) => ({ ...each, about: sealTitle(each), to: each.to?.join(' ') ?? '' })),
});
