/** Files that commands read whole. */
import { readFileSync } from 'node:fs';
import { reasonOf, refuse } from '../errors/refusals.ts';

/** The content of a file, or of stdin if the name is '-'. Refusal: file_unreadable. */
export function readInput(name: string): Buffer {
  try {
    return readFileSync(name === '-' ? 0 : name);
  } catch (error) {
    throw refuse('file_unreadable', { file: name, reason: reasonOf(error) }, error);
  }
}
