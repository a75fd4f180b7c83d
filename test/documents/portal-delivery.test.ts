/** A delivery through the partner's portal is a fact: its e-mail is withdrawn, and the document counts as delivered. */
import { beforeEach, expect, test } from 'vitest';
import { invoiceDelivered } from '../../src/actions/invoice/delivered.ts';
import { runAction } from '../../src/actions/run.ts';
import { countDeliveries, nameNeedingAttention } from '../../src/mail/outbox.sql.ts';
import { refusalOf } from '../close/refusal.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';
import { correctionsOf, document, emailsOf, expectVerified, story } from './correcting.ts';

let world: World;
let server: MailServer;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});
const INV_1 = 'INV-2026-000001';

beforeEach(async () => {
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
});

const deliver = (on = '2026-08-01', reference = 'UP-7') =>
  runAction({ ...world }, invoiceDelivered, { number: INV_1, on, reference });
const counts = () =>
  world.database.reading(async (tx) => ({
    ...(await countDeliveries(tx)),
    attention: await nameNeedingAttention(tx),
  }));

test('its queued e-mail is withdrawn with the reason, and the document counts as delivered', async () => {
  expect((await deliver()).text).toBe(
    "INV-2026-000001 was delivered by the partner's portal on 2026-08-01.\n" +
      "E-mail: not needed: the document was delivered by the partner's portal",
  );
  expect(await emailsOf(world, INV_1)).toMatchObject([
    { status: 'withdrawn', reason: 'the document was delivered by portal before it was sent' },
  ]);
  await world.deliver();
  expect(server.mails).toEqual([]);
  expect(await counts()).toMatchObject({ sent: 1, pending: 0, held: 0, attention: { documents: [] } });
  expect(await document(world, INV_1)).toMatchObject({ email: { status: 'portal' } });
  expect(await story(world, INV_1)).toContainEqual([
    'portal_delivered',
    "delivered by the partner's portal on 2026-08-01: UP-7",
  ]);
  await expectVerified(world);
});

test('a held e-mail is withdrawn too, and stays so after the release', async () => {
  await correctionsOf(world).hold(INV_1, 'the partner wants it in its portal');
  await deliver();
  await correctionsOf(world).release(INV_1);
  await world.deliver();
  expect(server.mails).toEqual([]);
  await expectVerified(world);
});

test('an e-mail that was sent stays sent, and a later resend is sent again', async () => {
  await deliver();
  await correctionsOf(world).resend(INV_1);
  await world.deliver();
  expect(server.mails).toHaveLength(1);
  await deliver();
  expect(await document(world, INV_1)).toMatchObject({ email: { status: 'sent' } });
  await expectVerified(world);
});

test('the day is between the issue and today, and a void document is not delivered', async () => {
  expect(await refusalOf(deliver('2026-07-31'))).toMatchObject({ code: 'argument_invalid' });
  expect(await refusalOf(deliver('2026-08-02'))).toMatchObject({ code: 'argument_invalid' });
  await correctionsOf(world).voided(INV_1);
  expect(await refusalOf(deliver())).toMatchObject({ code: 'document_void' });
});
