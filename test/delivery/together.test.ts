/** Deliveries that ask the database together: each gets its own answer, and its own refusal. */
import { beforeEach, expect, test } from 'vitest';
import type { Database } from '../../src/database/database.ts';
import { newToken } from '../../src/delivery/link.ts';
import { type DeliverySteps, type StepsTogether, stepsTogether } from '../../src/delivery/together.ts';
import { hireCrew } from '../../src/delivery/workers.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

const INVOICES = 6;
let ids: number[];
let transactions: number;
let together: StepsTogether;

beforeEach(async () => {
  const partners = Array.from({ length: INVOICES }, (_, index) => `p-${index + 1}`);
  await world.partners(partners.map((partner_id) => partner({ partner_id })));
  await world.rows(partners.map((partner_id) => quote({ partner_id })));
  await world.close();
  ids = (await world.sql<{ id: string }>('SELECT document_id AS id FROM documents ORDER BY 1')).map(({ id }) =>
    Number(id),
  );
  transactions = 0;
  const counted: Database = {
    ...world.database,
    reading: (work) => {
      transactions += 1;
      return world.database.reading(work);
    },
    transaction: (work) => {
      transactions += 1;
      return world.database.transaction(work);
    },
    inOneTrip: (work, options) => {
      transactions += 1;
      return world.database.inOneTrip(work, options);
    },
  };
  together = stepsTogether(counted);
});

/** Each document goes through this, all at once. */
const each = <Result>(
  work: (steps: DeliverySteps, id: number, index: number) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> =>
  Promise.allSettled(ids.map((id, index) => together.through((steps) => work(steps, id, index))));

const link = (documentId: number, url: string) => ({
  ...{ documentId, url, provider: 'page', token: newToken(), now: '2026-08-01T10:00:00Z' },
});

const keepLink = (steps: DeliverySteps, toKeep: ReturnType<typeof link>, rows: number | false = false) =>
  steps.prepare({ documentId: toKeep.documentId, link: toKeep, instructions: undefined, drawing: false, rows });

const values = <Result>(settled: readonly PromiseSettledResult<Result>[]) =>
  settled.map((one) => (one.status === 'fulfilled' ? one.value : 'refused'));

test('those who come at once are answered in one transaction a step, each with its own', async () => {
  const answers = await each(async (steps, id) => {
    const { document } = await steps.look(id);
    const { paymentLink, rows } = await keepLink(steps, link(id, `https://pay.example/${id}`), 1);
    return [document?.document_id, paymentLink, rows.map(({ partner_id }) => partner_id)];
  });
  expect(values(answers)).toEqual(ids.map((id, index) => [id, `https://pay.example/${id}`, [`p-${index + 1}`]]));
  expect(transactions).toBe(2);
  expect(server.mails).toEqual([]);
});

test('where one is refused, the others are done, and it alone is told', async () => {
  const answers = await each((steps, id, index) =>
    keepLink(steps, link(index === 2 ? -1 : id, `https://pay.example/${id}`)),
  );
  expect(values(answers).filter((one) => one === 'refused')).toHaveLength(1);
  expect(values(answers)[2]).toBe('refused');
  expect(await world.sql('SELECT FROM payment_links')).toHaveLength(INVOICES - 1);
});

test('of those who claim one letter in the same transaction, one gets it', async () => {
  const crew = await hireCrew(world.database.connection, INVOICES, () => {});
  try {
    const [sending] = await world.sql<{ id: string }>('SELECT min(sending_id) AS id FROM sendings');
    const claims = await each((steps, _, index) =>
      steps.keep({
        drawing: undefined,
        claim: {
          sendingId: Number(sending?.id),
          attempts: 0,
          worker: crew.numbers[index] as number,
          recipients: ['ap@partner.example'],
          envelopeFrom: 'billing@protection.example',
          kept: { message: Buffer.from(`letter ${index}`), drawingAt: null },
          sha256: String(index),
          now: '2026-08-01T10:00:00Z',
        },
      }),
    );
    expect(transactions).toBe(1);
    expect(values(claims).filter((claimed) => claimed === true)).toHaveLength(1);
    const [claimed] = await world.sql<{ worker: string; letter: string }>(
      `SELECT worker, convert_from(message, 'UTF8') AS letter FROM sendings WHERE status = 'sending'`,
    );
    const winner = values(claims).indexOf(true);
    expect(claimed).toEqual({ worker: String(crew.numbers[winner]), letter: `letter ${winner}` });
  } finally {
    await crew.dismiss();
  }
});

test('one that takes long keeps the others waiting for a while, and no longer', async () => {
  let release: () => void = () => {};
  const slow = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slowest = together.through(() => slow);
  const began = performance.now();
  await together.through((steps) => steps.look(ids[0] as number));
  expect(performance.now() - began).toBeLessThan(10_000);
  release();
  await slowest;
});
