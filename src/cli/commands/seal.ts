/** `reckoner seal letters`: every seal, and the letter that told it to the auditor. */
import { readSealLetters, type SealLetter } from '../../reports/seal-letters.ts';
import { sealTitle } from '../../seals/signature.ts';
import type { Sheet } from '../../sheet.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { outputWidth, table } from '../output.ts';
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
      : lettersTable(found, (outputWidth() ?? WIDE) >= WIDE);
  await present(output, options, found, () => sheetOf(found), listed);
}

/** From so many columns on, times stand beside the days. */
const WIDE = 110;

function lettersTable(found: readonly SealLetter[], isWide: boolean): string {
  const time = (instant: string) => instant.slice(0, isWide ? 16 : 10).replace('T', ' ');
  return table(
    ['seal of', 'seal', 'made (UTC)', 'letter', '~to', ...(isWide ? ['signed', 'stamped'] : ['sig.', 'stamp'])],
    found.map((each) => [
      { month: each.name, books: `books ${each.name}`, checkpoint: `checkpoint ${each.name}` }[each.kind],
      each.seal.slice(0, 16),
      time(each.made_at),
      each.sent_at === null ? (each.letter ?? 'none') : time(each.sent_at),
      each.to?.join(', ') ?? '',
      each.signed_by === null ? 'no' : 'yes',
      each.stamped_at === null ? 'no' : 'yes',
    ]),
  );
}

const sheetOf = (found: readonly SealLetter[]): Sheet => ({
  name: 'Letters',
  columns: {
    ...({ kind: 'text', name: 'text', about: 'text', seal: 'text', made_at: 'text', letter: 'text' } as const),
    ...({ sent_at: 'text', to: 'text', message_id: 'text', signed_by: 'text' } as const),
    ...({ stamped_at: 'text', stamped_by: 'text' } as const),
  },
  rows: found.map((each) => ({ ...each, about: sealTitle(each), to: each.to?.join(' ') ?? '' })),
});
