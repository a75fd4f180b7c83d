/** Our bank details: what documents print is what was put in force, and where a rule says so, by two persons. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { instructionsAdopt } from '../../src/actions/instructions.ts';
import { runAction } from '../../src/actions/run.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import { settingsInForce } from '../../src/documents/instructions.ts';
import { readReadiness } from '../../src/reports/readiness.ts';
import { foundBy } from '../audit/failing.ts';
import { refusalOf } from '../close/refusal.ts';
import { startOver } from '../close/start-over.ts';
import { as, LEE, MARA } from '../support/approving.ts';
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

const RULE: Settings['approvals'] = { 'instructions.adopt': { always: true } };
const wire = firstSettings('sandbox').instructions['USD']?.wire as NonNullable<
  NonNullable<Settings['instructions'][string]>['wire']
>;
const MOVED: Settings['instructions'] = { USD: { wire: { ...wire, account_number: '987654321' } } };

/** The settings of the next command: what the file says, and what is in force. */
async function withFile(change: Partial<Settings>): Promise<void> {
  world.settings = await settingsInForce(world.database, { ...first, ...change });
}
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
  world.sql<{ user_id: string | null; details: { changes: { field: string; old: string | null; new: string }[] } }>(
    `SELECT user_id, details FROM audit_events WHERE action = 'instructions.adopt' ORDER BY event_id`,
  );
const found = async (check: string) => foundBy(await world.verify(), check);

test('without a rule the file takes effect by itself, when documents first print it, with an event', async () => {
  expect(await delivered()).toEqual([wire.account_number]);
  expect(await adoptions()).toHaveLength(1);
  await withFile({ instructions: MOVED });
  world.at('2026-09-02T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T10:00:00Z' })]);
  expect(await delivered()).toEqual([wire.account_number, '987654321']);
  const [, second] = await adoptions();
  expect(second?.details.changes).toContainEqual({
    ...{ field: 'USD.wire.account_number', old: wire.account_number, new: '987654321' },
  });
  expect(await found('bank_details_in_force')).toEqual([]);
});

describe('with a rule', () => {
  test('nothing is printed before the first adoption, and the hold says what to do', async () => {
    await withFile({ approvals: RULE });
    expect(await delivered()).toMatchObject({
      status: 'held',
      detail: expect.stringContaining('adopt those of settings.json'),
    });
    expect(await adoptions()).toEqual([]);
  });

  test('documents go on with the details in force, and status and the settings name what is not', async () => {
    await delivered();
    await withFile({ approvals: RULE, instructions: MOVED });
    world.at('2026-09-02T10:00:00Z');
    await world.rows([quote({ accepted_at: '2026-08-10T10:00:00Z' })]);
    expect(await delivered()).toEqual([wire.account_number, wire.account_number]);
    const { attention } = await world.database.reading((tx) => readStatus(tx, world));
    expect(attention).toContainEqual(
      expect.stringMatching(/Bank details in settings.json are not in force: .*USD.wire.account_number/),
    );
    const { missing } = await world.database.reading((tx) => readReadiness(tx, world));
    expect(missing).toContainEqual(expect.objectContaining({ scope: 'settings', id: 'instructions' }));
    expect(await found('bank_details_in_force')).toEqual([]);
  });

  test('a second person sees old and new beside each other, and puts them in force', async () => {
    await delivered();
    await invite(world, ADMINISTRATOR);
    await invite(world, MARA, { roles: ['administrator', 'approver'] });
    await invite(world, LEE, { roles: ['approver'] });
    await withFile({ approvals: RULE, instructions: MOVED });
    const asking = await as(world, MARA, RULE);
    const { code, facts } = await refusalOf(runAction(asking, instructionsAdopt, {}));
    expect(code).toBe('approval_needed');
    const request = Number(facts['request_id']);
    const [asked] = await world.sql<{ preview: { changes: object[]; text: string } }>(
      'SELECT preview FROM approval_requests',
    );
    expect(asked?.preview.changes).toContainEqual({
      ...{ of: 'bank details', field: 'USD.wire.account_number', before: wire.account_number, after: '987654321' },
    });
    expect(asked?.preview.text).toMatch(new RegExp(`${wire.account_number} +987654321`));
    // Whoever edits the file once more has not got that approved.
    const other = { USD: { wire: { ...wire, account_number: '666' } } };
    await withFile({ approvals: RULE, instructions: other });
    const options = { reason: null, deliver: false };
    expect(await refusalOf(approveRequest(await as(world, LEE, RULE), request, options))).toMatchObject({
      code: 'approval_outdated',
    });
    await withFile({ approvals: RULE, instructions: MOVED });
    await approveRequest(await as(world, LEE, RULE), request, options);
    await withFile({ approvals: RULE, instructions: MOVED });
    expect(world.settings.instructions).toEqual(JSON.parse(JSON.stringify(MOVED)));
    expect(await refusalOf(runAction(await as(world, MARA, RULE), instructionsAdopt, {}))).toMatchObject({
      code: 'instructions_unchanged',
    });
    expect(await found('actions_approved')).toEqual([]);
  });
});

test('details that are not in force are printed by no PDF, and verify names one that was forged', async () => {
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
  await world.sql(`UPDATE audit_events SET details = jsonb_set(details, '{instructions,USD,wire,account_number}', '"1"')
                   WHERE action = 'instructions.adopt'`);
  await world.sql(GUARDS_ON);
  const details = (await found('bank_details_in_force')).map(({ detail }) => detail);
  expect(details).toEqual([
    expect.stringContaining(`field wire.account_number, printed ${wire.account_number}`),
    expect.stringMatching(/field wire\.account_number, printed –, adopted 1$/),
  ]);
});
