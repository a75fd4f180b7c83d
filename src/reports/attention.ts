/** What needs attention: one sentence for each thing, with the command to run. */
import { DateTime } from 'luxon';
import { isIncomplete, missingFeeds, optionsToClose } from '../close/feeds.ts';
import { accountKeyVariable } from '../config/environment.ts';
import { SEAL_SIGNING_KEY_FILE } from '../config/seal-key.ts';
import type { Settings } from '../config/settings.ts';
import type { LinkTrouble } from '../delivery/links/queries.ts';
import type { EmailStatus } from '../mail/email.ts';
import { attentionToWebhooks } from '../partner-events/health.ts';
import type { ExceptionKind } from '../payments/exceptions.sql.ts';
import { keyIdOf } from '../seals/signature.ts';
import { type AccountHealth, STALE_HOURS } from '../splits/account-health.ts';
import { WATCHED_DAYS } from '../splits/accounts.sql.ts';
import { describeToldNotSeen } from '../splits/told-not-seen.ts';
import { duration, minuteOf, plural } from '../text.ts';
import { attentionToBooks } from './books-status.ts';
import { attentionToHandOffs } from './hand-offs.ts';
import { type Attention, type AttentionItem, attention } from './job-attention.ts';
import type { Status } from './status.ts';
import { attentionToApprovals } from './waiting-approvals.ts';

/** A month still open this long after it has ended everywhere needs attention, and so does an e-mail that waits as long. */
export const OVERDUE_HOURS = 24;

interface Found extends Omit<Status, 'attention' | 'findings'> {
  /** The numbers of documents whose e-mail has waited longer than OVERDUE_HOURS. */
  readonly delayed: readonly string[];
  /** The documents whose e-mails need attention, as `nameNeedingAttention` names them. */
  readonly needing: readonly string[];
  /** What the last verify found. */
  readonly verified: readonly AttentionItem[];
  /** The names of the payment exceptions. */
  readonly exceptions: readonly string[];
  /** Documents that finance put on hold: they need no attention. */
  readonly on_hold: number;
  /** Documents whose e-mail was returned. They count as failed. */
  readonly bounced: number;
}

export const attentionOf = (found: Found, now: DateTime<true>): Attention[] => [
  ...attentionToClock(found.clock_ahead_seconds),
  ...attentionToPause(found.paused, now),
  ...found.months.overdue.map(({ month, ended_at }) =>
    attention(
      `${month} ended in every time zone at ${minuteOf(ended_at)} and is still open. Run 'reckoner close' and read what ` +
        'it says.',
      `${month} open`,
    ),
  ),
  ...attentionToBooks(found.books),
  ...attentionToHandOffs(found.general_ledger),
  ...attentionToSigning(found.signing),
  ...attentionToCheckpoints(found.checkpoints),
  ...attentionToTimeStamps(found.late_time_stamps),
  ...attentionToFeeds(found.feeds),
  ...attentionToApprovals(found.approvals),
  ...(found.instructions_to_adopt.length === 0 ? [] : [attention(notInForce(found), 'bank details not in force')]),
  ...attentionToDocuments(found),
  ...attentionToJobs(found, now),
  ...attentionToMail(found.mail_failing, now),
  ...attentionToLinks(found.links),
  ...attentionToRefused(found),
  ...found.unfinished_emails
    .filter(({ email }) => found.refused_in_a_row?.others.includes(email) !== true)
    .flatMap((email) => attentionToEmail(email, now)),
  ...attentionToPayments(found),
  ...attentionToConnected(found.connected),
  ...attentionToToldNotSeen(found.told_not_seen, now),
  ...attentionToWebhooks(found.webhooks, now).map(({ sentence, about }) => attention(sentence, about)),
];

const attentionToClock = (ahead: number): Attention[] =>
  ahead === 0
    ? []
    : [
        attention(
          `This machine's clock is ${duration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'} the database's. Nothing ` +
            'is recorded until they agree. Correct the clock that is wrong (timedatectl).',
          'clock',
        ),
      ];

/** A pause is wanted, unless somebody has forgotten it. After a restore somebody must decide. */
const attentionToPause = (pause: Status['paused'], now: DateTime<true>): Attention[] =>
  pause === null ||
  (pause.cause === 'command' && now.diff(DateTime.fromISO(pause.paused_at)).as('hours') < OVERDUE_HOURS)
    ? []
    : [
        attention(
          `The ledger has been paused since ${minuteOf(pause.paused_at)}: ${pause.reason}. Nothing closes, is issued, sent or ` +
            `recorded. 'reckoner resume' ${pause.cause === 'restore' ? 'shows what is to be decided' : 'ends the pause'}.`,
          `pause of ${pause.paused_at}`,
        ),
      ];

/** Documents go on printing what is in force. */
const notInForce = ({ instructions_to_adopt: fields }: Found): string =>
  `Bank details of settings.json are not in force: ${fields.join(', ')}. Documents print those that were adopted last. Run ` +
  "'reckoner instructions adopt', or take the change back.";

/** Seals are signed, and the key is gone: nothing closes until it is back, or there is a new one. */
const attentionToSigning = ({ key, latest }: Status['signing']): Attention[] =>
  key !== null || latest === null
    ? []
    : [
        attention(
          `Seals are signed, and ${SEAL_SIGNING_KEY_FILE} is not set: no month and no books can close. Set it to the file of the ` +
            `key ${keyIdOf(latest)}; if that key is lost, to a new one.`,
          'signing key',
        ),
      ];

const attentionToTimeStamps = (late: readonly string[]): Attention[] =>
  late.length === 0
    ? []
    : [
        attention(
          `${plural(late.length, 'seal')} without a time stamp for more than a day, the first the ${late[0]}. Run ` +
            "'reckoner deliver' and read what it says of the authority, or set another time_stamping_url.",
          ...late.map((seal) => `no time stamp: ${seal}`),
        ),
      ];

/** One is taken each day. After two days without, the jobs do not run, or are refused. */
const attentionToCheckpoints = ({ last, overdue_days: days }: Status['checkpoints']): Attention[] =>
  days < 2
    ? []
    : [
        attention(
          `No checkpoint of the open month was taken ${last === null ? `for ${days} days` : `since ${last}`}. Run ` +
            "'reckoner checkpoint' and read what it says; cron's deliver and month-close take one each day.",
          'checkpoint',
        ),
      ];

/** A month that has ended and is not closed by the hourly job, because feeds are missing. */
function attentionToFeeds(feeds: Status['feeds']): Attention[] {
  if (feeds === null || !feeds.due || !isIncomplete(feeds)) return [];
  const ids = missingFeeds(feeds).map(({ partner_id }) => partner_id);
  return feeds.empty
    ? [
        attention(
          `${feeds.month} has no rows and waits. Import them, or run 'reckoner close ${feeds.month} ${optionsToClose(feeds)}' if there ` +
            'were no sales.',
          `${feeds.month} empty`,
        ),
      ]
    : [
        attention(
          `${feeds.month} waits for the rows of ${plural(ids.length, 'partner')}: ${ids.join(', ')}. Import them, or run ` +
            `'reckoner close ${feeds.month} ${optionsToClose(feeds)}' if they had no sales.`,
          ...ids.map((id) => `${feeds.month} without rows of ${id}`),
        ),
      ];
}

function attentionToDocuments({ deliveries, delayed, bounced, needing, ...found }: Found): Attention[] {
  const documents = (count: number) => plural(count, 'document');
  // Those refused in a row are told there, and their names are here.
  const named = (status: EmailStatus) => needing.filter((each) => each.split(' ')[1] === status);
  const held = deliveries.held - found.on_hold;
  const failed = deliveries.failed - bounced - (found.refused_in_a_row?.documents ?? 0);
  const { uncertain } = deliveries;
  const needed: Attention[] = [];
  if (held > 0) {
    needed.push(
      attention(`${documents(held)} held: supply what is missing, then run 'reckoner deliver'.`, ...named('held')),
    );
  }
  if (delayed.length > 0) {
    needed.push(
      attention(
        `${documents(delayed.length)} issued more than ${OVERDUE_HOURS} hours ago ${delayed.length === 1 ? 'is' : 'are'} still ` +
          "to be sent. Run 'reckoner deliver' and read what it says.",
        ...delayed.map((number) => `${number} delayed`),
      ),
    );
  }
  if (failed > 0) {
    needed.push(
      attention(
        `${documents(failed)} refused by the mail server for good: correct the partner's contact, then run ` +
          "'reckoner invoice resend NUMBER'.",
        ...named('failed'),
      ),
    );
  }
  if (bounced > 0) {
    needed.push(
      attention(
        `${documents(bounced)} returned by a mail server: correct the partner's contact, then run 'reckoner invoice resend ` +
          "NUMBER'.",
        ...named('bounced'),
      ),
    );
  }
  if (uncertain > 0) {
    needed.push(
      attention(
        `${documents(uncertain)} may or may not have arrived: ask the partner before sending again with ` +
          "'reckoner invoice resend NUMBER'.",
        ...named('uncertain'),
      ),
    );
  }
  return needed;
}

/** How often each job of jobs/crontab runs, and `deliver --watch` records that it does, in hours. */
const PERIOD_HOURS: Readonly<Record<string, number>> = {
  'month-close': 1,
  deliver: 1 / 6,
  worker: 1 / 6,
  ...{ watch: 24, remind: 24, verify: 24, reconcile: 24, backup: 24, purge: 24 },
};
/** A job is late after twice its period and this. */
const JOB_GRACE_HOURS = 1;
/** A job that has not run for so long was given up on purpose. */
const JOB_GIVEN_UP_DAYS = 30;

const attentionToJobs = ({ jobs, verified }: Found, now: DateTime<true>): Attention[] =>
  jobs.flatMap(({ job, finished_at, exit_status }) => {
    const at = minuteOf(finished_at);
    const hours = now.diff(DateTime.fromISO(finished_at)).as('hours');
    const period = PERIOD_HOURS[job];
    const late = period !== undefined && hours > 2 * period + JOB_GRACE_HOURS && hours < 24 * JOB_GIVEN_UP_DAYS;
    return [
      // A month that does not close has sentences of its own.
      ...(exit_status === 1 || exit_status === 2 || (exit_status === 3 && job !== 'month-close')
        ? [
            attention(
              `The last run of ${job} failed at ${finished_at} (exit ${exit_status}). Read its log.`,
              `${job} failed`,
            ),
          ]
        : []),
      ...(job === 'verify' && exit_status === 4
        ? [
            attention(
              `The verify of ${at} found differences between what is stored and the ledger. Run 'reckoner verify': it names ` +
                'them. Until they are explained, close nothing and keep a backup as it is.',
              'verify found differences',
              ...verified.map(({ item, count }) => ({ item: `differences of ${item}`, count })),
            ),
          ]
        : []),
      ...(late
        ? [
            attention(
              `${job} last ran at ${at}. It should run more often: look at ${job === 'worker' ? "the host of 'reckoner deliver --watch'" : 'the scheduler'}.`,
              `${job} late`,
            ),
          ]
        : []),
    ];
  });

/** A failure of mail that is shorter than this needs no attention. */
const MAIL_LATE_HOURS = 1;

function attentionToMail(failing: Status['mail_failing'], now: DateTime<true>): Attention[] {
  if (failing === null || now.diff(DateTime.fromISO(failing.since)).as('hours') <= MAIL_LATE_HOURS) return [];
  return [
    attention(
      `No e-mail has gone out since ${minuteOf(failing.since)} (${failing.reason}). Look at the mail server and SMTP_URL; ` +
        "'reckoner deliver' tries again.",
      'no e-mail goes out',
    ),
  ];
}

/** What a mail server refuses in a row points to the server, and is one thing to correct. */
function attentionToRefused({ refused_in_a_row: refused, needing }: Found): Attention[] {
  if (refused === null) return [];
  const { since, documents, others, reason } = refused;
  const counts = [
    ...(documents > 0 ? [plural(documents, 'document')] : []),
    ...(others.length > 0 ? [plural(others.length, 'other e-mail')] : []),
  ];
  return [
    attention(
      `The mail server has refused ${counts.join(' and ')} in a row since ${minuteOf(since)} (${reason}). Several recipients ` +
        'refused in a row point to the mail server, not to the addresses. Correct it, then run ' +
        `'reckoner deliver --retry failed --since ${since.slice(0, 19)}Z'. If an address is wrong, correct the partner's contact ` +
        "and run 'reckoner invoice resend NUMBER'.",
      'refused in a row',
      ...needing.filter((each) => each.split(' ')[1] === 'failed'),
      ...others.map((email) => `e-mail ${email} failed`),
    ),
  ];
}

type Unfinished = Exclude<EmailStatus, 'sent' | 'withdrawn'>;

function attentionToEmail(email: Status['unfinished_emails'][number], now: DateTime<true>): Attention[] {
  const { about, to, status, since, reason, remedies } = email;
  const waits = status === 'queued' || status === 'sending';
  if (waits && since > now.minus({ hours: OVERDUE_HOURS }).toUTC().toISO()) return [];
  const state = {
    ...{ queued: 'is still to be sent', sending: 'is still to be sent', held: 'is held' },
    ...{ failed: 'was refused by the mail server for good', uncertain: 'may or may not have arrived' },
    bounced: 'was returned',
  }[status as Unfinished];
  const first = {
    ...{ queued: 'Run', sending: 'Run', held: 'Supply what is missing, then run' },
    ...{ failed: 'Correct the address, or run', uncertain: 'Ask the recipient, then run' },
    bounced: 'Correct the address, or run',
  }[status as Unfinished];
  return [
    attention(
      `E-mail ${email.email}, ${about}${to === null ? '' : ` to ${to.join(', ')}`}, ${state} since ${minuteOf(since)}` +
        `${reason === null ? '' : ` (${reason})`}. ${first} ${remedies.map((each) => `'${each}'`).join(' or ')}.`,
      `e-mail ${email.email} ${waits ? 'unsent' : status}`,
    ),
  ];
}

/** An outage of the processor that is shorter than this needs no attention. */
const LINK_LATE_SECONDS = 3600;

function attentionToLinks(links: readonly LinkTrouble[]): Attention[] {
  const named = (some: readonly LinkTrouble[]) => {
    const numbers = some.map(({ number }) => number);
    return numbers.length > 3 ? `${numbers.slice(0, 3).join(', ')} and ${numbers.length - 3} more` : numbers.join(', ');
  };
  const why = (some: readonly LinkTrouble[]) => some.find(({ reason }) => reason !== null)?.reason;
  const because = (some: readonly LinkTrouble[]) => (why(some) === undefined ? '' : ` (${why(some)})`);
  const active = links.filter((each) => each.active);
  const refused = links.filter((each) => !each.active && each.kind === 'refused');
  const late = links.filter(
    (each) => !each.active && each.kind === 'unavailable' && each.waited_seconds > LINK_LATE_SECONDS,
  );
  const each = (some: readonly LinkTrouble[], what: string) => some.map(({ number }) => `${number} link ${what}`);
  const needed: Attention[] = [];
  if (active.length > 0) {
    needed.push(
      attention(
        `${named(active)}: a payment link for more than is owed is still active${because(active)}. ` +
          "Run 'reckoner deliver'; if it stays, switch the link off at the processor by hand.",
        ...each(active, 'active'),
      ),
    );
  }
  if (refused.length > 0) {
    needed.push(
      attention(
        `${named(refused)}: the processor refused the payment link${because(refused)}. The next attempt is in a day.`,
        ...each(refused, 'refused'),
      ),
    );
  }
  if (late.length > 0) {
    needed.push(
      attention(
        `${named(late)}: no payment link for more than an hour${because(late)}. Run 'reckoner deliver'.`,
        ...each(late, 'late'),
      ),
    );
  }
  return needed;
}

const EXCEPTIONS: Readonly<Record<ExceptionKind, readonly [one: string, many: string]>> = {
  unknown_payer: ['payment of an unknown payer', 'payments of unknown payers'],
  possible_duplicate: ['payment that may be a duplicate', 'payments that may be duplicates'],
  suggestion: ['payment with a suggestion', 'payments with suggestions'],
  digits_swapped: ['part payment whose digits may be swapped', 'part payments whose digits may be swapped'],
  unapplied_cash: ['payment with unapplied cash', 'payments with unapplied cash'],
  payout: ['payout of unknown payments', 'payouts of unknown payments'],
  bank_line: ['bank line', 'bank lines'],
  bank_statement: [
    'bank statement that does not continue its account',
    'bank statements that do not continue their accounts',
  ],
  event: ['processor event', 'processor events'],
  waiting_event: ['processor event that waits for another', 'processor events that wait for others'],
};

function attentionToPayments({ payment_exceptions, exceptions }: Found): Attention[] {
  const named = Object.entries(payment_exceptions).map(([kind, count]) =>
    plural(count, ...EXCEPTIONS[kind as ExceptionKind]),
  );
  return named.length === 0
    ? []
    : [
        attention(
          `Payment exceptions: ${named.join(', ')}. 'reckoner payment exceptions' lists them.`,
          ...exceptions.map((exception) => `exception ${exception}`),
        ),
      ];
}

/** Payouts come within days and bank files within weeks: what is older may never have been sent. */
const TOLD_DAYS = 60;

function attentionToToldNotSeen(told: Status['told_not_seen'], now: DateTime<true>): Attention[] {
  return told
    .filter(({ since }) => now.diff(DateTime.fromISO(since, { zone: 'utc' })).as('days') > TOLD_DAYS)
    .map((each) =>
      attention(
        `${describeToldNotSeen(each)}. Ask for the payouts, and import the bank's files that show them.`,
        `told and not seen: ${each.account} ${each.currency}`,
      ),
    );
}

function attentionToConnected({ accounts, stale, open, unknown, payouts }: AccountHealth): Attention[] {
  const ofAccount = (account: string) => accounts.find((each) => each.account === account);
  return [
    ...stale.map((account) => {
      const { partners = [], read_to = null, followed = false } = ofAccount(account) ?? {};
      const last =
        read_to === null ? 'was never read' : `was last read up to ${read_to}, more than ${STALE_HOURS} hours ago`;
      const key = accountKeyVariable(account);
      const sentence = followed
        ? `${account}, the former account of ${partners.join(', ')}, ${last}: balance transactions may appear on it for ` +
          `${WATCHED_DAYS} days after the last sale. Run 'reckoner processor poll' with ${key}.`
        : `${account} of ${partners.join(', ')} ${last}. Run 'reckoner processor poll'. Without a key (${key}), import ` +
          `its balance transactions ('reckoner processor import FILE --account ${account}'), or settlement files with ` +
          'balance_transactions_from set to settlement_file.';
      return attention(sentence, `${account} not read`);
    }),
    ...Object.entries(open).map(([month, quotes]) =>
      attention(
        `${plural(quotes, 'quote')} of ${month} not routed as expected. 'reckoner reconcile ${month}' lists them.`,
        { item: `quotes of ${month} not routed`, count: quotes },
      ),
    ),
    ...(unknown > 0
      ? [
          attention(
            `${plural(unknown, 'balance transaction')} of connected accounts for unknown quotes. ` +
              "'reckoner reconcile MONTH' lists them.",
            { item: 'balance transactions of unknown quotes', count: unknown },
          ),
        ]
      : []),
    ...(payouts > 0
      ? [
          attention(
            `${plural(payouts, 'payout')} of connected accounts to review: not in the bank, contents unknown, or transactions ` +
              "skipped. 'reckoner reconcile MONTH' lists them.",
            { item: 'payouts to review', count: payouts },
          ),
        ]
      : []),
  ];
}

const MAILED = {
  finance_email: 'the close report is not e-mailed',
  auditor_email: 'the seal of a month is not e-mailed when it closes',
  operations_email: 'the status is not e-mailed when something needs attention',
} as const;

/** What is advised and needs no attention: an address that a kind of e-mail goes to is not set. */
export const adviceOn = (settings: Settings): string[] =>
  (Object.keys(MAILED) as (keyof typeof MAILED)[])
    .filter((field) => settings[field] === '')
    .map((field) => `settings.json has no ${field}: ${MAILED[field]}.`);
