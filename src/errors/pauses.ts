/** Refusals about pauses of the ledger and numbers that are skipped after a restore. */

import { toDo, toRun } from '#remedy';
import { minuteOf } from '#text';
import { Definition, EXIT, refused, says } from './definition.ts';

export interface OpenPause {
  readonly since: string;
  readonly reason: string;
}

export const END_PAUSE = toRun('End the pause', 'resume');

const paused: Definition<OpenPause> = {
  exit: EXIT.refused,
  http: 503,
  sentence: (f) =>
    says(
      `The ledger has been paused since ${minuteOf(f.since)}: ${f.reason}. Nothing is closed, issued, sent or ` +
        'recorded.',
      END_PAUSE,
    ),
};

export const PAUSES = {
  paused,
  already_paused: refused<OpenPause>((f) =>
    says(
      `The ledger has already been paused since ${minuteOf(f.since)}: ${f.reason}. ` +
        'To give a different reason, end the pause and ' +
        'pause again.',
      END_PAUSE,
    ),
  ),
  not_paused: refused('The ledger is not paused, so there is nothing to resume.', toDo('Pause it', 'ledger.pause')),
  numbers_missing: refused<{ last: readonly string[] }>(
    (f) =>
      'Not resumed: give the last number used in each series, so that no number is used twice. Still missing are the ' +
      `series of these last numbers here: ${f.last.join(', ')}. If no one has seen a later number, add ` +
      `${f.last.map((each) => `--numbers-after ${each}`).join(' ')}.`,
  ),
  numbers_not_ahead: refused([
    '{number} is before {last}, the last number in this ledger, so it cannot be the last one that was ',
    'issued. Give the last number of this series that anyone outside has seen.',
  ]),
  numbers_implausible: refused([
    'The numbers up to {number} were not skipped: {reason}. Skipped numbers are never used again. ',
    'Check the number and run the command again.',
  ]),
} as const;
