/** Corrections at the same time, beside a close and beside workers: nothing is doubled, one document is live. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { closeMonths } from '../../src/close/run.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { startOver } from '../close/start-over.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { type Corrections, correctionsOf, emailsOf, expectVerified, sale, standing } from './correcting.ts';

let world: World;
let server: MailServer;
/** Other machines on the same database. */
let others: Database;
let action: Corrections;
beforeAll(async () => {
  server = await startMailServer();
  world = await openWorld({ smtpUrl: server.url });
  others = await openDatabase(world.environment, { poolSize: 16 });
  action = correctionsOf(world, others);
});
afterAll(async () => {
  await others.close();
  await world.end();
  await server.close();
});
beforeEach(async () => {
  await startOver(world);
  server.mails.length = 0;
  server.behaviour = 'accept';
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  await world.rows([sale('2026-07', '50'), quote({ partner_id: 'p-2' })]);
  await world.close();
});

const INV_1 = 'INV-2026-000001';

/** How many of these actions were done, and by which codes the others were refused. */
async function together(actions: readonly (() => Promise<unknown>)[]): Promise<{ done: number; refused: string[] }> {
  const settled = await Promise.allSettled(actions.map((each) => each()));
  const refused = settled.flatMap((each) => {
    if (each.status === 'fulfilled') return [];
    if (each.reason instanceof Refusal) return [each.reason.code];
    throw each.reason;
  });
  return { done: settled.length - refused.length, refused: [...new Set(refused)] };
}

const times = <Action>(count: number, each: () => Action): Action[] => Array.from({ length: count }, each);

test('of eight concurrent voids of one document one succeeds, and the others are refused because it is void', async () => {
  expect(await together(times(8, () => () => action.voided(INV_1)))).toEqual({ done: 1, refused: ['document_void'] });
  expect(await world.sql('SELECT count(*)::int AS count FROM voids')).toEqual([{ count: 1 }]);
  await expectVerified(world);
});

test('of eight concurrent reruns of one document one replaces it', async () => {
  await world.partners([partner({ name: 'New' })]);
  expect(await together(times(8, () => () => action.rerun(INV_1)))).toEqual({ done: 1, refused: ['document_void'] });
  expect(Object.keys(await standing(world))).toEqual([INV_1, 'INV-2026-000002', 'INV-2026-000003']);
  await expectVerified(world);
});

test('of eight reruns of a month one replaces, and the others find nothing that differs', async () => {
  await world.partners([partner({ name: 'New' }), partner({ partner_id: 'p-2', name: 'New' })]);
  const reruns = await Promise.all(times(8, () => action.rerunMonth('2026-07')));
  expect(reruns.map((each) => [each.unchanged, each.replaced.length]).sort()).toEqual([
    [0, 2],
    ...times(7, () => [2, 0]),
  ]);
  expect(Object.keys(await standing(world))).toHaveLength(4);
  await expectVerified(world);
});

test('ten concurrent credits of a fifth each: five succeed', async () => {
  expect(await together(times(10, () => () => action.credit(INV_1, '10')))).toEqual({
    done: 5,
    refused: ['credit_exceeds_invoice'],
  });
  expect(await standing(world)).toMatchObject({ [INV_1]: '50.00 - 0.00 - 50.00 = 0.00 paid' });
  await expectVerified(world);
});

test('concurrent write-offs, voids, holds and credits of one document leave books that balance', async () => {
  await together([
    ...times(3, () => () => action.writeOff(INV_1)),
    ...times(3, () => () => action.voided(INV_1)),
    ...times(3, () => () => action.credit(INV_1, '20')),
    ...times(2, () => () => action.hold(INV_1)),
    ...times(2, () => () => action.release(INV_1)),
    ...times(2, () => () => action.rerunMonth('2026-07')),
  ]);
  const live = await world.sql(`SELECT partner_id FROM live_documents WHERE purpose = 'month'`);
  expect(live.length).toBeLessThanOrEqual(2);
  await expectVerified(world);
  await action.rerunMonth('2026-07');
  await expectVerified(world);
});

test('a rerun beside closes: numbers stay gapless, and each month has its documents once', async () => {
  world.at('2026-10-01T10:00:00Z');
  await world.rows([
    quote({ accepted_at: '2026-08-10T12:00:00Z' }),
    quote({ partner_id: 'p-2', accepted_at: '2026-09-10T12:00:00Z' }),
  ]);
  await world.partners([partner({ name: 'New' }), partner({ partner_id: 'p-2', name: 'New' })]);
  await Promise.all([
    ...times(3, () => action.rerunMonth('2026-07')),
    ...times(3, () => closeMonths(others, world, {})),
  ]);
  expect((await world.documents()).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6]);
  await expectVerified(world);
});

test('voids beside workers: each e-mail is either withdrawn unsent or sent once, and never after its void', async () => {
  for (let round = 0; round < 4; round += 1) {
    await startOver(world);
    server.mails.length = 0;
    const partners = times(6, () => 0).map((_, index) => `p-${index}`);
    await world.partners(partners.map((partner_id) => partner({ partner_id })));
    await world.rows(partners.map((partner_id) => quote({ partner_id })));
    await world.close();
    const numbers = (await world.documents()).map(({ number }) => number);
    await Promise.all([
      world.deliver(),
      ...numbers.map(async (number, index) => {
        await new Promise((later) => setTimeout(later, (round * 60 + index * 40) % 300));
        await action.voided(number);
      }),
    ]);
    await world.sql(`UPDATE emails SET due_at = now() WHERE status = 'queued'`);
    await world.deliver();
    const states = [];
    for (const number of numbers) states.push(...(await emailsOf(world, number)));
    const sent = states.filter(({ status }) => status === 'sent').length;
    expect(states.every(({ status }) => status === 'sent' || status === 'withdrawn')).toBe(true);
    expect(server.mails.length).toBe(sent);
    await expectVerified(world);
  }
}, 120_000);

test('an e-mail whose document is voided before the mail server asks for it is withdrawn, and never sent', async () => {
  server.behaviour = 'hang_before_data';
  const { connections } = server;
  const delivering = world.deliver();
  while (server.connections < connections + 2) await new Promise((later) => setTimeout(later, 20));
  await action.voided(INV_1);
  // Nothing of it was offered yet: it is withdrawn at once, and whoever has it in hand sends nothing.
  expect(await emailsOf(world, INV_1)).toMatchObject([{ status: 'withdrawn', attempts: 0 }]);
  server.behaviour = 'accept';
  server.dropConnections();
  await delivering;
  await world.sql(`UPDATE emails SET due_at = now() WHERE status = 'queued'`);
  await world.deliver();
  expect(await emailsOf(world, INV_1)).toMatchObject([{ status: 'withdrawn', attempts: 0 }]);
  expect(server.mails.map(({ parsed }) => parsed.attachments[0]?.filename)).toEqual(['INV-2026-000002.pdf']);
  await expectVerified(world);
}, 60_000);

test('an e-mail that is being sent when its document is voided is finished, and not repeated', async () => {
  server.behaviour = 'hang_after_data';
  const delivering = world.deliver();
  while (server.mails.length < 2) await new Promise((later) => setTimeout(later, 20));
  await action.voided(INV_1);
  expect(await emailsOf(world, INV_1)).toMatchObject([{ status: 'sending', attempts: 1 }]);
  server.behaviour = 'accept';
  server.dropConnections();
  await delivering;
  await world.sql(`UPDATE emails SET due_at = now() WHERE status = 'queued'`);
  await world.deliver();
  // Both may have arrived: that of the void document is not sent again, the other is repeated.
  expect(await emailsOf(world, INV_1)).toMatchObject([{ status: 'uncertain', attempts: 1 }]);
  expect(server.mails.map(({ parsed }) => parsed.attachments[0]?.filename).sort()).toEqual([
    'INV-2026-000001.pdf',
    'INV-2026-000002.pdf',
    'INV-2026-000002.pdf',
  ]);
  await expectVerified(world);
}, 60_000);
