/** Settings that finance owns: what was adopted is in force, and the files on the server only propose changes. */
import { rmSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { runAction } from '../../src/actions/run.ts';
import { settingsAdopt } from '../../src/actions/settings.ts';
import { accountsFile } from '../../src/config/accounts.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import { SECTION_NAMES, type Section, type Settings } from '../../src/config/settings.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { isFileOlder, proposedByFiles, valueInForce } from '../../src/people/settings-in-force.ts';
import { identify } from '../../src/people/users.ts';
import { readReadiness } from '../../src/reports/readiness.ts';
import { foundBy } from '../audit/failing.ts';
import { refusalOf } from '../close/refusal.ts';
import { startOver } from '../close/start-over.ts';
import { readAgain } from '../support/adopting.ts';
import { LEE, MARA } from '../support/approving.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { readStatus } from '../support/status.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let first: Settings;
beforeAll(async () => {
  world = await openWorld();
  first = world.settings;
});
afterAll(() => world.end());
beforeEach(async () => {
  await startOver(world);
  world.settings = first;
  await world.partners([partner()]);
  await world.rows([quote()]);
});

const wire = firstSettings('sandbox').instructions?.['USD']?.wire as NonNullable<
  NonNullable<Settings['instructions'][string]>['wire']
>;
const MOVED: Settings['instructions'] = { USD: { wire: { ...wire, account_number: '987654321' } } };
const RETURNED: Settings['instructions'] = { USD: { wire: { ...wire, account_number: '5551212' } } };
const RULE: Settings['approvals'] = { 'settings.adopt.instructions': { always: true } };

async function delivered(): Promise<unknown> {
  await world.close();
  const [delivery] = await world.deliver();
  return delivery?.status === 'sent' ? printed() : delivery;
}
const printed = async () =>
  (
    await world.sql<{ number: string }>(
      `SELECT content->'wire'->>'account_number' AS number
       FROM document_pdfs JOIN instruction_versions USING (instruction_version_id) ORDER BY document_id`,
    )
  ).map(({ number }) => number);
const adoptions = () =>
  world.sql<{ subject: string; details: { changes: { field: string; old: unknown; new: unknown }[] } }>(
    `SELECT subject, details FROM audit_events WHERE action = 'settings.adopt' ORDER BY event_id`,
  );
const found = async (check: string) => foundBy(await world.verify(), check);
const file = (value: unknown) => ({ name: 'section.json', bytes: Buffer.from(JSON.stringify(value)) });

/** The context of a user's next command. */
async function by(login?: string) {
  await readAgain(world);
  const actor =
    login === undefined
      ? world.actor
      : await world.database.reading((tx) => identify(tx, world.actor, { login, unattended: false }));
  const context = { ...world, actor };
  await recordSettingsChanges(world.database, context);
  return context;
}
const adopt = async (section: Section, value?: unknown, login?: string) =>
  runAction(await by(login), settingsAdopt, { section, ...(value !== undefined && { file: file(value) }) });

async function staffed() {
  await invite(world, ADMINISTRATOR);
  await invite(world, MARA, { roles: ['administrator', 'finance', 'approver'] });
  await invite(world, LEE, { roles: ['approver'] });
}
async function requested(section: Section, value?: unknown) {
  const { code, facts } = await refusalOf(adopt(section, value, MARA));
  expect(code).toBe('approval_needed');
  return Number(facts['request_id']);
}
const approved = async (request: number) => approveRequest(await by(LEE), request, { reason: null, deliver: false });

/** Another value of each section. */
const OTHER: Readonly<Record<Section, unknown>> = {
  instructions: MOVED,
  approvals: { 'invoice.void': { above: { USD: '10.00' } } },
  tax: { from: '2027-01', rules: [{ category: 'standard', rate: '19', country: 'DE' }] },
  holds: { above: { USD: '250.00' }, times: '2.5' },
  reminders: [7, 21],
  reminder_minimum: { USD: '10.00' },
  small_difference: { USD: '5.00', percent: '1' },
  reversals: { above: { USD: '50.00' }, share: '0.25' },
  accounts: { accounts: [{ account: 'income:sales', to: '4000' }] },
};

test.each(SECTION_NAMES)(
  '%s: with one user, one command puts a proposal in force, in the history too',
  async (section) => {
    await adopt(section, OTHER[section]);
    const context = await by();
    expect(valueInForce(context, section)).toMatchObject(OTHER[section] as object);
    const [adopted] = await adoptions();
    expect(adopted).toMatchObject({ subject: section });
    // No command that follows finds another change of the settings.
    const changes = () => world.sql(`SELECT FROM audit_events WHERE action = 'settings.change'`);
    const before = (await changes()).length;
    await by();
    expect(await changes()).toHaveLength(before);
    expect(await refusalOf(adopt(section, OTHER[section]))).toMatchObject({ code: 'settings_unchanged' });
    expect(await world.verify()).toMatchObject({ differences: 0 });
  },
);

test.each(SECTION_NAMES)('%s: a file that differs is not in force, and is named', async (section) => {
  await adopt(section, OTHER[section]);
  if (section === 'accounts') {
    writeFileSync(accountsFile(world.environment), '{"accounts": [{"account": "income:sales", "to": "5000"}]}');
  }
  const changed = {
    ...first,
    instructions: RETURNED,
    tax: null,
    holds: { above: {}, times: '9' },
    reminders: [1],
    reminder_minimum: { USD: '9.00' },
  };
  await readAgain(world, section === 'accounts' ? {} : { [section]: changed[section] });
  const { attention } = await world.database.reading((tx) => readStatus(tx, world));
  expect(attention).toContainEqual(expect.stringMatching(/on the server are not in force: .* instead of /));
  const { missing } = await world.database.reading((tx) => readReadiness(tx, world));
  expect(missing).toContainEqual(expect.objectContaining({ scope: 'settings', id: section }));
  rmSync(accountsFile(world.environment), { force: true });
});

test('a section that the file leaves out proposes nothing', async () => {
  await adopt('holds', OTHER.holds);
  await by();
  const { missing } = await world.database.reading((tx) => readReadiness(tx, world));
  expect(missing.map(({ id }) => id)).not.toContain('holds');
  expect(await refusalOf(adopt('holds'))).toMatchObject({ code: 'proposal_missing' });
});

test('a proposal is refused with the fields that are wrong', async () => {
  expect(await refusalOf(adopt('holds', { above: { USD: '-1' } }))).toMatchObject({
    code: 'proposal_invalid',
    facts: { problems: [{ path: 'above.USD', reason: 'is below zero' }] },
  });
  expect(await refusalOf(adopt('approvals', { 'invoice.paint': {} }))).toMatchObject({ code: 'proposal_invalid' });
  expect(
    await refusalOf(adopt('accounts', { accounts: [{ account: 'x', partner: 'p-none', to: '1' }] })),
  ).toMatchObject({
    code: 'accounts_invalid',
  });
});

test('finance adopts its own sections, and only an administrator bank details and approval rules', async () => {
  await invite(world, ADMINISTRATOR);
  await invite(world, MARA, { roles: ['finance'] });
  await adopt('holds', OTHER.holds, MARA);
  for (const section of ['instructions', 'approvals'] as const) {
    expect(await refusalOf(adopt(section, OTHER[section], MARA))).toMatchObject({ code: 'role_needed' });
  }
  expect(await found('act_in_role')).toEqual([]);
});

describe('approval rules', () => {
  const RULES: Settings['approvals'] = {
    'payment.reverse': { always: true },
    'invoice.void': { above: { USD: '10.00' } },
  };
  test.each<[what: string, proposed: object, weaker: boolean]>([
    ['a rule taken out', { 'invoice.void': { above: { USD: '10.00' } } }, true],
    ['a higher limit', { ...RULES, 'invoice.void': { above: { USD: '10.01' } } }, true],
    ['a limit in another currency', { ...RULES, 'invoice.void': { above: { USD: '10.00', EUR: '1.00' } } }, true],
    ['a limit for any amount', { ...RULES, 'payment.reverse': { above: { USD: '0' } } }, true],
    ['a lower limit', { ...RULES, 'invoice.void': { above: { USD: '9.00' } } }, false],
    ['any amount', { ...RULES, 'invoice.void': {} }, false],
    ['another rule', { ...RULES, 'credit.refund': {} }, false],
  ])('%s', async (_what, proposed, weaker) => {
    await staffed();
    await adopt('approvals', RULES, MARA);
    if (!weaker) await adopt('approvals', proposed, MARA);
    else {
      const request = await requested('approvals', proposed);
      expect((await by()).settings.approvals).toEqual(RULES);
      await approved(request);
    }
    expect(Object.keys((await by()).settings.approvals).sort()).toEqual(Object.keys(proposed).sort());
    expect(await world.verify()).toMatchObject({ differences: 0 });
    // An export shows whether a second person approved it.
    await world.sql(GUARDS_OFF);
    await world.sql(`UPDATE audit_events SET details = details - 'approval' WHERE action = 'settings.adopt'`);
    await world.sql(GUARDS_ON);
    expect((await found('act_needed_approval')).length > 0).toBe(weaker);
  });

  test('a file without the rule takes nothing out', async () => {
    await staffed();
    await adopt('approvals', RULES, MARA);
    await readAgain(world, { approvals: {} });
    expect(world.settings.approvals).toEqual(RULES);
    await approved(await requested('approvals'));
    expect((await by()).settings.approvals).toEqual({});
  });
});

describe('bank details', () => {
  test('the first delivery adopts those of the file; after that, a changed file changes no document', async () => {
    expect(await delivered()).toEqual([wire.account_number]);
    expect(await adoptions()).toHaveLength(1);
    await readAgain(world, { instructions: MOVED });
    world.at('2026-09-02T10:00:00Z');
    await world.rows([quote({ accepted_at: '2026-08-10T10:00:00Z' })]);
    expect(await delivered()).toEqual([wire.account_number, wire.account_number]);
    await adopt('instructions');
    const [, second] = await adoptions();
    expect(second?.details.changes).toContainEqual({
      ...{ field: 'instructions.USD.wire.account_number', old: wire.account_number, new: '987654321' },
    });
    expect(await found('bank_details_in_force')).toEqual([]);
  });

  test('with a rule, nothing is printed before the first adoption, and the hold says what to do', async () => {
    await readAgain(world, { approvals: RULE });
    expect(await delivered()).toMatchObject({
      status: 'held',
      detail: expect.stringContaining('adopt those of settings.json'),
    });
    expect(await adoptions()).toEqual([]);
  });

  test('with a rule, a second person sees old and new beside each other, and puts them in force', async () => {
    await delivered();
    await staffed();
    await readAgain(world, { approvals: RULE, instructions: MOVED });
    const request = await requested('instructions');
    const [asked] = await world.sql<{ preview: { changes: object[]; text: string } }>(
      'SELECT preview FROM approval_requests',
    );
    expect(asked?.preview.changes).toContainEqual({
      ...{ of: 'Bank details', field: 'instructions.USD.wire.account_number' },
      ...{ before: wire.account_number, after: '987654321' },
    });
    expect(asked?.preview.text).toMatch(new RegExp(`${wire.account_number} +987654321`));
    // Whoever edits the file once more has not got that approved.
    await readAgain(world, { instructions: { USD: { wire: { ...wire, account_number: '666' } } } });
    expect(await refusalOf(approved(request))).toMatchObject({ code: 'approval_outdated' });
    await readAgain(world, { instructions: MOVED });
    await approved(request);
    expect((await by()).settings.instructions).toEqual(JSON.parse(JSON.stringify(MOVED)));
    expect(await refusalOf(adopt('instructions', undefined, MARA))).toMatchObject({ code: 'settings_unchanged' });
    expect(await found('actions_approved')).toEqual([]);
  });

  test('that are not in force are printed by no PDF, and verify names one that was forged', async () => {
    await delivered();
    const forged = `WITH other AS (
        INSERT INTO instruction_versions (currency, content, first_used_at)
        SELECT currency, jsonb_set(content, '{wire,account_number}', '"666"'), now() FROM instruction_versions
        RETURNING instruction_version_id)
      INSERT INTO document_pdfs (document_id, renderer_version, libraries, instruction_version_id, instructions_changed,
                                 sha256, pdf, rendered_at)
      SELECT document_id, 1, '{}', other.instruction_version_id, false, encode(sha256('x'), 'hex'), 'x', now()
      FROM documents CROSS JOIN other`;
    await expect(world.sql(forged)).rejects.toThrow(/are not in force/);
    await world.sql(GUARDS_OFF);
    await world.sql(`UPDATE audit_events SET details = jsonb_set(details, '{value,USD,wire,account_number}', '"1"')
                     WHERE action = 'settings.adopt'`);
    await world.sql(GUARDS_ON);
    const details = (await found('bank_details_in_force')).map(({ detail }) => detail);
    expect(details).toEqual([
      expect.stringContaining(`field wire.account_number, printed ${wire.account_number}`),
      expect.stringMatching(/field wire\.account_number, printed –, adopted 1$/),
    ]);
  });
});

test('a file that still states what an adoption replaced proposes nothing, until it changes', async () => {
  await readAgain(world, { holds: { above: {}, times: '3' } });
  await runAction(world, settingsAdopt, { section: 'holds', file: file(OTHER.holds) });
  await readAgain(world, { holds: { above: {}, times: '3' } });
  expect(proposedByFiles(world)).toEqual([]);
  expect(isFileOlder(world, 'holds')).toBe(true);
  await readAgain(world, { holds: { above: {}, times: '4' } });
  expect(proposedByFiles(world)).toMatchObject([{ section: 'holds' }]);
  expect(isFileOlder(world, 'holds')).toBe(false);
});
