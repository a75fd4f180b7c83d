/** A note on stderr, because tables and spreadsheets have no place for it. */
import { type BooksOfDay, preliminaryNote } from '../../../reports/preliminary.ts';
import type { Output, PresentOptions } from '../../command.ts';

export function notePreliminary(output: Output, { format }: PresentOptions, day: BooksOfDay): void {
  if (format !== undefined) for (const note of preliminaryNote(day)) output.note(note);
}
