/**
 * Findings about obstacles to closing months and their books, sealing them, and exporting them to the general ledger.
 */
import { closeAnyway, type Feeds, isIncomplete, missingFeeds } from '../close/feeds.ts';
import { SEAL_SIGNING_KEY_FILE } from '../config/seal-key.ts';
import type { Month } from '../month.ts';
import type { Remedy } from '../remedy.ts';
import { DELIVER, toDo } from '../remedy.ts';
import { keyIdOf, type SigningStatus } from '../seals/signature.ts';
import { minuteOf, plural } from '../text.ts';
import { type Finding, troubleOf } from './finding.ts';

export const openMonths = (overdue: readonly { readonly month: Month; readonly ended_at: string }[]): Finding[] =>
  overdue.map(({ month, ended_at }) =>
    troubleOf('months', `open:${month}`, {
      urgent: `${month} ended in every time zone at ${minuteOf(ended_at)} and is still open.`,
      since: ended_at,
      remedies: [toDo('See why', 'month.close')],
    }),
  );

/** Reports books that the job could not close when due. The next run closes books that have no obstacle left. */
export const openBooks = (
  due: readonly {
    readonly month: Month;
    readonly due_on: string;
    readonly obstacles: readonly string[];
    readonly codes: readonly string[];
    readonly remedies: readonly (readonly Remedy[])[];
  }[],
): Finding[] =>
  due.flatMap(({ month, obstacles, codes, due_on, remedies }) =>
    obstacles.map((message, at) =>
      troubleOf('months', `books:${month} ${codes[at]}`, {
        urgent: `${message} They were due on ${due_on}.`,
        since: due_on,
        remedies: remedies[at] ?? [],
      }),
    ),
  );

export const missingHandOffs = (
  due: readonly { readonly month: Month; readonly format: string | null }[],
  today: string,
): Finding[] =>
  due.map(({ month, format }) =>
    troubleOf('months', `journal:${month}${format === null ? '' : ` ${format}`}`, {
      urgent:
        format === null
          ? `The books of ${month} are closed but not exported to the general ledger.`
          : `${month} was exported for ${format} before its books were closed, and has changed since.`,
      since: today,
      remedies: [
        toDo(
          format === null ? 'Export its journal' : 'Export what changed',
          'gl.export',
          { month, ...(format !== null && { format }) },
          'and import the files',
        ),
      ],
    }),
  );

/** Reports a missing signing key. If seals are signed, nothing closes until the key is restored or replaced. */
export const missingKey = ({ key, latest }: SigningStatus, today: string): Finding[] =>
  key !== null || latest === null
    ? []
    : [
        troubleOf('months', 'signing key', {
          urgent:
            `Seals are signed, but ${SEAL_SIGNING_KEY_FILE} is not set: no month or books can close. Set it to the ` +
            `file of the key ${keyIdOf(latest)}, or of a new key if that one is lost.`,
          since: today,
        }),
      ];

/**
 * Reports missing checkpoints. The jobs take a checkpoint each day. After two days without a checkpoint, the jobs do
 * not run or are refused.
 */
export const missingCheckpoints = (
  { last, overdue_days: days }: { readonly last: string | null; readonly overdue_days: number },
  today: string,
): Finding[] =>
  days < 2
    ? []
    : [
        troubleOf('months', 'checkpoint', {
          urgent:
            `No checkpoint of the open month was taken ${last === null ? `for ${days} days` : `since ${last}`}. ` +
            'The jobs deliver and month-close take one each day.',
          since: last ?? today,
          remedies: [toDo('Take one and read its output', 'checkpoint.take')],
        }),
      ];

export const missingTimeStamps = (late: readonly string[], today: string): Finding[] =>
  late.length === 0
    ? []
    : [
        troubleOf('months', 'time stamps', {
          urgent:
            `${plural(late.length, 'seal')} without a time stamp for more than a day, first the ${late[0]}. ` +
            'If the authority does not answer, set another time_stamping_url.',
          since: today,
          remedies: [{ ...DELIVER, label: "Try again and read the authority's answer" }],
          count: late.length,
        }),
      ];

/** Reports a month that has ended, but that the hourly job does not close because feeds are missing. */
export function waitingFeeds(feeds: (Feeds & { readonly due: boolean }) | null, today: string): Finding[] {
  if (feeds === null || !feeds.due || !isIncomplete(feeds)) return [];
  const ids = missingFeeds(feeds).map(({ partner_id }) => partner_id);
  const remedies = [closeAnyway(feeds)];
  return [
    feeds.empty
      ? troubleOf('months', `empty:${feeds.month}`, {
          urgent: `${feeds.month} has no rows and is waiting. Import them.`,
          since: today,
          remedies,
        })
      : troubleOf('months', `feeds:${feeds.month}`, {
          urgent:
            `${feeds.month} is waiting for the rows of ${plural(ids.length, 'partner')}: ${ids.join(', ')}. Import ` +
            'them.',
          since: today,
          remedies,
          count: ids.length,
        }),
  ];
}

/** Reports changed payment instructions that are not in force yet. Documents still print the old ones. */
export const notInForce = (fields: readonly string[], today: string): Finding[] =>
  fields.length === 0
    ? []
    : [
        troubleOf('months', 'bank details', {
          urgent:
            `Bank details in settings.json are not in force: ${fields.join(', ')}. Documents print those adopted ` +
            'last. Adopt the new ones, or undo the change.',
          since: today,
          remedies: [toDo('Adopt them', 'instructions.adopt')],
          count: fields.length,
        }),
      ];
