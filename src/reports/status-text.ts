/**
 * The status as plain text, for the command and for the e-mail to operations. Names and addresses are cut to the width.
 */
import { lateFeeds, missingFeeds } from '#close/feeds';
import { Settings } from '#config/settings';
import { describeDifferingCut } from '#ledger/quoted';
import { keyIdOf } from '#log/note';
import { factsOf } from '#log/text';
import { describeToldNotSeen } from '#splits/told-not-seen';
import { counted, duration, minuteOf, plural } from '#text';
import { printable, table, wrapped } from '#text-table';
import { isSameKey } from './log-status.ts';
import { Status } from './status.ts';

/** `urgent` contains the findings, each with a remedy for the interface that the reader uses. */
export function describeStatus(
  found: Status,
  { urgent, advice = [], width }: { urgent: readonly string[]; advice?: readonly string[]; width?: number | undefined },
) {
  const { months, books, deliveries, waiting, unfinished_emails: emails, connected, jobs } = found;
  const { sent, pending, held, failed, uncertain } = deliveries;
  const sections = [
    [
      `Environment  ${found.environment}${found.append_only === 'triggers' ? ' (append-only by triggers only)' : ''}`,
      ...(found.paused === null ? [] : [`Paused       since ${minuteOf(found.paused.paused_at)}`]),
      ...found.moved.map(
        ({ timeline, seen_at }) =>
          `Server       another one or timeline (${timeline}) since ${minuteOf(seen_at)}; nothing seen before is missing`,
      ),
      `Partners     ${counted(found.partners)}`,
      `Months       ${months.last_closed === null ? 'none closed yet' : `${months.first} to ${months.last_closed} closed`}` +
        (months.due.length > 0 ? `; due: ${months.due.join(', ')}` : ''),
      `Books        ${books.closed_to === null ? 'none closed yet' : `closed to ${books.closed_to}`}` +
        (books.open.length > 0 ? `; open: ${books.open.join(', ')}` : ''),
      ...labeled('Checkpoint', [`${describeLast(found.checkpoints)}; ${describeSigning(found.signing)}`]),
      ...feedLines(found.feeds),
      `Open rows    ${counted(found.open_entries)}`,
      ...labeled('Cuts', found.differing_cuts.map(describeDifferingCut)),
      `Deliveries   ${counted(sent)} sent, ${counted(pending)} pending, ${counted(held)} held, ${counted(failed)} failed, ` +
        `${counted(uncertain)} uncertain`,
      ...labeled('Not received', found.told_not_seen.map(describeToldNotSeen)),
      ...webhookLines(found.webhooks),
      `Drill        ${describeDrill(jobs.find(({ job }) => job === 'drill'))}`,
    ].join('\n'),
  ];
  if (waiting.length > 0) {
    const rows = waiting.map((each) => [each.number, each.partner_id, each.status, each.reason ?? '']);
    sections.push(table(['document', '~partner', 'state', '~reason'], rows, width));
  }
  if (emails.length > 0) {
    const rows = emails.map((each) => [
      each.email,
      each.about,
      each.to?.join(', ') ?? '',
      each.status,
      each.since.slice(0, 16).replace('T', ' '),
      each.reason ?? '',
    ]);
    sections.push(table(['>e-mail', '~about', '~to', 'state', 'since (UTC)', '~reason'], rows, width));
  }
  if (connected.accounts.length > 0) {
    const rows = connected.accounts.map((each) => [
      each.account,
      each.partners.join(', '),
      each.balance_transactions_from === 'processor' ? 'processor' : 'settlement file',
      each.read_to?.slice(0, 16).replace('T', ' ') ?? 'never',
    ]);
    sections.push(table(['~account', '~partner', 'source', 'read up to'], rows, width));
  }
  if (jobs.length > 0) {
    const rows = jobs.map((each) => [each.job, each.finished_at.slice(0, 19).replace('T', ' '), each.exit_status]);
    sections.push(table(['job', 'last run (UTC)', '>exit'], rows));
  }
  sections.push(
    urgent.length === 0
      ? 'Nothing needs attention.'
      : ['Needs attention:', ...urgent.map((each) => `- ${each}`)].join('\n'),
  );
  if (advice.length > 0) sections.push(['Advice:', ...advice.map((each) => `- ${each}`)].join('\n'));
  return sections.join('\n\n');
}

function describeDrill(run: Status['jobs'][number] | undefined) {
  if (run === undefined) return 'never: no backup was restored and verified';
  const { subject, started_at, finished_at, exit_status } = run;
  const backup = subject === null ? 'the latest backup' : `backup of ${minuteOf(subject)}`;
  return exit_status === 0
    ? `${backup} restored and verified in ${duration((Date.parse(finished_at) - Date.parse(started_at)) / 1000)}`
    : `failed with ${backup} at ${minuteOf(finished_at)} (exit ${exit_status})`;
}

function describeLast({ last, uncovered }: Status['checkpoints']) {
  const alone = uncovered === 0 ? 'nothing is newer' : `guards alone protect ${plural(uncovered, 'newer fact')}`;
  return last === null
    ? `none yet: guards alone protect ${plural(uncovered, 'fact')}`
    : `of ${factsOf(last)}, ${duration(last.age_seconds)} ago; ${alone}`;
}

const describeSigning = ({ key, latest }: Status['signing']) => {
  if (key === null) return latest === null ? 'not signed' : `signed by ${keyIdOf(latest)}, but the key is now missing`;
  return `signed by ${keyIdOf(key)}${latest === null || isSameKey(latest, key) ? '' : `, a new key: before, ${keyIdOf(latest)}`}`;
};

/** Prints at most five sentences under one label, within 80 columns. */
const labeled = (label: string, sentences: readonly string[]) =>
  sentences
    .slice(0, 5)
    .flatMap((each) => wrapped(printable(each), 67))
    .map((line, index) => (index === 0 ? label : '').padEnd(13) + line);

function webhookLines({ active, waiting, troubled }: Status['webhooks']) {
  if (active + troubled.length === 0) return [];
  return [`Webhooks     ${active} active, ${troubled.length} not; ${plural(waiting, 'event')} waiting`];
}

/** The number of partners with missing feeds that are named. --json lists all of them. */
const NAMED = 10;

function feedLines(feeds: Status['feeds']) {
  if (feeds === null || feeds.expected.length === 0) return [];
  const { expected, month } = feeds;
  const late = lateFeeds(feeds);
  const rest = missingFeeds(feeds).filter((each) => !late.includes(each));
  const arrived = expected.length - late.length - rest.length;
  return [
    `Feeds        ${counted(arrived)} of ${counted(expected.length)} expected for ${month} arrived` +
      `${named('missing', late)}${named('not here yet', rest)}`,
  ];
}

function named(state: string, feeds: readonly { readonly partner_id: string }[]) {
  if (feeds.length === 0) return '';
  const ids = feeds.slice(0, NAMED).map(({ partner_id }) => partner_id);
  return `; ${state}: ${ids.join(', ')}${feeds.length > NAMED ? ` and ${counted(feeds.length - NAMED)} more` : ''}`;
}

const MAILED = {
  finance_email: 'the close report is not e-mailed',
  auditor_email: 'the checkpoint of a month is not e-mailed when it closes',
  operations_email: 'the status is not e-mailed when something needs attention',
} as const;

/** Advice that is not urgent: the kinds of e-mail that have no address in the settings. */
export const adviceOn = (settings: Settings) =>
  (Object.keys(MAILED) as (keyof typeof MAILED)[])
    .filter((field) => settings[field] === '')
    .map((field) => `settings.json has no ${field}: ${MAILED[field]}.`);
