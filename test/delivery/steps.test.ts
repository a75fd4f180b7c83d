/** Deliveries that ask the database together: each gets its own answer, and its own error. */
import { beforeEach, expect, test } from 'vitest';
import { Claims } from '../../src/database/claims.ts';
import type { Database } from '../../src/database/database.ts';
import { DUE_DOCUMENTS } from '../../src/delivery/due.sql.ts';
import { newToken } from '../../src/delivery/payment-link.ts';
import { DeliverySteps, type Preparation } from '../../src/delivery/steps.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';

let world: World;
freshMailWorld((opened) => {
  ({ world } = opened);
});

const INVOICES = 6;
let ids: number[];
let transactions: number;
let steps: DeliverySteps;

beforeEach(async () => {
  const partners = Array.from({ length: INVOICES }, (_, index) => `p-${index + 1}`);
  await world.partners(partners.map((partner_id) => partner({ partner_id })));
  await world.rows(partners.map((partner_id) => quote({ partner_id })));
  await world.close();
  const rows = await world.sql<{ id: string }>('SELECT document_id AS id FROM documents ORDER BY 1');
  ids = rows.map(({ id }) => Number(id));
  transactions = 0;
  const counted: Database = {
    ...world.database,
    inOneTrip: (work, options) => {
      transactions += 1;
      return world.database.inOneTrip(work, options);
    },
  };
  steps = new DeliverySteps(counted);
});

const preparation = (documentId: number): Preparation => ({
  documentId,
  link: {
    ...{ documentId, url: `https://pay.example/${documentId}`, provider: 'page' },
    ...{ token: newToken(), now: '2026-08-01T10:00:00Z' },
  },
  pdf: false,
  rows: 1,
});

test('steps that are asked for at once share a transaction, and each gets its own answer', async () => {
  const found = await Promise.all(ids.map((id) => steps.find(id)));
  const prepared = await Promise.all(ids.map((id) => steps.prepare(preparation(id))));
  expect(found.map(({ document }) => document?.document_id)).toEqual(ids);
  expect(prepared.map(({ paymentLink }) => paymentLink)).toEqual(ids.map((id) => `https://pay.example/${id}`));
  expect(prepared.map(({ rows }) => [rows.count, rows.lines.split(',')[1]])).toEqual(
    ids.map((_, index) => [1, `p-${index + 1}`]),
  );
  expect(transactions).toBe(2);
});

test('a batch waits for a third of the deliveries under way, not for those that ended or wait for a mail server', async () => {
  const ends: (() => void)[] = [];
  const others = Array.from({ length: 4 }, () => steps.underWayWith(() => new Promise<void>((end) => ends.push(end))));
  const find = (index: number) => steps.underWayWith(() => steps.find(ids[index] as number));
  const turns = async () => {
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  };
  const first = find(0);
  await turns();
  expect(transactions).toBe(0);
  const second = find(1);
  expect([(await first).document?.document_id, (await second).document?.document_id]).toEqual(ids.slice(0, 2));
  expect(transactions).toBe(1);
  const third = find(2);
  await turns();
  expect(transactions).toBe(1);
  for (const end of ends.slice(0, 2)) end();
  expect((await third).document?.document_id).toBe(ids[2]);
  expect(transactions).toBe(2);
  const sending = Array.from({ length: 4 }, () =>
    steps.underWayWith(() => steps.outside(() => new Promise<void>((end) => ends.push(end)))),
  );
  expect((await find(3)).document?.document_id).toBe(ids[3]);
  for (const end of ends) end();
  await Promise.all([...others, ...sending]);
});

test('if one of a batch is refused, the others are done and it alone fails', async () => {
  const settled = await Promise.allSettled(ids.map((id, index) => steps.prepare(preparation(index === 2 ? -1 : id))));
  expect(settled.map(({ status }) => status)).toEqual(ids.map((_, index) => (index === 2 ? 'rejected' : 'fulfilled')));
  expect(settled[2]).toMatchObject({ reason: { code: '23503', table: 'payment_links' } });
  expect(await world.sql('SELECT FROM payment_links')).toHaveLength(INVOICES - 1);
});

test('of several workers that offer one e-mail in one transaction, one may send it', async () => {
  const claims = await Claims.open(world.database.connection);
  try {
    const [email] = await world.sql<{ id: string }>('SELECT min(email_id) AS id FROM emails');
    expect((await claims.claim(DUE_DOCUMENTS, INVOICES)).map(({ key }) => key)).toEqual(ids.map(String));
    const offered = await Promise.all(
      ids.map((_, index) =>
        steps.keep({
          pdf: undefined,
          offer: {
            ...{ emailId: Number(email?.id), attempt: 1, holder: claims.holder, recipients: ['ap@partner.example'] },
            ...{ envelopeFrom: 'billing@protection.example', message: Buffer.from(`message ${index}`) },
            ...{ sha256: String(index), startedAt: '2026-08-01T10:00:00Z' },
          },
        }),
      ),
    );
    expect(transactions).toBe(1);
    expect(offered.filter(Boolean)).toHaveLength(1);
    const winner = offered.indexOf(true);
    expect(
      await world.sql(
        `SELECT message_sha256, convert_from(message, 'UTF8') AS message, attempts FROM emails WHERE status = 'sending'`,
      ),
    ).toEqual([{ message_sha256: String(winner), message: `message ${winner}`, attempts: 1 }]);
  } finally {
    await claims.end();
  }
});
