/**
 * The story that crash tests interrupt: a world with rows of two months waiting, a real mail server, and what must be
 * true of it in the end, however often the program was killed on the way.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { type Ran, reckoner } from '../support/program.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

const first = quote({ quote_id: 'q-1', accepted_at: '2026-07-03T12:00:00Z' });
const second = quote({ quote_id: 'q-2', partner_id: 'p-2', accepted_at: '2026-07-04T12:00:00Z' });

export const PARTNERS = [
  partner(),
  partner({ partner_id: 'p-2', time_zone: 'Europe/Berlin' }),
  partner({ partner_id: 'p-3' }),
];

/** July: two partners; August: a late row, a month below zero, a third partner. */
export const ROWS = [
  first,
  requote(first, { requote_id: 'rq-1', accepted_at: '2026-07-05T12:00:00Z' }),
  second,
  quote({ quote_id: 'q-3', accepted_at: '2026-08-01T12:00:00Z' }),
  reversal(second, { reversal_id: 'rv-1', accepted_at: '2026-08-02T12:00:00Z' }),
  quote({ quote_id: 'q-4', partner_id: 'p-3', accepted_at: '2026-08-03T12:00:00Z' }),
];
export const NOW = '2026-09-02T10:00:00Z';

/** At most so many sendings are under way at once in one process, see CREW in src/delivery/deliver.ts. */
const IN_FLIGHT = 4;

export interface Story {
  readonly world: World;
  readonly mail: MailServer;
  readonly run: (args: readonly string[], env?: Record<string, string>) => Promise<Ran>;
  readonly rowsFile: string;
  readonly partnersFile: string;
  /** The same partners, one of them under another name: its documents differ when they are run again. */
  readonly renamedFile: string;
  readonly end: () => Promise<void>;
}

export async function beginStory(): Promise<Story> {
  const mail = await startMailServer();
  const world = await openWorld();
  world.at(NOW);
  const rowsFile = join(world.home, 'rows.ndjson');
  const partnersFile = join(world.home, 'partners.json');
  writeFileSync(rowsFile, ROWS.map((row) => `${JSON.stringify(row)}\n`).join(''));
  writeFileSync(partnersFile, JSON.stringify(PARTNERS));
  const renamedFile = join(world.home, 'renamed.json');
  writeFileSync(
    renamedFile,
    JSON.stringify(PARTNERS.map((each, index) => (index === 0 ? { ...each, name: 'Renamed' } : each))),
  );
  const env = {
    RECKONER_HOME: world.home,
    DATABASE_URL: world.databaseUrl,
    RECKONER_NOW: NOW,
    SMTP_URL: mail.url,
  };
  return {
    world,
    mail,
    rowsFile,
    partnersFile,
    renamedFile,
    run: (args, more = {}) => reckoner(args, { env: { ...env, ...more } }),
    end: async () => {
      await world.end();
      await mail.close();
    },
  };
}

/** What every run must come to, killed or not: documents, rows and who was written to. Random tokens are left out. */
export async function outcome({ world, mail }: Story): Promise<unknown> {
  const documents = (await world.documents()).map(({ payment_link, pdf, email, ...rest }) => ({
    ...rest,
    has_link: payment_link !== null,
    has_pdf: pdf !== null,
    email: email?.status,
    to: email?.to,
  }));
  const rows = await world.sql(
    `SELECT kind, partner_id, coalesce(reversal_id, requote_id, quote_id) AS own_id, posted_month, month, spot_price
     FROM entries ORDER BY partner_id, kind, own_id`,
  );
  const received = new Set(mail.mails.map((each) => each.parsed.messageId));
  return { documents, rows, received: received.size };
}

/**
 * No e-mail is lost, none is sent twice but with the same Message-ID and bytes, and of those no more than were under
 * way at a kill. And every check of `verify` holds.
 */
export async function assertNothingLostOrDoubled({ world, mail }: Story, kills: number): Promise<void> {
  const copies = new Map<string, Set<string>>();
  let repeated = 0;
  for (const each of mail.mails) {
    const id = each.parsed.messageId ?? '';
    const bytes = createHash('sha256').update(each.raw).digest('hex');
    const seen = copies.get(id);
    if (seen) repeated += 1;
    copies.set(id, (seen ?? new Set()).add(bytes));
  }
  for (const [id, bytes] of copies) expect({ id, versions: bytes.size }).toEqual({ id, versions: 1 });
  expect(repeated).toBeLessThanOrEqual(kills * IN_FLIGHT);
  const sent = await world.sql<{ message_id: string }>(`SELECT message_id FROM sendings WHERE status = 'sent'`);
  expect(new Set(copies.keys())).toEqual(new Set(sent.map((row) => row.message_id)));
  const { differences, inspected } = await world.database.reading((tx) => verify(tx, undefined));
  expect({ differences, some: inspected > 0 }).toEqual({ differences: 0, some: true });
}
