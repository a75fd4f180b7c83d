/** Partners are changed by forms where they are read, one part at a time, by the rules of the partner file. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { partnerChange } from '../../src/actions/partner-change.ts';
import { reminderPause } from '../../src/actions/reminder-pause.ts';
import { runAction } from '../../src/actions/run.ts';
import { readPartners } from '../../src/partners/partners.sql.ts';
import { identify } from '../../src/people/users.ts';
import { failing } from '../audit/failing.ts';
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
  await world.partners([
    partner({ name: 'Northgate Arena' }),
    partner({ partner_id: 'p-2', name: 'Other Tickets' }),
    partner({ partner_id: 'p-3', name: 'other tickets' }),
  ]);
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
  finance = await signedIn(served, await invite(world, 'mara@issuer.example', { roles: ['finance'] }));
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const CHANGE = '/console/actions/partner.change';
const stored = async (id = 'p-1') => (await world.database.reading((tx) => readPartners(tx, id)))[0];
const policy = async () => (await stored())?.policies.find(({ policy_id }) => policy_id === 'ticket-protection');
/** The fields of the page's form with their values, as a browser sends them. */
function fieldsOf({ text }: Page): Record<string, string> {
  const html = text.replace(/[\s\S]*<main/, '<main');
  const inputs = [...html.matchAll(/<input([^>]*)>/g)].map(([, tag = '']) => [
    /name="([^"]*)"/.exec(tag)?.[1] ?? '',
    /value="([^"]*)"/.exec(tag)?.[1] ?? '',
  ]);
  const selects = [...html.matchAll(/<select[^>]*name="([^"]*)"[^>]*>([\s\S]*?)<\/select>/g)].map(
    ([, name = '', options = '']) => [
      name,
      /value="([^"]*)" selected|selected[^>]*value="([^"]*)"/.exec(options)?.[1] ?? '',
    ],
  );
  const texts = [...html.matchAll(/<textarea[^>]*name="([^"]*)"[^>]*>([\s\S]*?)<\/textarea>/g)].map(
    ([, name = '', value = '']) => [name, value],
  );
  const given = [...inputs, ...selects, ...texts].filter(([name]) => name !== '' && name !== 'form_token');
  // A field with several values has spare inputs, which are empty.
  return Object.fromEntries(given.toReversed());
}
const changed = async (question: string, change: Readonly<Record<string, string>>) => {
  const form = await finance.get(`${CHANGE}?${question}`);
  const preview = await finance.post(CHANGE, { ...fieldsOf(form), ...change, step: 'preview' });
  return { form, preview };
};

describe('a form of a partner', () => {
  test('marks the few fields that must be filled in, and says so once', async () => {
    const { text } = await finance.get(`${CHANGE}?section=new`);
    const labels = [...text.matchAll(/([^>]*)<span class="count"> required<\/span>/g)].map(([, label]) => label);
    expect(labels).toEqual(['Partner', 'Name', 'Currency', 'Time zone']);
    expect(text.match(/Only the fields marked as required/g)).toHaveLength(1);
    expect(text).not.toContain(' optional<');
  });

  test('is filled with what is in force, and its preview has the old value beside the new one', async () => {
    await world.partners([partner({ name: 'Northgate Arena', legal_note: 'one\ntwo', payment_terms_days: 14 })]);
    const { form, preview } = await changed('partnerId=p-1&section=terms', { paymentTermsDays: '30' });
    expect(fieldsOf(form)).toMatchObject({ paymentTermsDays: '14', legalNote: 'one\ntwo', partnerId: 'p-1' });
    expect(form.text).not.toContain('name="line1"');
    expect(preview.text).toMatch(
      /Days to pay<\/span>.*data-label="Now"><div class="value">14<.*data-label="Then"><div class="value"><strong>30</,
    );
    expect(wordsOf(preview)).not.toContain('legal note');
    const done = await finance.post(CHANGE, { ...fieldsOf(preview), step: 'confirm' });
    expect([done.status, alertOf(done)]).toEqual([200, '']);
    expect(await stored()).toMatchObject({ payment_terms_days: 30, legal_note: 'one\ntwo' });
  });

  test('asks a second person, who sees the partner by its name', async () => {
    const ruled = await serveConsole(world, { approvals: { 'partner.import': { always: true } } });
    const own = await signedIn(ruled, await invite(world, 'mara@issuer.example'));
    const lee = await signedIn(ruled, await invite(world, 'lee@issuer.example', { roles: ['approver'] }));
    const form = await own.get(`${CHANGE}?partnerId=p-1&section=address`);
    const preview = await own.post(CHANGE, { ...fieldsOf(form), city: 'Hoboken', step: 'preview' });
    const [, id] = /Approval requested: request (\d+)/.exec(
      (await own.post(CHANGE, { ...fieldsOf(preview), step: 'confirm' })).text,
    ) as unknown as [string, string];
    const request = await lee.get(`/console/approvals/${id}`);
    expect(request.text).toContain('href="/console/partners/p-1">Northgate Arena</a>');
    expect(wordsOf(request)).toContain('Change a partner: Northgate Arena');
    expect(wordsOf(request)).toMatch(/City.*Hoboken/);
    expect((await lee.get('/console/approvals')).text).toContain('href="/console/partners/p-1">Northgate Arena</a>');
    await own.post(`/console/approvals/${id}`, { decision: 'withdraw' });
    await ruled.end();
  });

  test('that was opened before someone else changed the partner does not take that change back', async () => {
    const form = fieldsOf(await finance.get(`${CHANGE}?partnerId=p-1&section=terms`));
    const other = await changed('partnerId=p-1&section=terms', { purchaseOrder: 'A-1' });
    await finance.post(CHANGE, { ...fieldsOf(other.preview), step: 'confirm' });
    const late = await finance.post(CHANGE, { ...form, paymentTermsDays: '45', step: 'preview' });
    expect([late.status, alertOf(late)]).toEqual([409, expect.stringContaining('opened before someone changed')]);
    expect(fieldsOf(late)).toMatchObject({ purchaseOrder: 'A-1', paymentTermsDays: '30' });
  });

  test('clears a field that is left empty, and keeps the fields of the other forms', async () => {
    const { preview } = await changed('partnerId=p-1&section=contact', {
      contactName: '',
      contactCc: 'copy@x.example',
    });
    await finance.post(CHANGE, { ...fieldsOf(preview), step: 'confirm' });
    const { invoicing_contact: contact, payment_terms_days } = (await stored()) ?? {};
    expect([contact?.name, contact?.cc, payment_terms_days]).toEqual(['', ['copy@x.example'], 30]);
  });

  test('refuses by the rules of the file, and names the field', async () => {
    const { preview } = await changed('partnerId=p-1&section=address', { country: 'Germany' });
    expect([preview.status, alertOf(preview)]).toEqual([422, '“Country” must be an ISO 3166 code such as US.']);
    expect(fieldsOf(preview)).toMatchObject({ partnerId: 'p-1', country: 'Germany' });
  });

  test('changes the cut of a policy from a day on, which must be said', async () => {
    const question = 'partnerId=p-1&policyId=ticket-protection&section=rate';
    const without = await changed(question, { rate: '0.25' });
    expect(alertOf(without.preview)).toBe('“Cut from” is missing: the first day of the change.');
    const { form, preview } = await changed(question, { rate: '0.25', rateFrom: '2027-01-01' });
    expect(fieldsOf(form)).toMatchObject({ rate: '0.30', rateFrom: '' });
    await finance.post(CHANGE, { ...fieldsOf(preview), step: 'confirm' });
    expect((await policy())?.partner_cut_rate).toEqual([{ rate: '0.30' }, { from: '2027-01-01', rate: '0.25' }]);
  });

  test('gives a policy cancellation terms from a day on', async () => {
    const terms = { termsFrom: '2027-01-01', windowDays: '14', afterWindow: 'pro_rata', cut: 'in_proportion' };
    const { preview } = await changed('partnerId=p-1&policyId=ticket-protection&section=cancellation', terms);
    await finance.post(CHANGE, { ...fieldsOf(preview), step: 'confirm' });
    expect((await policy())?.cancellation).toMatchObject([{ from: '2027-01-01', window_days: 14 }]);
  });

  test('adds a partner, but none whose id is known', async () => {
    const given = { partnerId: 'p-9', name: 'New Hall', currency: 'USD', timeZone: 'America/New_York' };
    const { preview } = await changed('', given);
    expect(alertOf(preview)).toBe('');
    await finance.post(CHANGE, { ...fieldsOf(preview), step: 'confirm' });
    expect(await stored('p-9')).toMatchObject({ name: 'New Hall', policies: [] });
    const again = await changed('', given);
    expect(alertOf(again.preview)).toBe('“Partner” is the id of a known partner.');
  });

  test('is linked from each part of the pages', async () => {
    const pages = [await finance.get('/console/partners/p-1'), await finance.get('/console/partners/p-1/terms')];
    const sections = pages.flatMap(({ text }) => [...text.matchAll(/partner\.change\?[^"]*section=(\w+)/g)]);
    const names = Object.keys(partnerChange.forms ?? {}).filter((name) => name !== 'new');
    expect(new Set(sections.map(([, name]) => name))).toEqual(new Set(names));
  });
});

test('the approval rule of the import applies to a change, whose approval carries it out', async () => {
  for (const [login, role] of [
    ['lee@issuer.example', 'approver'],
    ['kim@issuer.example', 'finance'],
  ] as const) {
    await invite(world, login, { roles: [role] });
  }
  const settings = { ...world.settings, approvals: { 'partner.import': { always: true } as const } };
  const as = (login: string) =>
    world.database.reading(async (tx) => ({
      ...{ ...world, settings },
      actor: await identify(tx, world.actor, { login, unattended: false }),
    }));
  const given = { partnerId: 'p-2', taxId: 'TAX-9' };
  const refused = await runAction(await as('kim@issuer.example'), partnerChange, given).catch((error) => error);
  expect(refused).toMatchObject({ code: 'approval_needed' });
  expect((await stored('p-2'))?.tax_id).toBe('');
  const approver = await as('lee@issuer.example');
  await approveRequest(approver, refused.facts.request_id, { reason: 'checked' });
  expect((await stored('p-2'))?.tax_id).toBe('TAX-9');
  await world.rows([quote()]);
  await world.close();
  expect(failing(await world.verify())).toEqual([]);
});

describe('a partner may be named by its name', () => {
  const mara = () =>
    world.database.reading((tx) => identify(tx, world.actor, { login: 'mara@issuer.example', unattended: false }));
  const paused = async (partnerId: string) =>
    runAction({ ...world, actor: await mara() }, reminderPause, { partnerId, until: '2027-01-31', reason: 'agreed' });

  test('in any case, if no other has it', async () => {
    expect(await paused('northgate ARENA')).toMatchObject({ json: { partner_id: 'p-1' } });
  });

  test('but a name of several is refused with their ids', async () => {
    await expect(paused('Other Tickets')).rejects.toThrow(
      "partner 'Other Tickets' is the name of 2 partners: p-2, p-3. Enter the id of one.",
    );
    await expect(paused('Nobody')).rejects.toMatchObject({ code: 'partner_unknown' });
  });

  test('in a list, whose filter suggests the partners', async () => {
    const page = await finance.get('/console/invoices?partner=Northgate+Arena');
    expect(page.status).toBe(200);
    expect(page.text).toContain('<option value="p-1">Northgate Arena</option>');
  });
});
