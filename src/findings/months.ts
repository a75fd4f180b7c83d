/**
 * Findings for months and books that are not closed, not covered by checkpoints, or not exported to the general ledger.
 */
import { closeAnyway, Feeds, undecidedFeeds } from '#close/feeds';
import { LOG_SIGNING_KEY_FILE } from '#config/log-key';
import { SECTIONS } from '#config/settings';
import { doubtSentences } from '#errors/close';
import { keyIdOf } from '#log/note';
import { checkpointTitle } from '#log/text';
import { changeText } from '#people/field-changes';
import { Differences } from '#people/settings-in-force';
import { Month, minuteOf, plural } from '#values';
import { DELIVER, Finding, Remedy, toDo, troubleOf } from './finding.ts';

export const openMonths = (overdue: readonly Readonly<{ month: Month; ended_at: string }>[]): Finding[] =>
  overdue.map(({ month, ended_at }) =>
    troubleOf('months', `open:${month}`, {
      urgent: `${month} ended in every time zone at ${minuteOf(ended_at)} and is still open.`,
      since: ended_at,
      remedies: [toDo('See why', 'month.close')],
    }),
  );

/** A month that is past the closing day in the settings, with the obstacles to closing its books. */
export type DueBooks = Readonly<{
  month: Month;
  due_on: string;
  obstacles: readonly string[];
  codes: readonly string[];
  remedies: readonly (readonly Remedy[])[];
}>;

/** Reports books that the job could not close when due. The next run closes books that have no obstacle left. */
export const openBooks = (due: readonly DueBooks[]): Finding[] =>
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
  due: readonly Readonly<{ month: Month; format: string | null }>[],
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

/** The keys that sign checkpoints: the key at hand, and the key on record. */
type SigningKeys = Readonly<{
  key: string | null;
  latest: string | null;
  latest_at_hand: boolean;
  lost: Readonly<{ recorded_at: string; reason: string }> | null;
}>;

/**
 * The key is missing, or a new key replaced it without the old key's signature. No action is refused because of this.
 */
export function signingKeys({ key, latest, latest_at_hand, lost }: SigningKeys, today: string): Finding[] {
  if (latest === null) return [];
  if (key === null) {
    return [
      troubleOf('months', 'signing key', {
        urgent:
          `Checkpoints are no longer signed: ${LOG_SIGNING_KEY_FILE} is not set. Set it to the file of the key ` +
          `${keyIdOf(latest)}, or of a new key if that one is lost.`,
        since: today,
      }),
    ];
  }
  if (!latest_at_hand) {
    return [
      troubleOf('months', 'new signing key', {
        urgent:
          `${LOG_SIGNING_KEY_FILE} has a new key, and the key ${keyIdOf(latest)} is not at hand to sign it. Set ` +
          `LOG_SIGNING_KEY_BEFORE_FILE to its file. Otherwise the log will state that it is lost.`,
        since: today,
      }),
    ];
  }
  return lost === null
    ? []
    : [
        troubleOf('months', 'lost signing key', {
          urgent:
            `The signing key changed on ${lost.recorded_at.slice(0, 10)}, and the log states: ${lost.reason}. Give ` +
            'the auditor the new key by telephone or in person.',
          since: lost.recorded_at,
        }),
      ];
}

/**
 * Reports missing checkpoints. The jobs take a checkpoint each day. If there was no checkpoint for two days, the jobs
 * do not run or are refused.
 */
export const missingCheckpoints = (
  {
    last,
    uncovered,
    overdue_days: days,
  }: Readonly<{
    last: { readonly taken_at: string } | null;
    uncovered: number;
    overdue_days: number;
  }>,
  today: string,
): Finding[] =>
  days < 2
    ? []
    : [
        troubleOf('months', 'checkpoint', {
          urgent:
            `The next checkpoint has been overdue for ${plural(days, 'day')}: guards alone protect ` +
            `${plural(uncovered, 'fact')}. The jobs deliver and month-close take one each day.`,
          since: last?.taken_at ?? today,
          remedies: [toDo('Take one and read its output', 'checkpoint.take')],
        }),
      ];

/** Checkpoints without a signature, although the key is at hand. */
export const missingSignatures = (
  {
    signing,
    checkpoints,
  }: Readonly<{
    signing: Pick<SigningKeys, 'key'>;
    checkpoints: { readonly unsigned: readonly number[] };
  }>,
  today: string,
): Finding[] => {
  const [first] = checkpoints.unsigned;
  return first === undefined || signing.key === null
    ? []
    : [
        troubleOf('months', 'signatures', {
          urgent:
            `${plural(checkpoints.unsigned.length, 'checkpoint')} without a signature for more than a day, first the ` +
            `${checkpointTitle({ size: first })}. The job deliver signs them.`,
          since: today,
          remedies: [DELIVER],
          count: checkpoints.unsigned.length,
        }),
      ];
};

export const missingTimeStamps = (late: readonly number[], today: string): Finding[] => {
  const [first] = late;
  return first === undefined
    ? []
    : [
        troubleOf('months', 'time stamps', {
          urgent:
            `${plural(late.length, 'checkpoint')} without a time stamp for more than a day, first the ` +
            `${checkpointTitle({ size: first })}. If the authority does not answer, set another time_stamping_url.`,
          since: today,
          remedies: [{ ...DELIVER, label: "Try again and read the authority's answer" }],
          count: late.length,
        }),
      ];
};

const DOUBTS_NAMED = 3;

/** Reports a month that has ended, but that the hourly job does not close because its rows are in doubt. */
export function waitingFeeds(feeds: (Feeds & { readonly due: boolean }) | null, today: string): Finding[] {
  if (feeds === null || !feeds.due) return [];
  const { month } = feeds;
  const { doubts, empty } = undecidedFeeds(feeds);
  if (empty) {
    const urgent = `${month} has no rows and is waiting. Import them.`;
    return [troubleOf('months', `empty:${month}`, { urgent, since: today, remedies: [closeAnyway(feeds)] })];
  }
  if (doubts.length === 0) return [];
  return [
    troubleOf('months', `feeds:${month}`, {
      urgent: `${month} is waiting. ${doubtSentences(doubts, DOUBTS_NAMED)}`,
      since: today,
      remedies: [closeAnyway(feeds)],
      count: doubts.length,
    }),
  ];
}

/** Reports files that state other settings than those that were adopted. */
export const notInForce = (differences: readonly Differences[], today: string): Finding[] =>
  differences.map(({ section, changes }) =>
    troubleOf('months', SECTIONS[section].toLowerCase(), {
      urgent:
        `${SECTIONS[section]} on the server are not in force: ${changes.map(changeText).join('; ')}. Those adopted last ` +
        'are in force. Adopt the new ones, or undo the change in the file.',
      since: today,
      remedies: [toDo('Adopt them', 'settings.adopt', { section })],
      count: changes.length,
    }),
  );
