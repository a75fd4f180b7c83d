/** Actions by forms: what they show before, what they do, and whom they refuse. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fieldsOf } from '../../src/actions/fields.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import {
  ADMINISTRATOR,
  alertOf,
  type Browser,
  invite,
  type Page,
  serveConsole,
  signedIn,
  wordsOf,
} from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
let finance: Browser;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Other Tickets' })]);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  await world.deliver();
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
  finance = await signedIn(served, await invite(world, 'mara@issuer.example', { roles: ['finance'] }));
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const counts = () =>
  world.sql<{ events: string; voids: string }>(
    `SELECT (SELECT count(*) FROM audit_events)::text AS events, (SELECT count(*) FROM voids)::text AS voids`,
  );
/** The fields of the page's form, as a browser sends them back. */
const sentBack = ({ text }: Page): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
      .map(([, name = '', value = '']) => [name, value.replaceAll('&quot;', '"').replaceAll('&amp;', '&')])
      .filter(([name]) => name !== 'form_token'),
  );
const VOID = '/console/actions/invoice.void';

describe('an action by its form', () => {
  test.each(['invoice.delivered', 'credit.refund'])('%s begins with the day of today', async (name) => {
    const day = /<input type="date"[^>]*>/;
    expect((await finance.get(`/console/actions/${name}`)).text.match(day)?.[0]).toContain(
      `value="${world.environment.now().setZone(world.settings.time_zone).toISODate()}"`,
    );
    const chosen = await finance.get(`/console/actions/${name}?on=2026-07-04`);
    expect(chosen.text.match(day)?.[0]).toContain('value="2026-07-04"');
  });

  test('is filled in from the address, shows what it would do and writes nothing until it is confirmed', async () => {
    const form = await finance.get(`${VOID}?number=INV-2026-000001`);
    expect(form.text).toContain('value="INV-2026-000001"');
    const before = await counts();
    const preview = await finance.post(VOID, {
      number: 'INV-2026-000001',
      reason: 'wrong "price" & tax',
      step: 'preview',
    });
    expect(preview.status).toBe(200);
    expect(preview.text).toMatch(
      /INV-2026-000001<\/a><\/div><\/td><td data-label="Field"><div class="value"><span class="soft">Status.*open.*void/s,
    );
    expect(await counts()).toEqual(before);

    const done = await finance.post(VOID, { ...sentBack(preview), step: 'confirm' });
    expect([done.status, wordsOf(done).includes('INV-2026-000001 is void.')]).toEqual([200, true]);
    expect(
      await world.sql(
        `SELECT v.reason, personal(u.login) AS login, e.via FROM voids v JOIN audit_events e USING (event_id) JOIN users u USING (user_id)`,
      ),
    ).toEqual([{ reason: 'wrong "price" & tax', login: 'mara@issuer.example', via: 'console' }]);
  });

  test('refused by the rule of the command shows its sentence above what was filled in', async () => {
    const refused = await finance.post(VOID, { number: 'INV-2026-000001', reason: 'twice', step: 'preview' });
    expect(refused.status).toBe(422);
    expect(alertOf(refused)).toContain('INV-2026-000001');
    expect(refused.text).toContain('value="twice"');
    const unread = await finance.post(VOID, { number: 'INV-2026-000002', reason: '', step: 'preview' });
    expect([unread.status, alertOf(unread)]).toEqual([422, '“Reason” is missing.']);
  });

  test('that would do something else by now is not done, and shows what it would do', async () => {
    const path = '/console/actions/invoice.write_off';
    const preview = await finance.post(path, { number: 'INV-2026-000002', reason: 'small', step: 'preview' });
    const paid = { amount: '1.00', currency: 'USD', method: 'wire', receivedOn: '2026-08-01', reference: 'PART' };
    const payment = '/console/actions/payment.record';
    const shown = await finance.post(payment, { ...paid, number: 'INV-2026-000002', step: 'preview' });
    expect(alertOf(shown)).toBe('');
    expect((await finance.post(payment, { ...sentBack(shown), step: 'confirm' })).status).toBe(200);
    const before = await counts();
    const late = await finance.post(path, { ...sentBack(preview), step: 'confirm' });
    expect([late.status, late.text.includes('the figures of this preview changed before you confirmed it')]).toEqual([
      409,
      true,
    ]);
    expect(await counts()).toEqual(before);
  });

  test('whose fields do not go together is refused in the words of its form', async () => {
    const given = { amount: '1.00', currency: 'USD', method: 'wire', receivedOn: '2026-08-01', reference: 'PART' };
    const { text } = await finance.post('/console/actions/payment.record', { ...given, step: 'preview' });
    expect(text).toContain('give either “Invoice” or “Partner”');
    expect(text).not.toContain('--help');
  });

  test('confirmed without having been shown is shown first', async () => {
    const before = await counts();
    const blind = await finance.post('/console/actions/invoice.hold', {
      ...{ number: 'INV-2026-000002', reason: 'blind', step: 'confirm' },
    });
    expect(blind.status).toBe(409);
    expect(await counts()).toEqual(before);
  });
});

describe("a payment for another partner's invoice", () => {
  let paymentId: string;
  beforeAll(async () => {
    const receipt = { currency: 'USD', method: 'wire', receivedOn: '2026-08-01', reference: 'ACROSS', amount: '4.00' };
    const path = '/console/actions/payment.record';
    const shown = await finance.post(path, { ...receipt, partnerId: 'p-1', step: 'preview' });
    await finance.post(path, { ...sentBack(shown), step: 'confirm' });
    const rows = await world.sql<{ id: number }>(
      `SELECT payment_id AS id FROM payments WHERE personal(reference) = 'ACROSS'`,
    );
    paymentId = String(rows[0]?.id);
  });

  test('of four confirmations of one preview at the same moment, one is done', async () => {
    const path = '/console/actions/payment.apply';
    const fields = { paymentId, numbers: 'INV-2026-000002', amount: '1.00' };
    const shown = await finance.post(path, { ...fields, step: 'preview' });
    const confirm = () => finance.post(path, { ...sentBack(shown), step: 'confirm' });
    const answers = await Promise.all([confirm(), confirm(), confirm(), confirm()]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    const applied = `SELECT amount::text FROM payment_applications WHERE payment_id = $1`;
    expect(await world.sql(applied, [paymentId])).toEqual([{ amount: '1.00' }]);
  });

  test('is not taken back by whoever has only its payer', async () => {
    const narrowed = await signedIn(
      served,
      await invite(world, 'payer@issuer.example', { roles: ['finance'], partnerId: 'p-1' }),
    );
    for (const fields of [{ reason: 'wrong' }, { kind: 'returned', reason: 'R01' }]) {
      const action = 'kind' in fields ? 'reverse' : 'unapply';
      const refused = await narrowed.post(`/console/actions/payment.${action}`, {
        ...{ paymentId: String(paymentId), ...fields, step: 'preview' },
      });
      expect([action, refused.status, refused.text.includes('INV-2026-000002')]).toEqual([action, 422, false]);
      expect(alertOf(refused)).toContain('finance');
    }
  });
});

test('only a form reads the partners that it suggests, not its preview or confirmation', async () => {
  const asked: string[] = [];
  const { reading } = served.database;
  const listening: typeof reading = (work) =>
    reading((tx) =>
      work({
        ...tx,
        ask(statement) {
          asked.push(JSON.stringify(statement));
          return tx.ask(statement);
        },
      }),
    );
  const suggestions = () =>
    asked.splice(0).filter((each) => /ORDER BY lower\(name\).*"values":\[null/s.test(each)).length;
  Object.assign(served.database, { reading: listening });
  const path = '/console/actions/payment.record';
  const cash = { amount: '2.00', currency: 'USD', method: 'wire', receivedOn: '2026-08-01', reference: 'SUGGESTED' };
  const seen: number[] = [];
  await finance.get(path);
  seen.push(suggestions());
  const preview = await finance.post(path, { ...cash, partnerId: 'p-2', step: 'preview' });
  seen.push(suggestions());
  await finance.post(path, { ...sentBack(preview), step: 'confirm' });
  seen.push(suggestions());
  await finance.post(path, { ...sentBack(preview), step: 'edit' });
  seen.push(suggestions());
  Object.assign(served.database, { reading });
  expect(seen).toEqual([1, 0, 0, 1]);
});

test('an action that needs a second person leaves a request, which another one approves', async () => {
  const own = await serveConsole(world, { approvals: { 'invoice.hold': { always: true } } });
  const mara = await signedIn(own, await invite(world, 'mara@issuer.example'));
  const amy = await signedIn(own, await invite(world, 'amy@issuer.example', { roles: ['approver'] }));
  const hold = '/console/actions/invoice.hold';
  const shown = await mara.post(hold, { number: 'INV-2026-000002', reason: 'asked', step: 'preview' });
  const asked = await mara.post(hold, { ...sentBack(shown), step: 'confirm' });
  expect([asked.status, asked.text.includes('Approval requested: request 1')]).toEqual([200, true]);
  expect(asked.text).toContain('Nothing was changed');
  expect(await world.sql(`SELECT FROM holds WHERE reason = 'asked'`)).toEqual([]);

  const request = '/console/approvals/1';
  expect((await amy.get('/console/queue?queue=approvals')).text).toContain('requested by mara@issuer.example');
  expect((await mara.get(request)).text).toContain('Withdraw');
  // The request names its partner, and leads to all that it is about.
  const [of] = await world.sql(`SELECT p.name, partner_id FROM documents d JOIN partners p USING (partner_id)
                                WHERE d.number = 'INV-2026-000002'`);
  const { name, partner_id } = of as { name: string; partner_id: string };
  for (const page of [request, '/console/approvals']) {
    const { text } = await amy.get(page);
    expect(text).toContain(`href="/console/partners/${partner_id}">${name}</a>`);
    expect(text).toContain('href="/console/invoices/INV-2026-000002">INV-2026-000002</a>');
  }
  // What was asked for, not only which figures it changes.
  expect(wordsOf(await amy.get(request))).toContain('DocumentINV-2026-000002Reasonasked');
  expect((await mara.post(request, { decision: 'approve' })).text).toContain('request 1');
  expect((await amy.post(request, { decision: 'reject' })).text).toContain('is needed to reject');
  expect(await world.sql(`SELECT FROM approval_decisions`)).toEqual([]);
  const done = await amy.post(request, { decision: 'approve' });
  expect([done.status, done.text.includes('Done')]).toEqual([200, true]);
  expect(await world.sql(`SELECT FROM holds WHERE reason = 'asked'`)).toHaveLength(1);
  expect((await amy.get(request)).text).toContain('Approved by');
  await own.end();
});

describe('whoever may not', () => {
  test('has no form and no preview: a viewer, and finance of another partner', async () => {
    const viewer = await signedIn(served, await invite(world, 'vera@issuer.example', { roles: ['viewer'] }));
    expect((await viewer.get(VOID)).status).toBe(403);
    expect((await viewer.post(VOID, { number: 'INV-2026-000002', reason: 'x', step: 'preview' })).status).toBe(403);
    const other = await signedIn(
      served,
      await invite(world, 'one@issuer.example', { roles: ['finance'], partnerId: 'p-1' }),
    );
    const refused = await other.post(VOID, { number: 'INV-2026-000002', reason: 'x', step: 'preview' });
    expect([refused.status, refused.text.includes('Other Tickets')]).toEqual([422, false]);
  });
});

test.each([...ACTIONS.values()].map((action) => [action.name, action] as const))(
  '%s has a form with a label and a help for every field',
  async (name, action) => {
    const user = action.role === 'administrator' ? await signedIn(served, await invite(world, ADMINISTRATOR)) : finance;
    const { status, text } = await user.get(`/console/actions/${name}`);
    expect(status).toBe(200);
    const [{ fields } = { fields: Object.keys(action.input.shape) }] = Object.values(action.forms ?? {});
    for (const { name: field, help } of fieldsOf(action.input)) {
      if (fields.includes(field)) expect(text).toContain(`name="${field}"`);
      expect(help).not.toBe('');
    }
  },
);
