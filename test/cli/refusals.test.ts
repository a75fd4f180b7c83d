/** One reproducible case for every refusal, by the compiled program: what it says, and with which status it exits. */
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { settingsSchema } from '../../src/config/settings.ts';
import { refuseOldServer } from '../../src/database/database.ts';
import { COMMAND_REFUSAL_CODES, type CommandRefusalCode, Refusal } from '../../src/errors/refusals.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { readCheckpoints } from '../../src/log/checkpoints.sql.ts';
import { noteOf, vkeyOf } from '../../src/log/note.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import type { Month } from '../../src/month.ts';
import { billMissingShares } from '../../src/splits/bill.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { worldOfOldMonths } from '../archive/archived-world.ts';
import { ndjson, share } from '../splits/balance-transactions.ts';
import { databaseClock, makeReadOnly } from '../support/database-faults.ts';
import { makeDatabase } from '../support/databases.ts';
import { GUARDS_OFF, GUARDS_ON, withoutEvent } from '../support/guards.ts';
import { LOG_KEY, logKeyOf, newLogPem } from '../support/log-keys.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { command, type Ran, reckoner } from '../support/program.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;
let empty: { url: string; drop: () => Promise<void> };
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-refusals-'));
  world = await openWorld();
  empty = await makeDatabase('empty');
  await world.partners([partner()]);
  await world.rows([quote(), quote({ accepted_at: '2026-06-10T12:00:00Z' })]);
});
afterAll(async () => {
  await world.end();
  await corrected?.end();
  await staffed?.end();
  await splitting?.end();
  await billed?.end();
  await opened?.end();
  await logged?.end();
  await empty.drop();
  rmSync(folder, { recursive: true, force: true });
});

const inWorld = (args: string[], env: Record<string, string> = {}): Promise<Ran> =>
  command(['--json', ...args], {
    env: {
      RECKONER_HOME: world.home,
      DATABASE_URL: world.databaseUrl,
      RECKONER_NOW: '2026-08-10T10:00:00Z',
      ...env,
    },
  });

let sales = 0;
/** The last sale that was sent under two ids, the second time. */
const soldTwice = () => quote({ quote_id: `twice-${sales}`, enrollment_id: `e-twice-${sales}` });
/** The number under which the last of these rows is held. */
const heldOf = async (...rows: object[]): Promise<string> => {
  const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const ran = await inWorld(['ledger', 'import', written('held.ndjson', text)]);
  return String((ran.json() as { held_rows: { held_row_id: number }[] }).held_rows[0]?.held_row_id);
};
const heldSale = (): Promise<string> => {
  sales += 1;
  return heldOf({ ...soldTwice(), quote_id: `once-${sales}` }, soldTwice());
};
const heldReversal = (): Promise<string> => {
  sales += 1;
  const sold = quote({ quote_id: `skew-${sales}`, enrollment_id: `e-skew-${sales}` });
  const share = { spotPrice: -7, partnerCut: 0, invoiceAmount: -7 };
  return heldOf(sold, { ...sold, kind: 'reversal', reversal_id: `skew-${sales}`, ...share });
};

const recorded = (reference: string, ...whose: string[]): Promise<Ran> => recordedWith({ reference, whose });

const numberOf = (paid: Ran): string => String((paid.json() as { payment_id: number }).payment_id);

/** The payments of p-payer in EUR and of p-1 in USD, of which several cases here say something. */
let foreignPayment = '';
let ownPayment = '';

function recordedWith(given: {
  amount?: string;
  currency?: string;
  receivedOn?: string;
  reference?: string;
  whose?: string[];
}): Promise<Ran> {
  const { amount = '5', currency = 'USD', receivedOn = '2026-08-09', reference = 'R', whose } = given;
  return inWorld([
    ...['payment', 'record', '--amount', amount, '--currency', currency, '--method', 'wire'],
    ...['--received-on', receivedOn, '--reference', reference, ...(whose ?? ['--partner', 'p-1'])],
  ]);
}

function written(name: string, text: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function homeWith(settings: string): string {
  const home = mkdtempSync(join(folder, 'home-'));
  writeFileSync(join(home, 'settings.json'), settings);
  return home;
}

/**
 * A world of its own for what corrects documents: July's invoices of p-1 and p-2 and August's credit note of p-2, used
 * by nothing yet, all sent.
 */
let corrected: World | undefined;
const inCorrected = async (...args: string[]): Promise<Ran> => {
  corrected ??= await correctedWorld();
  return command(['--json', ...args], {
    env: { RECKONER_HOME: corrected.home, DATABASE_URL: corrected.databaseUrl, RECKONER_NOW: '2026-09-03T10:00:00Z' },
  });
};

/** A world of its own with users, of whom Ada is the administrator. */
let staffed: World | undefined;
const inStaffed = async (...args: string[]): Promise<Ran> => {
  const first = staffed === undefined;
  staffed ??= await openWorld();
  const env = { RECKONER_HOME: staffed.home, DATABASE_URL: staffed.databaseUrl, RECKONER_NOW: '2026-09-03T10:00:00Z' };
  if (first) expect((await command(['user', 'invite', 'ada@issuer.example'], { env })).status).toBe(0);
  return command(['--json', ...args], { env });
};

/** The world with users, where holding a document and recording a payment need approval. Mara asks, Lee approves. */
let approving = false;
const inApproving = async (by: string, ...args: string[]): Promise<Ran> => {
  const ada = ['--by', 'ada@issuer.example'];
  await inStaffed(...ada, 'user', 'list');
  const own = staffed as World;
  if (!approving) {
    approving = true;
    const file = join(own.home, 'settings.json');
    const approvals = { 'payment.record': {} };
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), approvals }));
    await own.partners([partner()]);
    for (const [login, role] of [
      ['mara', 'finance'],
      ['lee', 'approver'],
    ] as const) {
      expect((await inStaffed(...ada, 'user', 'invite', `${login}@issuer.example`, '--role', role)).status).toBe(0);
    }
  }
  return inStaffed('--by', `${by}@issuer.example`, ...args);
};

const PAYMENT = [
  ...['--partner', 'p-1', '--amount', '5', '--currency', 'USD'],
  ...['--method', 'wire', '--received-on', '2026-09-01'],
];
/** Asks for a payment to be recorded, and gives the number of the request. */
async function asked(reference: string): Promise<string> {
  const ran = await inApproving(...(['mara', 'payment', 'record', ...PAYMENT, '--reference', reference] as const));
  return String((ran.json() as { error: { request_id: number } }).error.request_id);
}

/** An item of the work queue: a request for approval. */
const anItem = async (): Promise<string> => `approval:${await asked('work')}`;
const inWorking = (item: string, to?: string): Promise<Ran> =>
  inApproving('mara', 'work', 'assign', item, ...(to === undefined ? [] : ['--to', to]));

async function correctedWorld(): Promise<World> {
  const own = await openWorld();
  const sold = quote({ partner_id: 'p-2' });
  await own.partners([partner(), partner({ partner_id: 'p-2' })]);
  await own.rows([quote(), sold]);
  await own.close();
  own.at('2026-09-02T10:00:00Z');
  await own.rows([reversal(sold, { accepted_at: '2026-08-05T12:00:00Z' })]);
  await own.close();
  await own.deliver();
  await own.rows([quote({ accepted_at: '2026-09-02T08:00:00Z' })]);
  return own;
}

/** Imports a bank line that is a payout, and gives the payout's number. */
async function importPayout(reference: string): Promise<string> {
  // Each on a day of its own: another of that amount and day in another file would be a possible duplicate.
  const day = `2026-08-1${reference.at(-1)}`;
  const file = written(
    `${reference}.csv`,
    `date,amount,currency,account,bank_reference,text,payer,payer_account\n${day},40,USD,1,${reference},STRIPE,,\n`,
  );
  const before = await payoutExceptions();
  expect((await inCorrected('payment', 'import', file)).status).toBe(4);
  const [imported] = (await payoutExceptions()).filter((each) => !before.includes(each));
  return (imported ?? '').replace('payout-', '');
}

async function payoutExceptions(): Promise<string[]> {
  const all = (await inCorrected('payment', 'exceptions')).json() as { kind: string; exception: string }[];
  return all.filter(({ kind }) => kind === 'payout').map(({ exception }) => exception);
}

/** A world of its own for connected accounts: July's quote of a partner who splits, and others that have none. */
let splitting: World | undefined;
const inSplitting = async (...args: string[]): Promise<Ran> => {
  splitting ??= await splittingWorld();
  return command(['--json', ...args], {
    env: { RECKONER_HOME: splitting.home, DATABASE_URL: splitting.databaseUrl, RECKONER_NOW: '2026-08-03T10:00:00Z' },
  });
};

const SETTLED = 'quote_id,transfer,payment,amount\nq-split,tr_1,py_1,7.00\n';
const matching = (id: string) => ['processor', 'match', id, '--quote', 'q-split', '--reason', 'as told'];

async function splittingWorld(): Promise<World> {
  const own = await openWorld();
  await own.partners([
    partner(),
    partner({
      ...{ partner_id: 'p-split', arrangement: 'connected_account', connected_account_id: 'acct_split' },
      ...{ merchant_of_record: 'third_party', split: 'sequential' },
    }),
  ]);
  await own.rows([
    quote({ quote_id: 'q-invoiced' }),
    quote({ quote_id: 'q-both' }),
    quote({ quote_id: 'q-both', partner_id: 'p-split' }),
    quote({ quote_id: 'q-split', partner_id: 'p-split' }),
  ]);
  const moved = (net: number) => ({ ...share(net, '2026-07-15T12:00:00Z', { quote_id: 'q-split' }), id: 'txn_moved' });
  for (const account of ['acct_split', 'acct_twin']) {
    await own.partners([
      partner({
        ...{ partner_id: account.replace('acct', 'p').replace('_', '-'), arrangement: 'connected_account' },
        ...{ connected_account_id: account, merchant_of_record: 'third_party', split: 'sequential' },
      }),
    ]);
    const text = ndjson(account === 'acct_twin' ? [moved(700)] : [moved(700), { ...moved(700), id: 'txn_alone' }]);
    await own.database.transaction((tx) => importBalanceTransactions(tx, own, { name: 'moved', text }, account));
  }
  return own;
}

/** A world in which the share of q-late came after an invoice had billed it, and became payment 1. */
let billed: World | undefined;
const afterBilling = async (...args: string[]): Promise<Ran> => {
  billed ??= await billedWorld();
  return command(['--json', ...args], {
    env: { RECKONER_HOME: billed.home, DATABASE_URL: billed.databaseUrl, RECKONER_NOW: '2026-08-20T10:00:00Z' },
  });
};

async function billedWorld(): Promise<World> {
  const own = await openWorld();
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await own.partners([partner({ ...connected, connected_account_id: 'acct_1' })]);
  await own.rows([quote({ quote_id: 'q-late' })]);
  await own.close();
  own.at('2026-08-10T10:00:00Z');
  await own.database.transaction((tx) => billMissingShares(tx, own, '2026-07' as Month));
  own.at('2026-08-20T10:00:00Z');
  const text = ndjson([{ ...share(700, '2026-08-12T12:00:00Z', { quote_id: 'q-late' }), id: 'txn_late' }]);
  await own.database.transaction((tx) => importBalanceTransactions(tx, own, { name: 'moved', text }, 'acct_1'));
  return own;
}

interface Case {
  readonly when: string;
  readonly exit: 1 | 2 | 3 | 4;
  /** What the sentence must name, so that a person knows what to do. */
  readonly says: RegExp;
  readonly run: () => Promise<Ran>;
}

const MAPPED = [
  ...['assets:receivable:billed', 'assets:receivable:unbilled', 'income:sales', 'expenses:partner-cut'],
  ...['assets:bank', 'liabilities:unapplied', 'liabilities:partner-credit'],
].map((account, at) => ({ account, to: `${1000 + at}` }));

/** Exports July of a world for Xero with this map, or without any. */
async function exportsGlOf(own: World, accounts: readonly object[] | undefined, ...args: string[]): Promise<Ran> {
  const home = homeWith(readFileSync(join(own.home, 'settings.json'), 'utf8'));
  if (accounts !== undefined) writeFileSync(join(home, 'accounts.json'), JSON.stringify({ accounts }));
  return command(['--json', 'export', 'gl', '--month', '2026-07', '--format', 'xero', '--out', home, ...args], {
    env: { RECKONER_HOME: home, DATABASE_URL: own.databaseUrl, RECKONER_NOW: '2026-09-03T10:00:00Z' },
  });
}
async function exportsGl(accounts: readonly object[] | undefined, ...args: string[]): Promise<Ran> {
  corrected ??= await correctedWorld();
  return exportsGlOf(corrected, accounts, ...args);
}

/** Closes September of the corrected world, where p-2 had rows in July and August, under settings that expect feeds. */
async function closesSeptember(more: object, ...args: string[]): Promise<Ran> {
  corrected ??= await correctedWorld();
  const settings = JSON.parse(readFileSync(join(corrected.home, 'settings.json'), 'utf8')) as object;
  return command(['--json', 'close', '2026-09', ...args], {
    env: {
      RECKONER_HOME: homeWith(JSON.stringify({ ...settings, allow_empty: false, ...more })),
      DATABASE_URL: corrected.databaseUrl,
      RECKONER_NOW: '2026-10-03T10:00:00Z',
    },
  });
}

/** Runs a command while the world is paused. */
async function whilePaused(run: () => Promise<Ran>, ...stateOf: string[]): Promise<Ran> {
  await inWorld(['pause', '--reason', 'the server moves', ...stateOf]);
  const ran = await run();
  await inWorld(['resume', '--none-issued']);
  return ran;
}

const SIGNING = { WEBHOOK_SIGNING_KEY: 'a-key-of-the-tests-that-is-long-enough' };

/** A world of its own with an opening as of the end of June, and July closed. */
let opened: World | undefined;
const OPEN_ITEMS = 'kind,number,partner_id,date,due_on,currency,amount\ninvoice,R-1,p-1,2026-05-01,2026-05-31,USD,10\n';
async function inOpened(...args: string[]): Promise<Ran> {
  if (opened === undefined) {
    opened = await openWorld();
    await opened.partners([partner()]);
    await opened.rows([quote()]);
    expect((await carriedOver(OPEN_ITEMS)).status).toBe(0);
    opened.at('2026-08-10T10:00:00Z');
    await opened.close('2026-07');
  }
  const env = { RECKONER_HOME: opened.home, DATABASE_URL: opened.databaseUrl, RECKONER_NOW: '2026-08-10T10:00:00Z' };
  return command(['--json', ...args], { env });
}
const carriedOver = (text: string, cutOver = '2026-06-30', control = '10'): Promise<Ran> =>
  inOpened(
    ...[
      'opening',
      'import',
      written(`open-items-${randomUUID()}.csv`, text),
      '--cut-over',
      cutOver,
      '--control',
      `USD=${control}`,
    ],
    ...['--count', '1', '--no-deliver'],
  );

const OPENINGS = {
  opening_invalid: {
    when: 'an open item has no due date',
    exit: 2,
    says: /line 2, due_on: '' is not a date such as 2026-07-30/,
    run: () => carriedOver(OPEN_ITEMS.replace('2026-05-31', '')),
  },
  opening_control_differs: {
    when: 'the open items are not what the control total says',
    exit: 3,
    says: /USD: the control is 10\.01, the file has 10\.00/,
    run: () => carriedOver(OPEN_ITEMS, '2026-06-30', '10.01'),
  },
  opening_clash: {
    when: 'an open item is of a partner that is not known',
    exit: 3,
    says: /line 2, partner_id: there is no partner p-9/,
    run: () => carriedOver(OPEN_ITEMS.replace('p-1', 'p-9').replace('R-1', 'R-2'), '2026-07-31'),
  },
  opening_after_close: {
    when: 'a month after the cut-over is closed',
    exit: 3,
    says: /The cut-over of 2026-06-30 is before 2026-07, which is closed/,
    run: () => carriedOver(OPEN_ITEMS.replace('R-1', 'R-2')),
  },
  opening_books_closed: {
    when: 'the books of the cut-over are closed',
    exit: 3,
    says: /the books before 2026-08-01 are closed/,
    run: async () => {
      await inOpened('books', 'close', '2026-07');
      return carriedOver(OPEN_ITEMS.replace('R-1', 'R-2'), '2026-07-31');
    },
  },
  comparison_invalid: {
    when: 'the invoices to compare a close with lack a column',
    exit: 2,
    says: /line 1: has no column 'amount'/,
    run: () =>
      inOpened(
        ...['close', '2026-08', '--dry-run'],
        ...['--compare', written('invoiced.csv', 'partner_id,policy_id,currency\np-1,standard,USD\n')],
      ),
  },
  opening_unknown: {
    when: 'an opening is shown that there is not',
    exit: 2,
    says: /No such opening: 9/,
    run: () => inOpened('opening', 'show', '9'),
  },
  opening_item_unknown: {
    when: 'an item is reversed that was never carried over',
    exit: 2,
    says: /Item R-9 was never carried over, or was reversed\./,
    run: () => inOpened('opening', 'reverse', 'R-9', '--reason', 'wrong'),
  },
  opening_items_used: {
    when: 'an item is reversed that was written off',
    exit: 3,
    says: /R-1: it is written off/,
    run: async () => {
      await inOpened('invoice', 'write-off', 'R-1', '--reason', 'lost');
      return inOpened('opening', 'reverse', 'R-1', '--reason', 'wrong');
    },
  },
  carried_over: {
    when: 'an invoice of the previous system is voided',
    exit: 3,
    says: /R-1 was carried over from the previous system, so it cannot be voided/,
    run: () => inOpened('invoice', 'void', 'R-1', '--reason', 'wrong'),
  },
} satisfies Partial<Record<CommandRefusalCode, Case>>;

// What only the HTTP side answers has its cases in test/http/refusals.test.ts.
/** No command reaches these in seconds: the last tests here, and test/reading/aside.test.ts. */
/** A world of its own whose log is signed: July is closed, and a checkpoint was taken after that. */
let logged: World | undefined;
async function loggedWorld(): Promise<World> {
  const own = await openWorld({ logKey: LOG_KEY });
  await own.partners([partner()]);
  await own.rows([quote()]);
  await own.close();
  await own.rows([quote({ accepted_at: '2026-08-01T09:00:00Z' })]);
  await takeCheckpoint(own.database, own);
  await signCheckpoints(own);
  return own;
}
async function inLogged(...args: string[]): Promise<Ran> {
  logged ??= await loggedWorld();
  const env = { RECKONER_HOME: logged.home, DATABASE_URL: logged.databaseUrl, RECKONER_NOW: '2026-08-10T10:00:00Z' };
  return command(['--json', ...args], { env });
}
async function headsOfLog(): Promise<{ origin: string; sizes: number[] }> {
  logged ??= await loggedWorld();
  const all = await logged.database.reading((tx) => readCheckpoints(tx));
  return { origin: all[0]?.origin ?? '', sizes: all.map(({ size }) => size) };
}
/** A note of a checkpoint that nobody took. */
const noteWith = (origin: string, size: number, lines: readonly string[] = []): string =>
  noteOf({ origin, size, root: Buffer.alloc(32) }, lines);

/** The witness reads what the log has published, and says that it saw these lines before. */
async function witnessed(publicKey: Buffer, seen?: (origin: string, size: number) => string): Promise<Ran> {
  const { origin, sizes } = await headsOfLog();
  const place = mkdtempSync(join(folder, 'published-'));
  expect((await inLogged('checkpoint', 'publish', place)).status).toBe(0);
  if (seen) writeFileSync(join(place, 'state'), seen(origin, sizes[0] ?? 0));
  writeFileSync(join(place, 'key.pem'), newLogPem(), { mode: 0o600 });
  return inLogged(
    ...['witness', place, '--log', vkeyOf({ name: origin, publicKey }), '--state', join(place, 'state')],
    ...['--name', 'witness.example', '--key', join(place, 'key.pem')],
  );
}

/** As after a point-in-time recovery that somebody has noticed. */
async function whileRestored(...args: string[]): Promise<Ran> {
  await inLogged('pause', '--reason', 'recovered', '--state-of', '2026-08-05T10:00Z');
  const ran = await inLogged('resume', '--none-issued', ...args);
  await inLogged('resume', '--none-issued', '--no-checkpoint-seen');
  return ran;
}

const COSIGNED = '— witness.example AAAAAA==';
const LOGS = {
  log_host_fixed: {
    when: 'the log is to have another name',
    exit: 3,
    says: /named after the host reckoner\.invalid, so it cannot be named after billing\.example\.com/,
    run: () => inWorld(['init', '--log-host', 'billing.example.com']),
  },
  log_behind: {
    when: 'somebody is recording facts for longer than a checkpoint waits',
    exit: 4,
    says: /a transaction that records facts has not ended for 30 seconds/,
    run: async () => {
      logged ??= await loggedWorld();
      const client = new pg.Client(logged.databaseUrl);
      await client.connect();
      try {
        await client.query('BEGIN; SELECT lock_ledger()');
        return await inLogged('checkpoint', 'take');
      } finally {
        await client.end();
      }
    },
  },
  ledger_incomplete: {
    when: 'a row of an open month is lost',
    exit: 3,
    says: /p-1 in 2026-08: 1 row of USD 7(\.00)?, but receipts of 2 rows and USD 7/,
    run: async () => {
      logged ??= await loggedWorld();
      const receipts = (entries: number) =>
        `${GUARDS_OFF} UPDATE ledger_receipts SET entries = ${entries} WHERE posted_month = '2026-08'; ${GUARDS_ON}`;
      await logged.sql(receipts(2));
      const ran = await inLogged('close', '2026-08', '--dry-run');
      await logged.sql(receipts(1));
      return ran;
    },
  },
  no_checkpoint: {
    when: 'a pack is to be made before the first checkpoint',
    exit: 3,
    says: /no checkpoint of the log yet.*reckoner checkpoint take/s,
    run: () => inWorld(['export', 'ledger', '--month', '2026-06', '--out', join(folder, 'early')]),
  },
  log_forked: {
    when: 'the database is behind what its home has seen of the log',
    exit: 3,
    says: /had 1,000,000 facts when RECKONER_HOME\/log-head was written/,
    run: async () => {
      const { origin } = await headsOfLog();
      const file = join(logged?.home ?? '', 'log-head');
      writeFileSync(file, noteWith(origin, 1_000_000));
      try {
        return await inLogged('checkpoint', 'take');
      } finally {
        rmSync(file);
      }
    },
  },
  log_inconsistent: {
    when: 'a witness saw another history of the log',
    exit: 3,
    says: /that do not continue the \d+ seen before\. Nothing was signed/,
    run: () => witnessed(LOG_KEY.publicKey, noteWith),
  },
  checkpoint_not_signed: {
    when: 'a witness knows another key of the log',
    exit: 3,
    says: /is not signed by the key of sandbox\./,
    run: () => witnessed(logKeyOf(newLogPem()).publicKey),
  },
  checkpoint_needed: {
    when: 'a recovered ledger is resumed, and no one says what was seen of its log',
    exit: 3,
    says: /last checkpoint that anyone outside saw is needed.*--no-checkpoint-seen/s,
    run: () => whileRestored(),
  },
  checkpoint_of_other_log: {
    when: "a recovered ledger is resumed with another ledger's checkpoint",
    exit: 2,
    says: /The checkpoint belongs to the log other\.example\/0123456789ab, but this ledger's log is sandbox\./,
    run: () => whileRestored('--checkpoint', written('other.txt', noteWith('other.example/0123456789ab', 7))),
  },
  checkpoint_unreadable: {
    when: 'a file is no checkpoint',
    exit: 2,
    says: /note\.txt is not a checkpoint of a log/,
    run: () => inLogged('checkpoint', 'cosign', written('note.txt', 'not a note\n')),
  },
  checkpoint_unknown: {
    when: 'a cosignature is of a checkpoint that was not taken',
    exit: 2,
    says: /The log has no checkpoint of 1,000,000 facts/,
    run: async () => {
      const { origin } = await headsOfLog();
      return inLogged('checkpoint', 'cosign', written('cosigned.txt', noteWith(origin, 1_000_000, [COSIGNED])));
    },
  },
  witness_unknown: {
    when: 'a cosignature is of a witness that the settings do not name',
    exit: 2,
    says: /No witness in the settings \(witnesses\) made this signature/,
    run: async () => {
      const { origin, sizes } = await headsOfLog();
      return inLogged('checkpoint', 'cosign', written('cosigned.txt', noteWith(origin, sizes[0] ?? 0, [COSIGNED])));
    },
  },
  partner_without_rows: {
    when: 'a partner without rows in a month is to get a proof of them',
    exit: 3,
    says: /p-2 has no row that was billed in 2026-07/,
    run: () =>
      inLogged('export', 'proof', '--partner', 'p-2', '--month', '2026-07', '--out', join(folder, 'proof.json')),
  },
} as const satisfies Partial<Record<CommandRefusalCode, Case>>;

let old: Promise<World> | undefined;
const oldMonths = (): Promise<World> => {
  old ??= worldOfOldMonths();
  return old;
};
async function inOldMonths(...args: string[]): Promise<Ran> {
  const { home, databaseUrl } = await oldMonths();
  const env = { RECKONER_HOME: home, DATABASE_URL: databaseUrl, RECKONER_NOW: '2026-07-20T12:00:00Z' };
  const without = args.includes('--without-duckdb');
  const given = ['--json', ...args.filter((each) => each !== '--without-duckdb')];
  if (!without) return command(given, { env });
  const hook = new URL('../archive/without-duckdb.mjs', import.meta.url).href;
  return reckoner(given, { env: { ...env, NODE_OPTIONS: `--import=${hook}` } });
}
afterAll(async () => (await old)?.end());

const ELSEWHERE = ['database_too_old', 'file_takes_too_long'] as const satisfies readonly CommandRefusalCode[];

const CASES: Record<Exclude<CommandRefusalCode, (typeof ELSEWHERE)[number]>, Case> = {
  environment_invalid: {
    when: 'the environment is neither sandbox nor production',
    exit: 2,
    says: /RECKONER_ENVIRONMENT is 'staging'/,
    run: () => inWorld(['status'], { RECKONER_ENVIRONMENT: 'staging' }),
  },
  ...OPENINGS,
  ...LOGS,
  settings_missing: {
    when: 'there is no home yet',
    exit: 2,
    says: /reckoner init/,
    run: () => inWorld(['status'], { RECKONER_HOME: join(folder, 'nowhere') }),
  },
  settings_invalid: {
    when: 'a routing number in the settings has a wrong checksum',
    exit: 2,
    says: /instructions\.USD\.ach\.routing_number: is not a valid ABA routing number/,
    run: () =>
      inWorld(['status'], {
        RECKONER_HOME: homeWith(
          readFileSync(join(world.home, 'settings.json'), 'utf8').replace('123456780', '123456789'),
        ),
      }),
  },
  settings_incomplete: {
    when: 'production closes with settings that init left empty',
    exit: 3,
    says: /issuer\.legal_name/,
    run: async () => {
      const env = { RECKONER_ENVIRONMENT: 'production', RECKONER_HOME: join(folder, 'production'), RECKONER_NOW: '' };
      const database = await makeDatabase('empty');
      try {
        expect((await inWorld(['init'], { ...env, DATABASE_URL: database.url })).status).toBe(0);
        return await inWorld(['close'], { ...env, DATABASE_URL: database.url });
      } finally {
        await database.drop();
      }
    },
  },
  database_unreachable: {
    when: 'nothing listens at DATABASE_URL',
    exit: 1,
    says: /127\.0\.0\.1:1/,
    run: () => inWorld(['status'], { DATABASE_URL: 'postgres://someone:hunter-two@127.0.0.1:1/ledger' }),
  },
  replica_unusable: {
    when: 'DATABASE_URL_READ names a server that takes writes',
    exit: 1,
    says: /of DATABASE_URL_READ .* is not a replica\. Point DATABASE_URL_READ at a streaming replica/,
    run: () => inWorld(['report', 'aging'], { DATABASE_URL_READ: world.databaseUrl }),
  },
  database_read_only: {
    when: 'DATABASE_URL names a server that takes no writes',
    exit: 1,
    says: /accepts no writes: it has default_transaction_read_only = on\. Point DATABASE_URL at the primary server/,
    run: async () => {
      await makeReadOnly(world.databaseUrl, 'on');
      return inWorld(['status']).finally(() => makeReadOnly(world.databaseUrl, 'off'));
    },
  },
  clock_differs: {
    when: "this machine's clock is 40 days ahead of the database's",
    exit: 1,
    says: /This machine's clock says .*, and the database's says .*: this machine is 40 days ahead\. Nothing was recorded/,
    run: async () => {
      const clock = await databaseClock(world.databaseUrl);
      await clock.show(new Date(Date.now() - 40 * 86_400_000).toISOString());
      return inWorld(['close'], { RECKONER_NOW: '' }).finally(clock.end);
    },
  },
  database_privileges: {
    when: 'a grant of the role of the app is lost',
    exit: 1,
    says: /permission denied for table partners\. docs.* Grant the program's privileges again with 'reckoner migrate' as the owner of the tables/,
    run: async () => {
      await world.sql('REVOKE SELECT ON partners FROM reckoner_app');
      return inWorld(['status']).finally(() => world.sql('GRANT SELECT ON partners TO reckoner_app'));
    },
  },
  database_not_owner: {
    when: 'a login that owns nothing restores a backup',
    exit: 3,
    says: /login refusals_runtime cannot restore: the tables belong to reckoner/,
    run: async () => {
      const file = join(folder, 'of-another.backup');
      expect((await inWorld(['backup', file])).status).toBe(0);
      await world.sql('CREATE ROLE refusals_runtime LOGIN IN ROLE reckoner_app');
      const url = world.databaseUrl.replace(/\/\/[^@/]*@/, '//refusals_runtime@');
      return inWorld(['restore', file], { DATABASE_URL: url }).finally(() => world.sql('DROP ROLE refusals_runtime'));
    },
  },
  database_busy: {
    when: 'somebody keeps a table locked for longer than a migration waits',
    exit: 1,
    says: /Nothing was changed: after 10 seconds the database is still in use by process \d+ of reckoner/,
    run: async () => {
      await world.sql('BEGIN; LOCK TABLE migrations_lock');
      return inWorld(['migrate']).finally(() => world.sql('ROLLBACK'));
    },
  },
  database_pooled: {
    when: 'the database is behind PgBouncer in transaction mode',
    exit: 1,
    says: /is behind a connection pooler .* Set pool_mode = session/,
    run: async () => {
      const pooler = await startPgBouncer('transaction');
      return inWorld(['status'], { DATABASE_URL: pooler.url(world.databaseUrl) }).finally(pooler.stop);
    },
  },
  database_pool_small: {
    when: 'the database is behind PgBouncer in session mode with a single connection',
    exit: 1,
    says: /gave no connection within 15 seconds: it has too few.* Raise the limits of the pooler/,
    run: async () => {
      const pooler = await startPgBouncer('session', ['max_db_connections = 1', 'query_wait_timeout = 2']);
      return inWorld(['status'], { DATABASE_URL: pooler.url(world.databaseUrl) }).finally(pooler.stop);
    },
  },
  database_failed: {
    when: 'the server ends the connection in the middle of an import',
    exit: 1,
    says: /(connection to it was lost|administrator command)\. Committed changes are kept/,
    run: async () => {
      await world.sql(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$`);
      await world.sql('CREATE TRIGGER die AFTER INSERT ON partners FOR EACH STATEMENT EXECUTE FUNCTION die()');
      try {
        return await inWorld([
          'partner',
          'import',
          written('more.json', JSON.stringify([partner({ partner_id: 'p-7' })])),
        ]);
      } finally {
        await world.sql('DROP TRIGGER die ON partners');
      }
    },
  },
  database_not_migrated: {
    when: 'the database is empty',
    exit: 3,
    says: /reckoner migrate/,
    run: () => inWorld(['status'], { DATABASE_URL: empty.url }),
  },
  database_newer: {
    when: 'a newer program has migrated the database',
    exit: 3,
    says: /999_from_the_future/,
    run: async () => {
      await world.sql(`INSERT INTO migrations (name, batch) VALUES ('999_from_the_future', 99)`);
      try {
        return await inWorld(['status']);
      } finally {
        await world.sql(`DELETE FROM migrations WHERE name = '999_from_the_future'`);
      }
    },
  },
  database_unreleased: {
    when: 'another build before the first release made the database, and it is to be migrated',
    exit: 3,
    says: /its migrations 001_foundation differ from this version's\. It cannot be upgraded/,
    run: async () => {
      const [{ name } = { name: '' }] = await world.sql<{ name: string }>('SELECT name FROM migrations WHERE id = 1');
      await world.sql(`UPDATE migrations SET name = '001_foundation' WHERE id = 1`);
      try {
        return await inWorld(['migrate']);
      } finally {
        await world.sql('UPDATE migrations SET name = $1 WHERE id = 1', [name]);
      }
    },
  },
  database_foreign: {
    when: 'the database is that of another program',
    exit: 3,
    says: /tables of another program \(customers\) and no ledger/,
    run: async () => {
      const foreign = await makeDatabase('foreign');
      const client = new pg.Client(foreign.url);
      await client.connect();
      await client.query('CREATE TABLE customers (name text)').finally(() => client.end());
      return inWorld(['status'], { DATABASE_URL: foreign.url }).finally(foreign.drop);
    },
  },
  database_environment: {
    when: 'production is pointed at a sandbox database',
    exit: 3,
    says: /This is a sandbox database/,
    run: () => inWorld(['status'], { RECKONER_ENVIRONMENT: 'production', RECKONER_NOW: '' }),
  },
  embedded_server: {
    when: 'a file stands where the embedded server keeps its data',
    exit: 1,
    says: /embedded PostgreSQL server cannot run/,
    run: () => {
      const home = homeWith(readFileSync(join(world.home, 'settings.json'), 'utf8'));
      writeFileSync(join(home, 'postgres'), 'not a folder');
      return inWorld(['status'], { RECKONER_HOME: home, DATABASE_URL: '' });
    },
  },
  database_not_empty: {
    when: 'a backup is restored over rows',
    exit: 3,
    says: /It has rows in .*partners.*RECKONER_HOME/,
    run: async () => {
      const file = join(folder, 'whole.backup');
      expect((await inWorld(['backup', file])).status).toBe(0);
      return inWorld(['restore', file]);
    },
  },
  backup_exists: {
    when: 'a file has the name that a backup is to have',
    exit: 3,
    says: /mine already exists/,
    run: () => inWorld(['backup', written('mine', 'precious')]),
  },
  backup_invalid: {
    when: 'what is to be restored is something else',
    exit: 2,
    says: /Nothing was restored from .*letter\.txt: it is not a backup of this program/,
    run: () => inWorld(['restore', written('letter.txt', 'Dear Sir')]),
  },
  backup_encrypted: {
    when: 'an encrypted backup is restored without its key',
    exit: 2,
    says: /is encrypted, and the file of its private key is missing: name it with --identity/,
    run: async () => {
      const file = join(folder, 'encrypted.backup');
      const recipient = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
      expect((await inWorld(['backup', file, '--recipient', recipient])).status).toBe(0);
      return inWorld(['restore', file]);
    },
  },
  backup_newer: {
    when: 'a newer program wrote the backup',
    exit: 3,
    says: /newer version \(9\.0\.0\).*version 2 of the format/,
    run: () => {
      const header = JSON.stringify({ format: 'reckoner-backup', version: 2, program: '9.0.0' });
      return inWorld(['restore', written('newer.backup', gzipSync(`${header}\n`))]);
    },
  },
  backup_unreleased: {
    when: 'another build before the first release wrote the backup',
    exit: 3,
    says: /0\.0\.9.*its migrations 001_foundation differ from this version's\. Restore it with that build/,
    run: () => {
      const header = { format: 'reckoner-backup', version: 1, program: '0.0.9', environment: 'sandbox' };
      const content = `${JSON.stringify({ ...header, created_at: '2026-01-01T00:00:00Z', migrations: ['001_foundation'] })}\n`;
      const sha256 = createHash('sha256').update(content).digest('hex');
      const trailer = JSON.stringify({ rows: {}, sequences: {}, sha256 });
      return inWorld(['restore', written('older.backup', gzipSync(`${content}${trailer}\n`))]);
    },
  },
  backup_environment: {
    when: "a sandbox's backup is restored in production",
    exit: 3,
    says: /is a backup of sandbox, but RECKONER_ENVIRONMENT is production/,
    run: async () => {
      const file = join(folder, 'sandbox.backup');
      expect((await inWorld(['backup', file])).status).toBe(0);
      const env = { RECKONER_ENVIRONMENT: 'production', RECKONER_NOW: '', DATABASE_URL: empty.url };
      return inWorld(['restore', file], env);
    },
  },
  argument_invalid: {
    when: 'the month does not exist',
    exit: 2,
    says: /'2026-13' is not a month/,
    run: () => inWorld(['close', '2026-13']),
  },
  amount_invalid: {
    when: 'an amount has more decimals than its currency',
    exit: 2,
    says: /--amount '5\.001' has 3 decimals/,
    run: () => recordedWith({ amount: '5.001' }),
  },
  currency_unknown: {
    when: 'no currency has the code',
    exit: 2,
    says: /--currency 'USX' is not an ISO 4217 currency/,
    run: () => recordedWith({ currency: 'USX' }),
  },
  date_in_future: {
    when: 'a payment is to have arrived tomorrow',
    exit: 2,
    says: /--received-on 2026-08-11 is in the future: today is 2026-08-10/,
    run: () => recordedWith({ receivedOn: '2026-08-11' }),
  },
  usage: {
    when: 'the command does not exist',
    exit: 2,
    says: /unknown command 'clsoe'/,
    run: () => inWorld(['clsoe']),
  },
  file_unreadable: {
    when: 'the file of rows is not there',
    exit: 2,
    says: /no such file/,
    run: () => inWorld(['ledger', 'import', join(folder, 'missing.csv')]),
  },
  file_unwritable: {
    when: 'the file of rejects lies in a folder that is not there',
    exit: 1,
    says: /Cannot write .*rejects\.ndjson/,
    run: () => {
      const rows = written('bad.ndjson', '{"kind":"gift"}\n');
      return inWorld(['ledger', 'import', rows, '--skip-invalid', '--rejects', join(folder, 'no', 'rejects.ndjson')]);
    },
  },
  file_format_unknown: {
    when: "the file's name says nothing about its format",
    exit: 2,
    says: /--format csv/,
    run: () => inWorld(['ledger', 'import', written('rows.txt', '')]),
  },
  totals_invalid: {
    when: 'the file of totals beside a file of rows states none',
    exit: 2,
    says: /rows\.csv\.totals\.json does not state totals.*must state a count or totals/s,
    run: () => {
      written('rows.csv.totals.json', '{}');
      return inWorld(['ledger', 'import', written('rows.csv', '')]);
    },
  },
  no_doubled_rows: {
    when: 'no row of the API repeats another one',
    exit: 3,
    says: /No row of p-1 repeats another one/,
    run: () => inWorld(['ledger', 'separate', 'p-1', '--reason', 'two seats']),
  },
  held_row_unknown: {
    when: 'no row has that number',
    exit: 3,
    says: /No such held row: 99\..*ledger held/,
    run: () => inWorld(['ledger', 'release', '99', '--reason', 'two seats']),
  },
  held_row_decided: {
    when: 'a row that was discarded is released',
    exit: 3,
    says: /is already discarded, and a decision is final/,
    run: async () => {
      const id = await heldSale();
      await inWorld(['ledger', 'discard', id, '--reason', 'sent twice']);
      return inWorld(['ledger', 'release', id, '--reason', 'two seats']);
    },
  },
  held_row_invalid: {
    when: 'the reversal of a discarded sale is released',
    exit: 3,
    says: /held row \d+ cannot be recorded now: quote twice-\d+ of p-1 is neither in the ledger nor.*ledger discard/,
    run: async () => {
      await inWorld(['ledger', 'discard', await heldSale(), '--reason', 'sent twice']);
      const back = { kind: 'reversal', reversal_id: 'back', spotPrice: -10, partnerCut: -3, invoiceAmount: -7 };
      return inWorld(['ledger', 'release', await heldOf({ ...soldTwice(), ...back }), '--reason', 'two seats']);
    },
  },
  held_row_is_reversal: {
    when: 'a held reversal is released like a sale',
    exit: 3,
    says: /is a reversal\. Nothing was recorded.*reversal grant.*reversal refuse/s,
    run: async () => inWorld(['ledger', 'release', await heldReversal(), '--reason', 'two']),
  },
  held_row_no_reversal: {
    when: 'a held sale is granted like a reversal',
    exit: 3,
    says: /is not a reversal.*ledger held/s,
    run: async () => inWorld(['reversal', 'grant', await heldSale(), '--reason', 'two seats']),
  },
  partners_invalid: {
    when: 'a partner has no time zone that exists',
    exit: 2,
    says: /0\.time_zone: must be an IANA time zone/,
    run: () =>
      inWorld(['partner', 'import', written('p.json', JSON.stringify([partner({ time_zone: 'Mars/Utopia' })]))]),
  },
  partner_parent_invalid: {
    when: 'a partner names a parent that is not known',
    exit: 2,
    says: /p-1 cannot have this parent: its parent p-nobody is not known/,
    run: () => inWorld(['partner', 'import', written('p.json', JSON.stringify([partner({ parent: 'p-nobody' })]))]),
  },
  arrangement_change: {
    when: 'an invoicing partner becomes a connected account over months with rows',
    exit: 3,
    says: /set "arrangement_from"/,
    run: () => {
      const connected = partner({
        arrangement: 'connected_account',
        connected_account_id: 'acct_1',
        merchant_of_record: 'platform',
        split: 'real_time',
      });
      return inWorld(['partner', 'import', written('connected.json', JSON.stringify([connected]))]);
    },
  },
  partner_unknown: {
    when: 'nobody knows the partner',
    exit: 2,
    says: /No such partner: p-nobody/,
    run: () => inWorld(['partner', 'show', 'p-nobody']),
  },
  webhook_url_invalid: {
    when: 'a webhook is to be set to a URL that is none',
    exit: 2,
    says: /cannot be sent to ftp:…: it does not begin with https:/,
    run: () => inWorld(['webhook', 'set', 'p-1', '--url', 'ftp://partner.example/in'], SIGNING),
  },
  webhook_missing: {
    when: 'a partner has no webhook',
    exit: 2,
    says: /Partner p-1 has no webhook\. Set one with 'reckoner webhook set p-1 --url URL'/,
    run: () => inWorld(['webhook', 'show', 'p-1']),
  },
  webhook_position_unknown: {
    when: 'a webhook is to begin after an event that is still to come',
    exit: 2,
    says: /Partner p-1 has no event at position 900: its last one is \d+/,
    run: () => inWorld(['webhook', 'set', 'p-1', '--url', 'https://partner.example/in', '--after', '900'], SIGNING),
  },
  webhook_key_unusable: {
    when: 'a webhook is to be set without a key for its secret',
    exit: 3,
    says: /WEBHOOK_SIGNING_KEY is not set/,
    run: () => inWorld(['webhook', 'set', 'p-1', '--url', 'https://partner.example/in']),
  },
  user_unknown: {
    when: 'a command is run by somebody who is no user, once there are users',
    exit: 2,
    says: /nobody@issuer\.example is not an active user\. Set --by or RECKONER_USER/,
    run: () => inStaffed('--by', 'nobody@issuer.example', 'pause', '--reason', 'a test'),
  },
  user_ended: {
    when: 'a deactivated user gets a role',
    exit: 3,
    says: /gone@issuer\.example was deactivated/,
    run: async () => {
      const by = ['--by', 'ada@issuer.example'];
      expect((await inStaffed(...by, 'user', 'invite', 'gone@issuer.example', '--role', 'viewer')).status).toBe(0);
      expect((await inStaffed(...by, 'user', 'deactivate', 'gone@issuer.example')).status).toBe(0);
      return inStaffed(...by, 'user', 'role', 'gone@issuer.example', '--grant', 'finance');
    },
  },
  user_active: {
    when: 'the personal data of an active user is to be erased',
    exit: 3,
    says: /ada@issuer\.example is an active user, whose name and address are needed\. Deactivate the user first/,
    run: () =>
      inStaffed('--by', 'ada@issuer.example', 'erase', '--user', 'Ada@issuer.example', '--reason', 'a request'),
  },
  nothing_to_erase: {
    when: 'the ledger does not know a payer',
    exit: 3,
    says: /no personal data of this person/,
    run: () => inWorld(['erase', '--payer-account', 'DE00', '--reason', 'a request']),
  },
  payment_unsettled: {
    when: 'the payer of an unapplied payment is to be erased',
    exit: 3,
    says: /Payment \d+ is unapplied in part or disputed/,
    run: async () => {
      const id = numberOf(await recordedWith({ reference: 'FT-erased', amount: '6' }));
      return inWorld(['erase', '--payment', id, '--reason', 'a request']);
    },
  },
  user_exists: {
    when: 'a user is invited again',
    exit: 3,
    says: /ada@issuer\.example is already a user\. Change the roles with 'reckoner user role ada@issuer\.example'/,
    run: () => inStaffed('--by', 'ada@issuer.example', 'user', 'invite', 'Ada@issuer.example'),
  },
  role_needed: {
    when: 'a viewer invites users',
    exit: 3,
    says: /vera@issuer\.example does not have the role administrator/,
    run: async () => {
      const by = ['--by', 'ada@issuer.example'];
      expect((await inStaffed(...by, 'user', 'invite', 'vera@issuer.example', '--role', 'viewer')).status).toBe(0);
      return inStaffed('--by', 'vera@issuer.example', 'user', 'invite', 'eve@issuer.example', '--role', 'finance');
    },
  },
  role_unchanged: {
    when: 'a role is revoked that the user does not have',
    exit: 3,
    says: /No administrator gave ada@issuer\.example the role finance/,
    run: () => inStaffed('--by', 'ada@issuer.example', 'user', 'role', 'ada@issuer.example', '--revoke', 'finance'),
  },
  limits_of_viewers_only: {
    when: 'finance is to be limited to months',
    exit: 3,
    says: /fay@issuer\.example has the role finance\. Only the access of a viewer can be limited/,
    run: () =>
      inStaffed(
        ...['--by', 'ada@issuer.example', 'user', 'invite', 'fay@issuer.example', '--role', 'finance'],
        ...['--from', '2026-07', '--to', '2026-09'],
      ),
  },
  access_ended: {
    when: 'the last day of the access of a user has passed',
    exit: 3,
    says: /The access of lou@issuer\.example ended on 2026-09-04\. An administrator can extend it/,
    async run() {
      const invited = ['user', 'invite', 'lou@issuer.example', '--role', 'viewer', '--until', '2026-09-04'];
      expect((await inStaffed('--by', 'ada@issuer.example', ...invited)).status).toBe(0);
      const { home, databaseUrl } = staffed as World;
      const env = { RECKONER_HOME: home, DATABASE_URL: databaseUrl, RECKONER_NOW: '2026-09-06T10:00:00Z' };
      return command(['--json', '--by', 'lou@issuer.example', 'pause', '--reason', 'a test'], { env });
    },
  },
  last_administrator: {
    when: 'the last administrator is deactivated',
    exit: 3,
    says: /ada@issuer\.example is the last administrator/,
    run: () => inStaffed('--by', 'ada@issuer.example', 'user', 'deactivate', 'ada@issuer.example'),
  },
  approval_needed: {
    when: 'the settings ask for a second person',
    exit: 3,
    says: /needs approval\. Request \d+ was made\. lee@issuer\.example may approve it until .*'reckoner approval approve \d+'/,
    run: () => inApproving(...(['mara', 'payment', 'record', ...PAYMENT, '--reference', 'needed'] as const)),
  },
  approval_rejected: {
    when: 'a program asks again for what was rejected',
    exit: 3,
    says: /lee@issuer\.example rejected request \d+ for the same action \(no\)\./,
    async run() {
      await inApproving('ada', 'user', 'role', 'cron', '--grant', 'finance');
      const record = ['--by', 'cron', 'payment', 'record', ...PAYMENT, '--reference', 'rejected'];
      const { error } = (await inStaffed(...record)).json() as { error: { request_id: number } };
      await inApproving('lee', 'approval', 'reject', String(error.request_id), '--reason', 'no');
      return inStaffed(...record);
    },
  },
  settings_unchanged: {
    when: 'the bank details of the settings are in force already',
    exit: 3,
    says: /already in force.*'reckoner settings adopt instructions'/,
    run: async () => {
      await inWorld(['settings', 'adopt', 'instructions']);
      return inWorld(['settings', 'adopt', 'instructions']);
    },
  },
  proposal_missing: {
    when: 'settings.json does not state the section',
    exit: 3,
    says: /does not state "holds".*'reckoner settings adopt holds'/,
    run: () => inWorld(['settings', 'adopt', 'holds']),
  },
  proposal_invalid: {
    when: 'the proposed section has an invalid field',
    exit: 2,
    says: /Above an amount, USD.*is below zero/,
    run: () => inWorld(['settings', 'adopt', 'holds', '--file', written('holds.json', '{"above":{"USD":"-1"}}')]),
  },
  we_are_fixed: {
    when: 'settings.json says principal, and the ledger has rows of a supplier',
    exit: 3,
    says: /sets we_are to principal, but this ledger's rows are posted as supplier_to_partner.*Set "we_are" to "supplier_to_partner"/,
    run: async () => {
      corrected ??= await correctedWorld();
      const settings = JSON.parse(readFileSync(join(corrected.home, 'settings.json'), 'utf8')) as object;
      return command(['--json', 'books', 'close', '2026-07'], {
        env: {
          RECKONER_HOME: homeWith(JSON.stringify({ ...settings, we_are: 'principal' })),
          DATABASE_URL: corrected.databaseUrl,
        },
      });
    },
  },
  recognition_fixed: {
    when: 'settings.json says over_cover, and June was closed with sales as income at once',
    exit: 3,
    says: /sets recognition to over_cover, but the months of this ledger were closed with at_sale.*Set "recognition" to "at_sale"/,
    run: async () => {
      corrected ??= await correctedWorld();
      const settings = JSON.parse(readFileSync(join(corrected.home, 'settings.json'), 'utf8')) as object;
      return command(['--json', 'close', '--dry-run', '2026-09'], {
        env: {
          RECKONER_HOME: homeWith(JSON.stringify({ ...settings, recognition: 'over_cover' })),
          DATABASE_URL: corrected.databaseUrl,
          RECKONER_NOW: '2026-10-03T10:00:00Z',
        },
      });
    },
  },
  tax_rule_missing: {
    when: 'tax is configured, and no rule applies to a sale',
    exit: 3,
    says: /p-1 \(US\), policy ticket-protection, on 2026-07-31.*Under tax\.rules in settings\.json, add a rule for each/s,
    run: async () => {
      corrected ??= await correctedWorld();
      const settings = JSON.parse(readFileSync(join(corrected.home, 'settings.json'), 'utf8')) as object;
      const tax = { from: '2026-07', rules: [{ country: 'DE', category: 'standard', rate: '19' }] };
      return command(['--json', 'invoice', 'rerun', '--month', '2026-07', '--dry-run'], {
        env: { RECKONER_HOME: homeWith(JSON.stringify({ ...settings, tax })), DATABASE_URL: corrected.databaseUrl },
      });
    },
  },
  work_item_unknown: {
    when: 'what is assigned is not in the work queue',
    exit: 2,
    says: /hold:INV-2026-000001 is not in the work queue now\. See the work queue with 'reckoner work list'/,
    run: () => inWorking('hold:INV-2026-000001', 'mara'),
  },
  work_assignee_unfit: {
    when: 'work is assigned to a program',
    exit: 3,
    says: /cron is a program\. Assign approval:/,
    run: async () => inWorking(await anItem(), 'cron'),
  },
  work_assigned_already: {
    when: "work is assigned to nobody that is nobody's",
    exit: 3,
    says: /is not assigned/,
    run: async () => inWorking(await anItem()),
  },
  approval_unknown: {
    when: 'there is no such request',
    exit: 2,
    says: /No such request for approval: 4711/,
    run: () => inApproving('lee', 'approval', 'approve', '4711'),
  },
  approval_decided: {
    when: 'the request was rejected',
    exit: 3,
    says: /was rejected by lee@issuer\.example/,
    async run() {
      const request = await asked('decided');
      expect((await inApproving('lee', 'approval', 'reject', request, '--reason', 'no')).status).toBe(0);
      return inApproving('lee', 'approval', 'approve', request);
    },
  },
  approval_expired: {
    when: 'the request is older than two weeks',
    exit: 3,
    says: /expired on 2026-09-17/,
    async run() {
      const request = await asked('expired');
      const { home: RECKONER_HOME, databaseUrl: DATABASE_URL } = staffed as World;
      const env = { RECKONER_HOME, DATABASE_URL, RECKONER_NOW: '2026-09-20T10:00:00Z' };
      return command(['--json', '--by', 'lee@issuer.example', 'approval', 'approve', request], { env });
    },
  },
  approval_own: {
    when: 'whoever asked approves',
    exit: 3,
    says: /mara@issuer\.example made request \d+, and another user must decide it\./,
    run: async () => inApproving('mara', 'approval', 'approve', await asked('own')),
  },
  approval_of_another: {
    when: 'another user withdraws',
    exit: 3,
    says: /Only mara@issuer\.example can withdraw/,
    run: async () => inApproving('lee', 'approval', 'withdraw', await asked('of another')),
  },
  approval_outdated: {
    when: 'the payment would be another one by now',
    exit: 3,
    says: /The effect of request \d+ has changed/,
    async run() {
      const request = await asked('outdated');
      const { home, databaseUrl: DATABASE_URL } = staffed as World;
      const settings = JSON.parse(readFileSync(join(home, 'settings.json'), 'utf8')) as object;
      const RECKONER_HOME = homeWith(JSON.stringify({ ...settings, approvals: {} }));
      const env = { RECKONER_HOME, DATABASE_URL, RECKONER_NOW: '2026-09-03T10:00:00Z' };
      const recordNow = ['payment', 'record', ...PAYMENT, '--reference', 'outdated'];
      expect((await command(['--by', 'mara@issuer.example', ...recordNow], { env })).status).toBe(0);
      return inApproving('lee', 'approval', 'approve', request);
    },
  },
  client_unknown: {
    when: 'nobody knows the client',
    exit: 2,
    says: /No such client: c-nobody/,
    run: () => inWorld(['client', 'revoke', 'c-nobody']),
  },
  client_revoked: {
    when: 'a revoked client is to get a new secret',
    exit: 3,
    says: /has been revoked, which is permanent/,
    run: async () => {
      const { client_id: id } = (await inWorld(['client', 'create', 'p-1'])).json() as { client_id: string };
      expect((await inWorld(['client', 'revoke', id])).status).toBe(0);
      return inWorld(['client', 'rotate', id]);
    },
  },
  client_secrets_live: {
    when: 'a client is to get a third secret while two are live',
    exit: 3,
    says: /two valid secrets; the older one expires at 2026-08-17T10:00:00Z/,
    run: async () => {
      const { client_id: id } = (await inWorld(['client', 'create', 'p-1'])).json() as { client_id: string };
      expect((await inWorld(['client', 'rotate', id])).status).toBe(0);
      return inWorld(['client', 'rotate', id]);
    },
  },
  listen_failed: {
    when: 'something else listens at the port already',
    exit: 1,
    says: /Cannot listen on 127\.0\.0\.1:\d+: the port is in use/,
    run: async () => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      try {
        return await inWorld(['serve', '--port', String((other.address() as AddressInfo).port)]);
      } finally {
        other.close();
      }
    },
  },
  document_unknown: {
    when: 'no document has the number',
    exit: 2,
    says: /No such document: INV-2026-999999/,
    run: () => inWorld(['invoice', 'show', 'INV-2026-999999']),
  },
  bank_format_unknown: {
    when: "a bank's file has no format of a bank, and is not named as CSV",
    exit: 2,
    says: /--format: bai2, camt052, camt054, mt940, mt942, ofx, camt053, csv/,
    run: () => inWorld(['payment', 'import', written('bank.dat', 'Dear Sir')]),
  },
  file_items_too_many: {
    when: 'a file has more items than are read from one',
    exit: 2,
    says: /many\.ndjson has more than 200000 items, the limit for one file\. Split it\./,
    run: () => inWorld(['payment', 'events', written('many.ndjson', '{}\n'.repeat(200_001))]),
  },
  file_memory: {
    when: 'the items of a file need too much memory',
    exit: 2,
    says: /needs more than the \d+ MiB of memory that a file of its size may take/,
    run: () => inWorld(['partner', 'import', written('policies.json', `[{"policies":[${'{},'.repeat(100_000)}{}]}]`)]),
  },
  bank_format_not_read: {
    when: "a bank's file is of a format that is not read, such as PDF",
    exit: 2,
    says: /bank\.sta is a PDF, which Reckoner does not read\. Import the statements of this account \(camt\.053, BAI2/,
    run: () => inWorld(['payment', 'import', written('bank.sta', '%PDF-1.7\n')]),
  },
  bank_map_unknown: {
    when: 'there is no column map of that name',
    exit: 2,
    says: /no column map 'nowhere'\. Choose a map with --map: bank-of-america, .*, plain\. Or try one with --columns/,
    run: () => inWorld(['payment', 'import', written('bank.csv', 'date\n'), '--map', 'nowhere']),
  },
  bank_columns_missing: {
    when: 'a bank CSV has other columns than its column map',
    exit: 2,
    says: /column map 'plain'. Line 1 has no column 'date', 'amount'.*; it has 'Posted', 'Sum'.\nDescribe.*"bank_csv" in settings\.json/,
    run: () => inWorld(['payment', 'import', written('columns.csv', 'Posted,Sum\n2026-10-01,5\n')]),
  },
  bank_file_invalid: {
    when: 'a BAI2 file is cut off',
    exit: 2,
    says: /no file trailer \(99\)/,
    run: () =>
      inWorld(['payment', 'import', written('cut.bai', '01,A,B,261001,0000,1,80,10,2/\n'), '--format', 'bai2']),
  },
  bank_file_totals: {
    when: 'a BAI2 file states another total than its records give',
    exit: 2,
    says: /control total: the file states 5, its records give 0/,
    run: () =>
      inWorld([
        'payment',
        'import',
        written('wrong.bai', '01,A,B,261001,0000,1,80,10,2/\n99,5,0,2/\n'),
        '--format',
        'bai2',
      ]),
  },
  payment_unknown: {
    when: 'no payment has the number',
    exit: 2,
    says: /No such payment: 999/,
    run: () => inWorld(['payment', 'unapply', '999', '--reason', 'wrong']),
  },
  payout_unknown: {
    when: 'no payout has the number',
    exit: 3,
    says: /No such payout: 999/,
    run: () => inWorld(['payment', 'settle', '999', '1']),
  },
  payout_not_settled: {
    when: 'a payout is settled with payments and an account at once',
    exit: 3,
    says: /name either its payments or a connected account, not both/,
    run: async () => inCorrected('payment', 'settle', await importPayout('P-2'), '1', '--account', 'acct_1'),
  },
  processor_events_invalid: {
    when: 'a line is not an event of the processor',
    exit: 2,
    says: /line 1: is not an event/,
    run: () => inWorld(['payment', 'events', written('events.ndjson', '{"object":"invoice"}\n')]),
  },
  processor_environment: {
    when: 'an event of live mode is fed to the sandbox',
    exit: 3,
    says: /evt_live comes from the processor's live mode, but this is sandbox/,
    run: () => {
      const event = { id: 'evt_live', object: 'event', type: 'x', created: 1, livemode: true, data: { object: {} } };
      return inWorld(['payment', 'events', written('live.ndjson', `${JSON.stringify(event)}\n`)]);
    },
  },
  month_not_closed: {
    when: 'an open month is to be verified',
    exit: 3,
    says: /2026-08 is not closed/,
    run: () => inWorld(['verify', '2026-08']),
  },
  nothing_to_verify: {
    when: 'the ledger is empty, so that a check could not fail',
    exit: 3,
    says: /nothing to verify/,
    run: async () => {
      const untouched = await openWorld();
      try {
        return await inWorld(['verify'], { DATABASE_URL: untouched.databaseUrl });
      } finally {
        await untouched.end();
      }
    },
  },
  split_quote_unknown: {
    when: 'a quote is planned that nobody accepted',
    exit: 2,
    says: /no accepted quote q-none/,
    run: () => inSplitting('split', 'plan', 'q-none'),
  },
  split_partner_needed: {
    when: 'two partners have a quote of that id',
    exit: 2,
    says: /p-1, p-split\. Choose one with --partner/,
    run: () => inSplitting('split', 'plan', 'q-both'),
  },
  split_not_connected: {
    when: 'a quote is planned whose partner is invoiced',
    exit: 3,
    says: /p-1 was invoiced for 2026-07/,
    run: () => inSplitting('split', 'plan', 'q-invoiced'),
  },
  partner_not_connected: {
    when: 'a settlement file comes of a partner who is invoiced',
    exit: 3,
    says: /p-1 has no connected account/,
    run: () => inSplitting('processor', 'import', written('settled.csv', SETTLED), '--partner', 'p-1'),
  },
  account_unknown: {
    when: 'balance transactions belong to an account of no partner',
    exit: 2,
    says: /has the connected account acct_nobody/,
    run: () => inSplitting('processor', 'import', written('moved.ndjson', ''), '--account', 'acct_nobody'),
  },
  balance_transactions_invalid: {
    when: 'a line is no balance transaction',
    exit: 2,
    says: /line 2: is not a balance transaction: type/,
    run: () =>
      inSplitting(
        ...['processor', 'import', written('moved.ndjson', '\n{"id":"txn_1","object":"balance_transaction"}\n')],
        ...['--account', 'acct_split'],
      ),
  },
  settlement_invalid: {
    when: 'a settlement file has an amount that its currency cannot have',
    exit: 2,
    says: /line 2: amount '7\.005' has 3 decimals/,
    run: () => {
      const file = written('settled.csv', SETTLED.replace('7.00', '7.005'));
      return inSplitting('processor', 'import', file, '--partner', 'p-split');
    },
  },
  processor_unreachable: {
    when: 'nothing listens in the place of the processor',
    exit: 1,
    says: /Cannot read account acct_split from the processor/,
    run: async () => {
      splitting ??= await splittingWorld();
      return inWorld(['processor', 'poll', '--account', 'acct_split'], {
        ...{ RECKONER_HOME: splitting.home, DATABASE_URL: splitting.databaseUrl },
        ...{ STRIPE_SECRET_KEY_acct_split: 'sk_test_split', STRIPE_API_BASE: 'http://127.0.0.1:1' },
      });
    },
  },
  account_key_missing: {
    when: 'an account is to be read that there is no key for',
    exit: 3,
    says: /Set STRIPE_SECRET_KEY_acct_split/,
    run: () => inSplitting('processor', 'poll', '--account', 'acct_split'),
  },
  balance_transaction_unknown: {
    when: 'a balance transaction is matched that was never imported',
    exit: 2,
    says: /No such balance transaction: txn_none/,
    run: () => inSplitting(...matching('txn_none')),
  },
  account_needed: {
    when: 'two accounts have a balance transaction with that id',
    exit: 2,
    says: /acct_split, acct_twin\. Choose one with --account/,
    run: () => inSplitting(...matching('txn_moved')),
  },
  balance_transaction_matched: {
    when: 'a balance transaction is matched that is fully matched already',
    exit: 3,
    says: /txn_alone is already fully matched/,
    run: () => inSplitting(...matching('txn_alone')),
  },
  payment_is_share: {
    when: 'a payment that a share became is said to be returned by a bank',
    exit: 3,
    says: /payment 1 is a share.*if you paid it back, use --as refunded/i,
    run: () => afterBilling('payment', 'reverse', '1', '--as', 'returned', '--reason', 'R01'),
  },
  share_paid_back: {
    when: 'a match is undone after the payment that it became was refunded',
    exit: 3,
    says: /txn_late to quote q-late cannot be undone: the money of payment 1 was paid back/,
    run: async () => {
      await afterBilling('payment', 'reverse', '1', '--as', 'refunded', '--reason', 'OUT-1');
      return afterBilling('processor', 'unmatch', 'txn_late', '--quote', 'q-late', '--reason', 'of another');
    },
  },
  balance_transaction_not_open: {
    when: 'a balance transaction is closed that is fully matched',
    exit: 3,
    says: /Balance transaction txn_alone has no open amount: it is matched/,
    run: () => inSplitting('processor', 'close', 'txn_alone', '--reason', 'given back'),
  },
  quote_not_matchable: {
    when: "money on another partner's account is matched without saying so",
    exit: 3,
    says: /txn_moved cannot be matched to quote q-split: acct_twin was never an account of its partner p-split.*--other-account/,
    run: () => inSplitting(...matching('txn_moved'), '--account', 'acct_twin'),
  },
  balance_transaction_not_reversible: {
    when: 'a share that came is to become a reversal',
    exit: 3,
    says: /txn_alone cannot be recorded as a reversal: the ledger already has everything/,
    run: () => inSplitting('processor', 'reverse', 'txn_alone', '--spot-price', '1.00'),
  },
  split_impossible: {
    when: 'a sequential split names no operator',
    exit: 3,
    says: /q-split cannot be split: .*operator's account \(7\.4\.3\)/,
    run: () => inSplitting('split', 'plan', 'q-split'),
  },
  month_not_ended: {
    when: 'the month still runs in New York',
    exit: 3,
    says: /America\/New_York it ends at 2026-09-01 00:00\./,
    run: () => inWorld(['close', '2026-08']),
  },
  month_not_begun: {
    when: 'the totals of a month are stated that has not begun',
    exit: 2,
    says: /2026-12 has not begun in America\/New_York/,
    run: () => inWorld(['feed', 'state', 'p-1', '2026-12', '--count', '0']),
  },
  feeds_in_doubt: {
    when: 'a partner that had rows in the last closed months has none',
    exit: 4,
    says: /2026-09 was not closed.*p-2 .*reckoner close 2026-09 --without p-2/s,
    run: () => closesSeptember({}),
  },
  month_empty: {
    when: 'no partner has rows in the month, which would be the first',
    exit: 4,
    says: /reckoner close 2026-06 --allow-empty/,
    async run() {
      const own = await openWorld();
      const env = {
        RECKONER_HOME: homeWith(JSON.stringify(firstSettings('sandbox'))),
        DATABASE_URL: own.databaseUrl,
        RECKONER_NOW: '2026-08-03T10:00:00Z',
      };
      try {
        return await command(['--json', 'close', '2026-06'], { env });
      } finally {
        await own.end();
      }
    },
  },
  feed_not_in_doubt: {
    when: 'a month is to close without a partner that nobody expects',
    exit: 3,
    says: /Omit --without p-1\./,
    run: () => closesSeptember({}, '--without', 'p-1'),
  },
  decide_separately: {
    when: 'a close is to accept a missing feed, although accepting a feed needs approval',
    exit: 3,
    says: /require approval for accepting a feed.*reckoner feed accept p-2 2026-09/,
    run: () => closesSeptember({ approvals: { 'feed.accept': {} } }, '--without', 'p-2'),
  },
  earlier_month_open: {
    when: 'July is to close before June, which has rows',
    exit: 3,
    says: /2026-07 cannot be closed while 2026-06 is open and has 1 ledger row\./,
    run: () => inWorld(['close', '2026-07']),
  },
  before_first_month: {
    when: 'a month before the first is to close',
    exit: 3,
    says: /2026-01 is before the first month, 2026-06/,
    run: () => inWorld(['close', '2026-01']),
  },
  earlier_books_open: {
    when: 'the books of August are to close before those of July',
    exit: 3,
    says: /books of 2026-08 cannot be closed while those of 2026-07 are open/,
    run: () => inCorrected('books', 'close', '2026-08'),
  },
  bank_feed_behind: {
    when: 'the bank has reported July only to the 20th',
    exit: 3,
    says: /until the bank has reported through 2026-07-31: account 0007 is reported through 2026-07-20\..* Import the missing files with 'reckoner payment import FILE'/,
    run: async () => {
      const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
      await inCorrected('payment', 'import', written('july.csv', `${head}\n2026-07-20,-3.00,USD,0007,FT-7,fee,,\n`));
      return inCorrected('books', 'close', '2026-07');
    },
  },
  possible_duplicates_open: {
    when: 'another export has a payment of July once more',
    exit: 3,
    says: /The books of 2026-07 cannot be closed while payment-\d+ may be a duplicate: .*payment exceptions/,
    run: async () => {
      const own = await correctedWorld();
      const env = { RECKONER_HOME: own.home, DATABASE_URL: own.databaseUrl, RECKONER_NOW: '2026-09-03T10:00:00Z' };
      const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account';
      const file = (name: string, reference: string) =>
        written(name, `${head}\n2026-07-31,1.00,USD,0012,${reference},thanks,Somebody,\n`);
      await command(['payment', 'import', file('once.csv', 'B-1')], { env });
      await command(['payment', 'import', file('twice.csv', '')], { env });
      const ran = await command(['--json', 'books', 'close', '2026-07'], { env });
      await own.end();
      return ran;
    },
  },
  taxed_documents_void: {
    when: 'the taxed invoice of July is void and not replaced',
    exit: 3,
    says: /books of 2026-07 cannot be closed while 1 taxed document \(INV-2026-000001\) is void without a replacement: .*invoice rerun --month 2026-07/,
    run: async () => {
      const own = await openWorld();
      const rules = [{ category: 'standard', rate: '19' }];
      own.settings = { ...own.settings, tax: settingsSchema.shape.tax.parse({ from: '2026-07', rules }) };
      await own.partners([partner()]);
      await own.rows([quote()]);
      await own.close();
      const env = { RECKONER_HOME: own.home, DATABASE_URL: own.databaseUrl, RECKONER_NOW: '2026-08-03T10:00:00Z' };
      await command(['invoice', 'void', 'INV-2026-000001', '--reason', 'wrong'], { env });
      const ran = await command(['--json', 'books', 'close', '2026-07'], { env });
      await own.end();
      return ran;
    },
  },
  bank_feed_gap: {
    when: 'a bank statement of July opens with another balance than the one before it ended with',
    exit: 3,
    says: /while a bank statement is missing or wrong: later\.csv of account 0011 opens with 50\.00, but first\.csv ends with 10\.00 on 2026-07-02: .*Import the missing files .* payment close-exception bank-statement-\d+ --reason REASON/,
    run: async () => {
      // The other cases of this world import files without balances.
      const own = await correctedWorld();
      const settings = JSON.parse(readFileSync(join(own.home, 'settings.json'), 'utf8')) as object;
      const columns = { date: 'date', amount: 'amount', balance: 'balance', account: 'account' };
      const env = {
        RECKONER_HOME: homeWith(JSON.stringify({ ...settings, bank_csv: { balances: { columns, currency: 'USD' } } })),
        DATABASE_URL: own.databaseUrl,
        RECKONER_NOW: '2026-09-03T10:00:00Z',
      };
      const file = (name: string, line: string) => written(name, `date,amount,balance,account\n${line}\n`);
      await command(['payment', 'import', file('first.csv', '2026-07-02,10.00,10.00,0011')], { env });
      await command(['payment', 'import', file('later.csv', '2026-07-31,1.00,51.00,0011')], { env });
      const ran = await command(['--json', 'books', 'close', '2026-07'], { env });
      await own.end();
      return ran;
    },
  },
  accounts_missing: {
    when: 'nobody has written which of our accounts is which of the general ledger',
    exit: 3,
    says: /accounts\.json is missing\. It maps our accounts .* docs\/general-ledger\.md/,
    run: () => exportsGl(undefined, '--preliminary'),
  },
  accounts_invalid: {
    when: 'an account there is a formula, another is mapped twice, a third has no name',
    exit: 2,
    says: /accounts 1, account in the general ledger: could be run by a spreadsheet.*\n.*accounts 2, account in the general ledger: must not be empty/s,
    run: () =>
      exportsGl(
        [
          { account: 'income:sales', to: '=cmd' },
          { account: 'assets:bank', to: '' },
        ],
        '--preliminary',
      ),
  },
  accounts_unmapped: {
    when: 'the map has no rule for unbilled receivables in this currency',
    exit: 3,
    says: /2026-07 was not exported: no account of the general ledger is given for\n {2}assets:receivable:unbilled:p-1 \(USD\)\n {2}assets:receivable:unbilled:p-2 \(USD\)\nAdd a rule/,
    run: () =>
      exportsGl(
        [
          { account: 'income:sales', to: '4000' },
          { account: 'assets:receivable:unbilled', currency: 'EUR', to: '1110' },
        ],
        '--preliminary',
      ),
  },
  archive_store_unknown: {
    when: 'the settings have no store of this name',
    exit: 3,
    says: /No store 'warm' is in the settings \(known: cold, cluster\)/,
    run: () => inOldMonths('archive', '2026-01', '--to', 'warm'),
  },
  archive_too_early: {
    when: 'fewer than three later months are closed',
    exit: 3,
    says: /2026-05 cannot be archived yet: the last 3 closed months stay/,
    run: () => inOldMonths('archive', '2026-05', '--to', 'cold'),
  },
  month_not_archived: {
    when: 'a month that is in the database is to come back',
    exit: 3,
    says: /2026-01 is not archived/,
    run: () => inOldMonths('unarchive', '2026-01'),
  },
  duckdb_missing: {
    when: 'DuckDB is not installed',
    exit: 1,
    says: /DuckDB is not installed.*npm install --no-save @duckdb\/node-api/s,
    run: () => inOldMonths('archive', '2026-01', '--to', 'cold', '--without-duckdb'),
  },
  archive_incomplete: {
    when: 'the file of an archived month is gone',
    exit: 1,
    says: /The rows of 2026-01 in the store 'cold' cannot be read: .*2026-01-0001\.parquet/,
    run: async () => {
      await inOldMonths('archive', '2026-01', '--to', 'cold');
      rmSync(join((await oldMonths()).home, 'cold'), { recursive: true });
      return inOldMonths('export', 'ledger', '--month', '2026-01', '--out', join(folder, 'cold-pack'));
    },
  },
  books_open: {
    when: 'a month is exported for the general ledger before its books are closed',
    exit: 3,
    says: /The books of 2026-07 are open.* --preliminary.*reckoner books close 2026-07/s,
    run: () => exportsGl(MAPPED),
  },
  gl_name_unusable: {
    when: 'the name of a partner begins with an equals sign',
    exit: 3,
    says: /a spreadsheet could run the name of p-1 as a formula\. Give their general-ledger names under "names" in accounts\.json/,
    run: async () => {
      const own = await correctedWorld();
      await own.partners([partner({ name: '=HYPERLINK("x")' })]);
      const ran = await exportsGlOf(own, MAPPED, '--preliminary');
      await own.end();
      return ran;
    },
  },
  gl_lines_unusable: {
    when: 'a currency has three decimals, and the program takes two',
    exit: 2,
    says: /2026-07 was not exported, because NetSuite cannot import \d lines:\n( {2}.*\n)* {2}.*, 0\.705 KWD: has more than 2 decimals\n[\s\S]*--format generic/,
    run: async () => {
      const own = await openWorld();
      await own.partners([partner({ currency: 'KWD' })]);
      await own.rows([quote({ currency: 'KWD', spotPrice: '1.005', partnerCut: '0.300', invoiceAmount: '0.705' })]);
      await own.close();
      const ran = await exportsGlOf(own, MAPPED, '--preliminary', '--format', 'netsuite');
      await own.end();
      return ran;
    },
  },
  gl_names_shared: {
    when: 'two partners have one name, by which the general ledger would know both',
    exit: 3,
    says: /would become one customer in the general ledger\.\n {2}Harbor: p-1, p-2\nUnder "names" in accounts\.json, give each partner/,
    run: async () => {
      const own = await correctedWorld();
      await own.partners([partner({ name: 'Harbor' }), partner({ partner_id: 'p-2', name: 'Harbor' })]);
      const ran = await exportsGlOf(own, MAPPED, '--preliminary');
      await own.end();
      return ran;
    },
  },
  gl_not_exported: {
    when: 'what was never exported is to move to other accounts',
    exit: 3,
    says: /2026-07 was never exported as xero.* without --reclassify/,
    run: () => exportsGl(MAPPED, '--preliminary', '--reclassify'),
  },
  gl_part_unknown: {
    when: 'the files of a part are asked for that was not exported',
    exit: 2,
    says: /2026-07 has no part 7 as xero: it was not exported\. See what was exported with 'reckoner gl list'/,
    run: () => exportsGl(MAPPED, '--part', '7'),
  },
  gl_not_tied: {
    when: 'a line of an invoice was changed behind the back of the program',
    exit: 3,
    says: /the postings of 2026-07 differ from its trial balance in .*income:sales:ticket-protection USD by -1\.00.*reckoner verify/,
    run: async () => {
      const own = await correctedWorld();
      const change = `UPDATE document_lines SET spot_price = spot_price + 1, invoice_amount = invoice_amount + 1
                      WHERE document_id = (SELECT min(document_id) FROM documents)`;
      await own.sql(`${GUARDS_OFF} ${change}; ${GUARDS_ON}`);
      const ran = await exportsGlOf(own, MAPPED, '--preliminary');
      await own.end();
      return ran;
    },
  },
  bank_account_unknown: {
    when: 'an account is to be left out that no bank file has reported',
    exit: 2,
    says: /No bank file has reported account 0009\. Reported accounts: .*0007/,
    run: () => inCorrected('books', 'close', '2026-07', '--without', '0009', '--reason', 'x'),
  },
  pdf_not_rendered: {
    when: 'the document is issued but not delivered',
    exit: 3,
    says: /reckoner deliver/,
    run: async () => {
      expect((await inWorld(['close', '--no-deliver'])).status).toBe(0);
      return inWorld(['invoice', 'pdf', 'INV-2026-000001']);
    },
  },
  e_invoice_not_asked_for: {
    when: 'its partner asks for no e-invoices',
    exit: 3,
    says: /partner p-2 requested none.*partners\.json.*'reckoner invoice rerun INV-2026-000002'/,
    run: () => inCorrected('invoice', 'e-invoice', 'INV-2026-000002'),
  },
  e_invoice_not_written: {
    when: 'the document is issued but not delivered',
    exit: 3,
    says: /INV-2026-000001 has no e-invoice yet: it has not been delivered\. Deliver it with 'reckoner deliver'/,
    run: async () => {
      const own = await openWorld();
      await own.partners([partner({ e_invoice: 'facturx' })]);
      await own.rows([quote()]);
      await own.close();
      const ran = await command(['--json', 'invoice', 'e-invoice', 'INV-2026-000001'], {
        env: { RECKONER_HOME: own.home, DATABASE_URL: own.databaseUrl, RECKONER_NOW: '2026-08-10T10:00:00Z' },
      });
      await own.end();
      return ran;
    },
  },
  recipient_refused: {
    when: "sandbox mail is to go to an address that is nobody's test address",
    exit: 3,
    says: /boss@partner\.com is not in sandbox_recipients/,
    run: () => inCorrected('invoice', 'resend', 'INV-2026-000001', '--to', 'boss@partner.com'),
  },
  email_unknown: {
    when: 'an e-mail that does not exist is to be sent again',
    exit: 2,
    says: /No such e-mail: 999.*email list/,
    run: () => inWorld(['email', 'resend', '999']),
  },
  email_unfinished: {
    when: 'an e-mail without a document that still waits is to be sent again',
    exit: 3,
    says: /E-mail \d+ has not been sent yet: it is queued/,
    run: async () => {
      expect((await inWorld(['close'])).status).toBe(0);
      const [letter] = await world.sql<{ id: string }>(
        `SELECT email_id AS id FROM emails WHERE kind = 'checkpoint' LIMIT 1`,
      );
      expect((await inWorld(['email', 'resend', letter?.id ?? '', '--no-deliver'])).status).toBe(0);
      return inWorld(['email', 'resend', letter?.id ?? '']);
    },
  },
  email_not_dismissible: {
    when: "a document's e-mail is to be dismissed",
    exit: 3,
    says: /cannot be dismissed: it belongs to \S+\. Resend it with 'reckoner invoice resend/,
    run: async () => {
      expect((await inWorld(['close'])).status).toBe(0);
      const [email] = await world.sql<{ id: string }>(
        'SELECT email_id AS id FROM emails WHERE document_id IS NOT NULL LIMIT 1',
      );
      return inWorld(['email', 'dismiss', email?.id ?? '', '--reason', 'x']);
    },
  },
  document_email_unfinished: {
    when: 'a document whose e-mail waits is to be sent again',
    exit: 3,
    says: /CN-2026-000002 has not been sent yet: it is queued/,
    run: async () => {
      await inCorrected('invoice', 'credit', 'INV-2026-000001', '--amount', '1', '--reason', 'x', '--no-deliver');
      return inCorrected('invoice', 'resend', 'CN-2026-000002');
    },
  },
  link_missing: {
    when: 'the link of a credit note or of an invoice that was not delivered is replaced',
    exit: 3,
    says: /CN-2026-000001 has no payment link that can be changed/,
    run: () => inCorrected('invoice', 'link', 'CN-2026-000001', '--rotate', '--reason', 'forwarded'),
  },
  link_revoked: {
    when: 'a link is taken back twice',
    exit: 3,
    says: /The payment link of INV-2026-000001 is already revoked.*--rotate/s,
    run: async () => {
      await inCorrected('invoice', 'link', 'INV-2026-000001', '--revoke', '--reason', 'forwarded');
      return inCorrected('invoice', 'link', 'INV-2026-000001', '--revoke', '--reason', 'forwarded');
    },
  },
  document_on_hold: {
    when: 'a document is put on hold twice',
    exit: 3,
    says: /INV-2026-000002 has been on hold since 2026-09-03.*\(disputed\).*invoice release/,
    run: async () => {
      await inCorrected('invoice', 'hold', 'INV-2026-000002', '--reason', 'disputed');
      return inCorrected('invoice', 'hold', 'INV-2026-000002');
    },
  },
  invoice_disputed: {
    when: 'an invoice in dispute is disputed again',
    exit: 3,
    says: /6\.00 USD of INV-2026-000001 has been in dispute since 2026-09-03.*reckoner dispute close INV-2026-000001/,
    run: async () => {
      await inCorrected('dispute', 'open', 'INV-2026-000001', '--reason', 'wrong count');
      const ran = await inCorrected('dispute', 'open', 'INV-2026-000001', '--reason', 'wrong count');
      await inCorrected('dispute', 'close', 'INV-2026-000001', '--reason', 'explained');
      return ran;
    },
  },
  invoice_not_disputed: {
    when: 'a dispute is closed that nobody opened',
    exit: 3,
    says: /INV-2026-000001 has no open dispute.*reckoner dispute list/,
    run: () => inCorrected('dispute', 'close', 'INV-2026-000001', '--reason', 'explained'),
  },
  reminders_not_paused: {
    when: 'the pause of reminders is ended of a partner whose reminders are not paused',
    exit: 3,
    says: /reminders of partner p-1 are not paused.*reckoner reminder pause p-1/,
    run: () => inCorrected('reminder', 'resume', 'p-1', '--reason', 'all is paid'),
  },
  dispute_exceeds_balance: {
    when: 'more is disputed than is open',
    exit: 3,
    says: /7\.01 USD exceeds the open balance of INV-2026-000001: 6\.00 USD/,
    run: () => inCorrected('dispute', 'open', 'INV-2026-000001', '--reason', 'wrong count', '--amount', '7.01'),
  },
  document_not_on_hold: {
    when: 'a document is released that nobody holds',
    exit: 3,
    says: /INV-2026-000001 is not on hold/,
    run: () => inCorrected('invoice', 'release', 'INV-2026-000001'),
  },
  not_an_invoice: {
    when: 'a credit note is to be written off',
    exit: 3,
    says: /CN-2026-000001 is a credit note\. Only an invoice can be written off/,
    run: () => inCorrected('invoice', 'write-off', 'CN-2026-000001', '--reason', 'x'),
  },
  not_of_the_ledger: {
    when: 'a credit against an invoice is to be run again',
    exit: 3,
    says: /CN-2026-000002 was not issued by a month close/,
    run: () => inCorrected('invoice', 'rerun', 'CN-2026-000002'),
  },
  exception_unknown: {
    when: 'nothing waits under that name',
    exit: 3,
    says: /No such open exception: 'line-99'/,
    run: () => inCorrected('payment', 'close-exception', 'line-99', '--reason', 'looked at'),
  },
  exception_needs_action: {
    when: 'a payout is to be closed by a word',
    exit: 3,
    says: /payout-\d+ .* cannot be closed with a note.*payment settle/,
    run: async () => {
      const payout = await importPayout('P-1');
      return inCorrected('payment', 'close-exception', `payout-${payout}`, '--reason', 'x');
    },
  },
  credit_not_applicable: {
    when: "one partner's credit is to be applied to another's invoice",
    exit: 3,
    says: /CN-2026-000001 cannot be applied to INV-2026-000001: it belongs to p-1, and the credit to p-2/,
    run: () => inCorrected('credit', 'apply', 'CN-2026-000001', '--invoice', 'INV-2026-000001'),
  },
  credit_amount_too_large: {
    when: 'more credit is to be applied than is open',
    exit: 3,
    says: /7\.01 USD is more than the 7\.00 USD of open credit on CN-2026-000001/,
    run: () => inCorrected('credit', 'apply', 'CN-2026-000001', '--invoice', 'INV-2026-000002', '--amount', '7.01'),
  },
  credit_not_applied: {
    when: 'credit is to be taken back that was not applied there',
    exit: 3,
    says: /No credit from CN-2026-000001 is applied to INV-2026-000002/,
    run: () => inCorrected('credit', 'unapply', 'CN-2026-000001', '--invoice', 'INV-2026-000002'),
  },
  credit_covers_invoice: {
    when: 'credit is to be taken back from an invoice that was issued with nothing due',
    exit: 3,
    says: /was issued with nothing due, because credit from CN-.* covers it.*invoice void .*invoice rerun/,
    run: async () => {
      const own = await correctedWorld();
      own.at('2026-10-02T10:00:00Z');
      await own.rows([quote({ partner_id: 'p-2', accepted_at: '2026-09-05T12:00:00Z' })]);
      await own.close();
      const env = { RECKONER_HOME: own.home, DATABASE_URL: own.databaseUrl, RECKONER_NOW: '2026-10-03T10:00:00Z' };
      const [found] = await own.sql<{ note: string; number: string }>(
        `SELECT n.number AS note, i.number FROM live_credit_applications a
         JOIN documents n ON n.document_id = a.credit_note_id JOIN documents i ON i.document_id = a.invoice_id
         WHERE i.invoice_amount = i.credit_applied`,
      );
      const { note = '', number = '' } = found ?? {};
      const ran = await command(['--json', 'credit', 'unapply', note, '--invoice', number], { env });
      await own.end();
      return ran;
    },
  },
  date_too_early: {
    when: 'credit is to have been paid out before its credit note was issued',
    exit: 3,
    says: /--on 2026-01-01 is too early: CN-2026-000001 was issued on \d{4}-\d\d-\d\d\. Give that day or a later one/,
    run: () => inCorrected('credit', 'refund', 'CN-2026-000001', '--amount', '1', '--on', '2026-01-01'),
  },
  refund_repeated: {
    when: 'a part of the credit is refunded again with the same reference',
    exit: 3,
    says: /1\.00 USD of CN-2026-000001 was already refunded on 2026-09-03.*add --again/,
    run: async () => {
      const refund = () => inCorrected('credit', 'refund', 'CN-2026-000001', '--amount', '1', '--reference', 'OUT-1');
      expect((await refund()).json()).toMatchObject({ amount: '1.00', open_credit: '6.00' });
      const refused = await refund();
      expect((await inCorrected('credit', 'refund', 'CN-2026-000001', '--returned', 'refused')).status).toBe(0);
      expect((await inCorrected('credit', 'refund', 'CN-2026-000001', '--returned', '')).stderr).toMatch(
        /^--returned ''/m,
      );
      return refused;
    },
  },
  credit_repeated: {
    when: 'a credit is asked for that was issued already',
    exit: 3,
    says: /INV-2026-000001 was already credited 1\.00 USD for the same reason, by CN-2026-000002 on .*add --again/,
    run: () => inCorrected('invoice', 'credit', 'INV-2026-000001', '--amount', '1', '--reason', 'x'),
  },
  row_not_correctable: {
    when: 'a row is to be credited that the invoice does not bill',
    exit: 3,
    says: /Row 999999 cannot be credited: INV-2026-000001 does not bill it\. Nothing was recorded\./,
    run: () => inCorrected('invoice', 'credit', 'INV-2026-000001', '--rows', '999999', '--reason', 'x'),
  },
  credit_exceeds_invoice: {
    when: 'credits would come to more than the invoice',
    exit: 3,
    says: /6\.01 USD exceeds the amount that can still be credited on INV-2026-000001: 6\.00 USD/,
    run: () => inCorrected('invoice', 'credit', 'INV-2026-000001', '--amount', '6.01', '--reason', 'x'),
  },
  credit_used: {
    when: 'a credit note is to be voided that is used already',
    exit: 3,
    says: /CN-2026-000002 cannot be voided: 1\.00 USD of its credit has been used/,
    run: () => inCorrected('invoice', 'void', 'CN-2026-000002', '--reason', 'x'),
  },
  payment_applied: {
    when: 'an invoice is to be voided that is paid in part',
    exit: 3,
    says: /INV-2026-000001 cannot be voided while a payment of 2\.00 USD is applied to it/,
    run: async () => {
      const record = ['payment', 'record', '--amount', '2', '--currency', 'USD', '--method', 'wire'];
      const how = ['--received-on', '2026-08-01', '--reference', 'FT-1', '--invoice', 'INV-2026-000001'];
      expect((await inCorrected(...record, ...how)).status).toBe(0);
      const refused = await inCorrected('invoice', 'void', 'INV-2026-000001', '--reason', 'x');
      expect((await inCorrected('payment', 'unapply', '1', '--reason', 'wrong')).status).toBe(0);
      return refused;
    },
  },
  document_written_off: {
    when: 'an invoice is to be voided that is written off',
    exit: 3,
    says: /INV-2026-000001 cannot be voided: 6\.00 USD of it has been written off/,
    run: async () => {
      await inCorrected('invoice', 'write-off', 'INV-2026-000001', '--reason', 'gone');
      return inCorrected('invoice', 'void', 'INV-2026-000001', '--reason', 'x');
    },
  },
  not_written_off: {
    when: 'a write-off is to be undone that there is not',
    exit: 3,
    says: /No part of INV-2026-000002 was written off/,
    run: () => inCorrected('invoice', 'write-off', 'INV-2026-000002', '--undo', '--reason', 'they pay'),
  },
  nothing_to_write_off: {
    when: 'nothing is open on the invoice',
    exit: 3,
    says: /INV-2026-000001 has no open balance/,
    run: () => inCorrected('invoice', 'write-off', 'INV-2026-000001', '--reason', 'again'),
  },
  document_not_void: {
    when: 'a void copy of a document that is not void is asked for',
    exit: 3,
    says: /INV-2026-000002 is not void/,
    run: () => inCorrected('invoice', 'pdf', 'INV-2026-000002', '--void-copy'),
  },
  document_void: {
    when: 'a void document is to be voided',
    exit: 3,
    says: /CN-2026-000001 was voided on 2026-09-03 and has no replacement\. Issue a replacement with 'reckoner invoice rerun CN-2026-000001'/,
    run: async () => {
      await inCorrected('invoice', 'void', 'CN-2026-000001', '--reason', '取消');
      return inCorrected('invoice', 'void', 'CN-2026-000001', '--reason', 'x');
    },
  },
  characters_unprintable: {
    when: 'a void copy is to show a reason in letters that no font has',
    exit: 3,
    says: /The void copy of CN-2026-000001 cannot be rendered: no font has 取消 \(U\+53D6 U\+6D88\) in the reason of the void\. Put a font .* into .*templates\/fonts/,
    run: () => inCorrected('invoice', 'pdf', 'CN-2026-000001', '--void-copy'),
  },
  payment_not_applicable: {
    when: 'the invoice is in another currency than the payment',
    exit: 3,
    says: /INV-2026-000001: it is in USD, and the payment in EUR/,
    run: async () => {
      await world.partners([partner({ partner_id: 'p-payer' })]);
      const paid = await recordedWith({ currency: 'EUR', reference: 'FT-other', whose: ['--partner', 'p-payer'] });
      expect(paid.status).toBe(0);
      foreignPayment = numberOf(paid);
      return inWorld(['payment', 'apply', foreignPayment, '--invoice', 'INV-2026-000001']);
    },
  },
  payment_not_assignable: {
    when: 'the payer is that partner already',
    exit: 3,
    says: /payment \d+ cannot be set: its payer is already p-payer/,
    run: () => inWorld(['payment', 'assign', foreignPayment, '--partner', 'p-payer']),
  },
  payer_account_unknown: {
    when: 'an account is to be forgotten that nobody has paid from',
    exit: 3,
    says: /'DE00'\. See all known accounts with 'reckoner payment accounts'/,
    run: () => inWorld(['payment', 'forget-account', 'DE00']),
  },
  payment_nothing_applied: {
    when: 'what is to be undone was never applied',
    exit: 3,
    says: /No part of payment \d+ is applied to an invoice, so there is nothing to undo/,
    run: () => inWorld(['payment', 'unapply', foreignPayment, '--reason', 'wrong']),
  },
  payment_amount_too_large: {
    when: 'more is to be applied than is open',
    exit: 3,
    says: /99\.00 USD is more than the 5\.00 USD that is unapplied/,
    run: async () => {
      const paid = await recorded('FT-own', '--partner', 'p-1');
      expect(paid.status).toBe(0);
      ownPayment = numberOf(paid);
      return inWorld(['payment', 'apply', ownPayment, '--invoice', 'INV-2026-000001', '--amount', '99']);
    },
  },
  bank_fee_not_applicable: {
    when: 'a payment is applied less a bank fee of which the settings allow none',
    exit: 3,
    says: /with a bank fee of 1\.00 USD: "small_difference" in settings\.json has no amount for USD/,
    run: () => inWorld(['payment', 'apply', ownPayment, '--invoice', 'INV-2026-000001', '--fee', '1']),
  },
  credit_not_refundable: {
    when: 'an invoice is to be refunded as a credit note',
    exit: 3,
    says: /INV-2026-000001 cannot be refunded: it is an invoice/,
    run: () => inWorld(['credit', 'refund', 'INV-2026-000001']),
  },
  export_exists: {
    when: 'an export is to go where something is already',
    exit: 3,
    says: /already exists, and an export never replaces anything/,
    run: () => inWorld(['export', 'events', '--month', '2026-07', '--out', folder]),
  },
  import_overtaken: {
    when: 'a server accepts a quote while an import of the same quote runs',
    exit: 3,
    says: /Another process recorded a row of this import/,
    run: async () => {
      const row = quote();
      const other = new pg.Client({ connectionString: world.databaseUrl });
      await other.connect();
      try {
        await other.query('BEGIN');
        await other.query(
          `INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at,
             spot_price, partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
           SELECT partner_id, '2026-08', kind, $1, policy_id, currency, accepted_at, spot_price, partner_cut,
                  invoice_amount, time_zone, month, arrangement, recorded_at, event_id
           FROM ledger_rows ORDER BY entry_id LIMIT 1`,
          [row['quote_id']],
        );
        const importing = inWorld(['ledger', 'import', written('overtaken.ndjson', JSON.stringify(row))]);
        const waits = `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
                       WHERE locktype = 'transactionid' AND NOT granted AND datname = current_database()`;
        while ((await world.sql(waits)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
        await other.query('COMMIT');
        return await importing;
      } finally {
        await other.end();
      }
    },
  },
  first_month_fixed: {
    when: 'another first month is asked for after the first close',
    exit: 3,
    says: /set the first month to 2026-06/,
    run: () => inWorld(['close', '--first-month', '2026-05']),
  },
  payout_settled: {
    when: 'a payout is settled again',
    exit: 3,
    says: /already settled/,
    run: async () => {
      const payout = await importPayout('P-3');
      const payment = ['payment', 'record', '--amount', '41', '--currency', 'USD', '--method', 'link'];
      const given = ['--received-on', '2026-08-05', '--reference', 'pi_settled', '--partner', 'p-1'];
      const { payment_id: id } = (await inCorrected(...payment, ...given)).json() as { payment_id: number };
      expect(await inCorrected('payment', 'settle', payout, String(id))).toMatchObject({ status: 0 });
      return inCorrected('payment', 'settle', payout, String(id));
    },
  },
  paused: {
    when: 'the ledger is paused',
    exit: 3,
    says: /has been paused since 2026-08-10 10:00 UTC: the server moves\. .* 'reckoner resume'/,
    run: () => whilePaused(() => inWorld(['close'])),
  },
  already_paused: {
    when: 'it is paused twice',
    exit: 3,
    says: /already been paused since 2026-08-10 10:00 UTC: the server moves\./,
    run: () => whilePaused(() => inWorld(['pause', '--reason', 'again'])),
  },
  not_paused: {
    when: 'there is no pause to end',
    exit: 3,
    says: /not paused/,
    run: () => inWorld(['resume']),
  },
  numbers_missing: {
    when: 'a restored ledger is resumed with the numbers of one series alone',
    exit: 3,
    says: /Still missing are the series of these last numbers here: CN-2026-00000\d, ST-2026-00000\d\./,
    run: () =>
      whilePaused(
        () => inWorld(['resume', '--numbers-after', 'INV-2026-000900']),
        ...['--state-of', '2026-08-10T09:00Z'],
      ),
  },
  numbers_not_ahead: {
    when: 'numbers are to be skipped after one that is not the last',
    exit: 3,
    says: /INV-2026-000001 is before INV-2026-00000\d, the last number in this ledger/,
    run: () => whilePaused(() => inWorld(['resume', '--numbers-after', 'INV-2026-000001'])),
  },
  numbers_implausible: {
    when: 'more numbers would be skipped than a lost month has documents',
    exit: 3,
    says: /INV-2026-900000 were not skipped: that would skip 899,99\d numbers at once\./,
    run: () => whilePaused(() => inWorld(['resume', '--numbers-after', 'INV-2026-900000'])),
  },
  clock_behind: {
    when: 'the clock has gone back behind the latest document',
    exit: 3,
    says: /INV-2026-000002 was issued on 2026-09-02/,
    run: async () => {
      await world.sql(withoutEvent('partners', 'UPDATE partners SET inactive_since = now()'));
      await world.partners([partner({ partner_id: 'p-east', time_zone: 'Pacific/Kiritimati' })]);
      // August has ended on Kiritimati; the documents of July were dated by a clock that ran ahead.
      await world.sql(`ALTER TABLE documents DISABLE TRIGGER append_only`);
      await world.sql(`UPDATE documents SET issued_on = '2026-09-02', due_on = '2026-09-02'::date + terms_days`);
      await world.sql(`ALTER TABLE documents ENABLE ALWAYS TRIGGER append_only`);
      return inWorld(['close', '2026-08'], { RECKONER_NOW: '2026-08-31T12:00:00Z' });
    },
  },
};

for (const [code, { when, exit, says, run }] of Object.entries(CASES)) {
  test(`${code}: ${when}`, async () => {
    const ran = await run();
    const { error } = JSON.parse(ran.stdout) as { error: { code: string; message: string } };
    expect({ code: error.code, status: ran.status }).toEqual({ code, status: exit });
    expect(error.message).toMatch(says);
    expect(ran.stderr).not.toMatch(/\n\s+at |hunter-two/);
  });
}

test('database_too_old: PostgreSQL 15 is refused, 16 is not', () => {
  const refusal = (number: number, text: string) => {
    try {
      refuseOldServer({ number, text });
      return undefined;
    } catch (error) {
      return error instanceof Refusal ? error.code : error;
    }
  };
  expect(refusal(150018, '15.18')).toBe('database_too_old');
  expect(refusal(160000, '16.0')).toBeUndefined();
});

test('every refusal that the program knows has its case', () => {
  expect([...Object.keys(CASES), ...ELSEWHERE].sort()).toEqual([...COMMAND_REFUSAL_CODES].sort());
});
