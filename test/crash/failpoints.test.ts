/** kill -9 at every transaction boundary and every external call: the repeated command ends in the same state. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { report } from '../mail/report.ts';
import { FAILPOINTS, type Failpoint } from '../support/failpoints.ts';
import { someOf, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { assertNothingLostOrDoubled, beginStory, type Chapter, outcome, type Story } from './story.ts';

/** The commands of the stories, in order. Corrections come after the close, and only in the story that kills one. */
const COMMANDS = {
  partners: ({ partnersFile }: Story) => ['partner', 'import', partnersFile],
  import: ({ rowsFile }: Story) => ['ledger', 'import', rowsFile],
  opening: ({ world }: Story) => {
    const file = join(world.home, 'open-items.csv');
    const items = ['invoice,R-1,p-1,2026-05-01,2026-05-31,USD,10', 'cash,Z-1,p-1,2026-05-02,,USD,4'];
    writeFileSync(file, ['kind,number,partner_id,date,due_on,currency,amount', ...items].join('\n'));
    const control = ['--control', 'USD=6', '--count', '2', '--no-deliver'];
    return ['opening', 'import', file, '--cut-over', '2026-06-30', ...control];
  },
  opening_reversal: () => ['opening', 'reverse', 'Z-1', '--reason', 'it was applied'],
  close: () => ['close'],
  checkpoint: () => ['checkpoint', 'take'],
  pause: () => ['pause', '--reason', 'upgrade'],
  resume: () => ['resume', '--numbers-after', 'INV-2026-000100'],
  credit: () => ['invoice', 'credit', 'INV-2026-000001', '--amount', '2.50', '--reason', 'as agreed'],
  rename: ({ renamedFile }: Story) => ['partner', 'import', renamedFile],
  rerun: () => ['invoice', 'rerun', '--month', '2026-08', '--changed'],
  void: () => ['invoice', 'void', 'INV-2026-000002', '--reason', 'wrong partner'],
  dispute: () => ['dispute', 'open', 'INV-2026-000001', '--reason', 'wrong count', '--amount', '2.50'],
  dispute_closing: () => ['dispute', 'close', 'INV-2026-000001', '--reason', 'explained'],
  reminder_pause: () => ['reminder', 'pause', 'p-1', '--until', '2027-01-31', '--reason', 'installments'],
  reminder_resume: () => ['reminder', 'resume', 'p-1', '--reason', 'all is paid'],
  // The invoices are of September: without this, August's statement would be empty.
  prepaid: () => [
    ...['payment', 'record', '--partner', 'p-1', '--amount', '5', '--currency', 'USD', '--method', 'wire'],
    ...['--received-on', '2026-08-30', '--reference', 'FT-8'],
  ],
  statement: () => ['statement', 'send', '--month', '2026-08', '--partner', 'p-1'],
  resend: async ({ world }: Story) => {
    const [email] = await world.sql<{ id: string }>(
      `SELECT email_id AS id FROM emails WHERE kind = 'account_statement' ORDER BY email_id LIMIT 1`,
    );
    return ['email', 'resend', email?.id ?? ''];
  },
  bounces: async ({ world }: Story) => {
    const [letter] = await world.sql<{ id: string }>(
      `SELECT message_id AS id FROM emails WHERE kind = 'checkpoint' ORDER BY email_id LIMIT 1`,
    );
    const file = join(world.home, 'mbox');
    writeFileSync(file, report({ messageId: letter?.id ?? '', final: 'auditor@protection.example' }));
    return ['mail', 'bounces', file];
  },
  placement: () => ['credit', 'apply', 'CN-2026-000001', '--invoice', 'INV-2026-000002', '--amount', '3'],
  release: () => ['credit', 'unapply', 'CN-2026-000001', '--invoice', 'INV-2026-000002'],
  write_off: () => ['invoice', 'write-off', 'INV-2026-000002', '--reason', 'insolvent'],
  write_off_undo: () => ['invoice', 'write-off', 'INV-2026-000002', '--undo', '--reason', 'they pay after all'],
  payments: ({ bankFile }: Story) => ['payment', 'import', bankFile],
  erasure: () => ['erase', '--payer-account', 'ACC-1', '--reason', 'they asked'],
  backup: ({ world }: Story) => ['backup', join(world.home, 'after-erasure.backup')],
  feed: () => ['feed', 'state', 'p-1', '2026-07', '--count', '3', '--control', 'USD=21.00', '--incomplete'],
  feed_decision: () => ['feed', 'accept', 'p-1', '2026-07', '--reason', 'agreed by telephone'],
  books: () => ['books', 'close', '2026-07'],
  gl: ({ world }: Story) => [
    ...['export', 'gl', '--month', '2026-07', '--format', 'generic', '--out', join(world.home, 'gl')],
  ],
  assignment: () => ['payment', 'assign', '1', '--partner', 'p-2'],
  receipt: () => ['deliver'],
  inbox: ({ eventsFile }: Story) => ['payment', 'events', eventsFile],
  deliver: () => ['deliver'],
  // What the job left behind on three days long ago. Only the last is needed.
  purge: async ({ world }: Story) => {
    await world.sql(
      `INSERT INTO job_runs (job, started_at, finished_at, exit_status)
       SELECT 'purge', day, day, 0 FROM generate_series('2024-01-01'::timestamptz, '2024-01-03', '1 day') AS day
       WHERE NOT EXISTS (SELECT FROM job_runs WHERE job = 'purge')`,
    );
    return ['purge'];
  },
} as const;
type Command = keyof typeof COMMANDS;
const TO_THE_CLOSE: readonly Command[] = ['partners', 'import', 'close'];
const WITH_CORRECTIONS: readonly Command[] = [...TO_THE_CLOSE, 'credit', 'rename', 'rerun', 'void', 'deliver'];
/** The delivery after a payment switches off the link of the paid invoice. */
const WITH_MONEY: readonly Command[] = [...TO_THE_CLOSE, 'payments', 'books', 'gl', 'inbox', 'deliver'];
const WITH_PLACED_CREDIT: readonly Command[] = [...TO_THE_CLOSE, 'placement', 'release', 'deliver'];
const WITH_A_WRITE_OFF: readonly Command[] = [...TO_THE_CLOSE, 'write_off', 'write_off_undo', 'deliver'];
const WITH_ANOTHER_PAYER: readonly Command[] = [...TO_THE_CLOSE, 'payments', 'assignment', 'deliver'];
const WITH_A_RECEIPT: readonly Command[] = [...TO_THE_CLOSE, 'payments', 'receipt'];
const WITH_A_DISPUTE: readonly Command[] = [...TO_THE_CLOSE, 'dispute', 'dispute_closing', 'deliver'];
const WITH_PAUSED_REMINDERS: readonly Command[] = [...TO_THE_CLOSE, 'reminder_pause', 'reminder_resume', 'deliver'];
const WITH_STATEMENTS: readonly Command[] = [...TO_THE_CLOSE, 'prepaid', 'statement', 'resend', 'deliver'];
const WITH_A_CHECKPOINT: readonly Command[] = [...TO_THE_CLOSE, 'checkpoint', 'deliver'];
const WITH_A_BOUNCE: readonly Command[] = [...TO_THE_CLOSE, 'bounces', 'deliver'];
const WITH_A_PAUSE: readonly Command[] = [...TO_THE_CLOSE, 'pause', 'resume', 'deliver'];
/** A kill after the commit keeps an erasure from the file of the home; the next backup adds it. */
const WITH_AN_ERASURE: readonly Command[] = [...TO_THE_CLOSE, 'payments', 'erasure', 'backup', 'deliver'];
const WITH_STATED_TOTALS: readonly Command[] = ['partners', 'import', 'feed', 'feed_decision', 'close', 'deliver'];
const WITH_A_PURGE: readonly Command[] = [...TO_THE_CLOSE, 'purge'];
const WITH_AN_OPENING: readonly Command[] = ['partners', 'opening', 'opening_reversal', 'import', 'close', 'deliver'];
const STORIES = [
  ...[TO_THE_CLOSE, WITH_CORRECTIONS, WITH_MONEY, WITH_PLACED_CREDIT, WITH_ANOTHER_PAYER],
  ...[WITH_A_RECEIPT, WITH_A_DISPUTE, WITH_STATEMENTS, WITH_A_WRITE_OFF, WITH_A_CHECKPOINT, WITH_A_PAUSE],
  ...[WITH_A_BOUNCE, WITH_AN_ERASURE, WITH_A_PURGE, WITH_AN_OPENING, WITH_STATED_TOTALS],
  WITH_PAUSED_REMINDERS,
];

/**
 * Not repeated after their commits: a checkpoint would be taken twice; a pause, an erasure, the reversal of an opening, its end, a credit, a void, a release, an undone write-off, an assignment, a dispute and a decision about a feed are refused, credit would be
 * placed twice, and an e-mail resent twice.
 */
const NOT_REPEATED: ReadonlySet<Failpoint> = new Set([
  ...(['checkpoint.committed', 'pause.committed', 'resume.committed'] as const),
  ...(['credit.committed', 'void.committed'] as const),
  ...(['placement.committed', 'release.committed', 'assignment.committed'] as const),
  'write_off_undo.committed',
  'opening_reversal.committed',
  'feed_decision.committed',
  ...(['dispute.committed', 'dispute_closing.committed', 'resend.committed', 'erasure.committed'] as const),
  // It would be recorded twice.
  'reminder_pause.committed',
]);

/** The files beside this one that kill at these failpoints, by the first word of their names. */
const TESTED_ELSEWHERE: Readonly<Record<string, string>> = {
  ...{ accept: 'acceptances', approval: 'approvals', user: 'approvals', work: 'approvals', checkout: 'checkouts' },
  ...{
    reversal: 'reversals',
    processor: 'splits',
    shares: 'splits',
    events: 'partner-events',
    webhook: 'partner-events',
    archive: '../archive/crash',
    'archive.copied': '../cluster/crash',
    late_request: '../archive/crash',
  },
};
const wordOf = (failpoint: Failpoint): string => failpoint.split('.')[0] as string;

/** The command that passes a failpoint, by the first word of its name. Only a rerun switches off and closes links. */
const commandOf = (failpoint: Failpoint): Command => {
  if (failpoint === 'delivery.link_switched_off' || failpoint === 'delivery.link_closed') return 'rerun';
  const action = failpoint.split('.')[0] as string;
  return action === 'delivery' ? 'close' : (action as Command);
};
const commandsFor = (failpoint: Failpoint) =>
  STORIES.find((commands) => commands.includes(commandOf(failpoint))) as readonly Command[];

async function goOn(story: Story, command: Command): Promise<void> {
  const ran = await story.run(await COMMANDS[command](story));
  expect({ command, status: ran.status, stderr: ran.stderr }).toMatchObject({ command, status: 0 });
}

/** The story up to the last of these commands, run once: every kill in the next command begins with a copy of it. */
const chapters = new Map<string, Promise<Chapter>>();
function after(commands: readonly Command[]): Promise<Chapter> {
  const tell = async () => {
    const last = commands.at(-1);
    if (last === undefined) return (await beginStory()).keep();
    const story = await beginStory(await after(commands.slice(0, -1)));
    await goOn(story, last);
    return story.keep();
  };
  const told = chapters.get(commands.join()) ?? tell();
  chapters.set(commands.join(), told);
  return told;
}

const undisturbed = new Map<readonly Command[], unknown>();
async function outcomeUndisturbed(commands: readonly Command[]): Promise<unknown> {
  if (!undisturbed.has(commands)) {
    const story = await beginStory(await after(commands));
    await assertNothingLostOrDoubled(story, 0);
    undisturbed.set(commands, await outcome(story));
    await story.end();
  }
  return undisturbed.get(commands);
}

const OWN_FAILPOINTS = FAILPOINTS.filter((each) => !(wordOf(each) in TESTED_ELSEWHERE));

test('the program dies at every failpoint in one of these tests, here or in the file that is named', () => {
  const untold = FAILPOINTS.filter((failpoint) => {
    const file = TESTED_ELSEWHERE[failpoint] ?? TESTED_ELSEWHERE[wordOf(failpoint)];
    if (file === undefined) return !(commandOf(failpoint) in COMMANDS && commandsFor(failpoint) !== undefined);
    const text = readFileSync(join(import.meta.dirname, `${file}.test.ts`), 'utf8');
    // By its name, or with all others of its first word.
    const all = new RegExp(`FAILPOINTS\\.filter.*\\b${wordOf(failpoint)}\\b`);
    return !text.includes(`'${failpoint}'`) && !all.test(text);
  });
  expect(FAILPOINTS.length).toBeGreaterThan(100);
  expect(untold).toEqual([]);
  expect([...NOT_REPEATED].filter((each) => !FAILPOINTS.includes(each))).toEqual([]);
});

let survived = 0;
for (const failpoint of someOf(OWN_FAILPOINTS, times({ few: 5, short: 20, long: OWN_FAILPOINTS.length }))) {
  test(`a command killed at ${failpoint} and repeated ends as an undisturbed one`, async () => {
    const commands = commandsFor(failpoint);
    const expected = await outcomeUndisturbed(commands);
    const at = commands.indexOf(commandOf(failpoint));
    const story = await beginStory(await after(commands.slice(0, at)));
    const killed = await story.run(await COMMANDS[commandOf(failpoint)](story), { RECKONER_FAILPOINT: failpoint });
    expect({ status: killed.status, signal: killed.signal }).toEqual({ status: null, signal: 'SIGKILL' });
    for (const command of commands.slice(NOT_REPEATED.has(failpoint) ? at + 1 : at)) await goOn(story, command);
    expect(await outcome(story)).toEqual(expected);
    await assertNothingLostOrDoubled(story, 1);
    await story.end();
    survived += 1;
  }, 300_000);
}

const SENDING = ['delivery.sent', 'delivery.composed', 'delivery.offered', 'delivery.recorded'] as const;
for (const failpoint of someOf(SENDING, times({ few: 1, short: 2, long: SENDING.length }))) {
  test(`an account statement whose sending is killed at ${failpoint} is delivered as an undisturbed one`, async () => {
    const expected = await outcomeUndisturbed(WITH_STATEMENTS);
    const story = await beginStory(await after([...TO_THE_CLOSE, 'prepaid']));
    const args = await COMMANDS.statement();
    expect(await story.run(args, { RECKONER_FAILPOINT: failpoint })).toMatchObject({ signal: 'SIGKILL' });
    await goOn(story, 'statement');
    await goOn(story, 'resend');
    expect(await outcome(story)).toEqual(expected);
    await assertNothingLostOrDoubled(story, 1);
    await story.end();
    survived += 1;
  }, 120_000);
}

afterAll(async () => {
  tally('kills survived', 'at failpoints', survived);
  for (const chapter of await Promise.all(chapters.values())) await chapter.world.discard();
});

test('an e-mail whose delivery is killed twice is uncertain and left to the operator', async () => {
  const story = await beginStory(await after(['partners', 'import']));
  // A kill hits the e-mail that is sent first.
  const hitTwice = () => story.world.sql(`SELECT FROM emails WHERE status = 'sending' AND unclear_attempts = 1`);
  let kills = 0;
  for (; (await hitTwice()).length === 0 && kills < 10; kills += 1) {
    expect((await story.run(['close'], { RECKONER_FAILPOINT: 'delivery.sent' })).signal).toBe('SIGKILL');
  }
  const ran = await story.run(['close']);
  const uncertain = await story.world.sql(`SELECT FROM document_emails WHERE status = 'uncertain'`);
  expect({ status: ran.status, some: uncertain.length > 0 }).toEqual({ status: 4, some: true });
  const status = await story.run(['status']);
  expect(status.stdout).toContain('may or may not have arrived');
  survived += kills;
  await story.end();
}, 120_000);

test('production has no failpoints', async () => {
  const story = await beginStory();
  const ran = await story.run(['status'], {
    RECKONER_ENVIRONMENT: 'production',
    RECKONER_FAILPOINT: 'close.locked',
    RECKONER_NOW: '',
    STRIPE_SECRET_KEY: '',
    STRIPE_API_BASE: '',
  });
  // A sandbox's database is refused, alive.
  expect(ran.status).toBe(3);
  await story.end();
});
