/** kill -9 in the middle of reversals, requests and decisions: each is done or not, and asked again it has one result. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Publisher } from '../../src/partner-events/publish.ts';
import { FAILPOINTS } from '../support/failpoints.ts';
import { type Ran, reckoner } from '../support/program.ts';
import { PRICED } from '../support/service.ts';
import { someOf, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { prepareServing, type Serving } from './serving.ts';

const NOW = '2026-08-03T10:00:00Z';
/** Our whole share, while the partner keeps its cut: no rule allows it without terms. */
const SHARE_ALONE = { spotPrice: '-7.00', partnerCut: '0.00', invoiceAmount: '-7.00' };

let world: World;
let serving: Serving;
beforeAll(async () => {
  world = await openWorld();
  world.at(NOW);
  await world.partners([partner(PRICED)]);
  serving = await prepareServing(world, { RECKONER_NOW: NOW });
});
afterAll(async () => {
  serving.end();
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await world.end();
});

let sales = 0;
/** A sale of 10.00 = 3.00 + 7.00, ten days ago. */
async function sale(): Promise<string> {
  sales += 1;
  const quote_id = `q-killed-${sales}`;
  await world.rows([quote({ quote_id, accepted_at: '2026-07-24T12:00:00Z' })]);
  return quote_id;
}
const stateOf = async (quoteId: string) =>
  (
    await world.sql(
      `SELECT (SELECT count(*)::int FROM ledger_rows WHERE quote_id = $1 AND kind = 'reversal') AS recorded,
              (SELECT count(*)::int FROM reversal_grounds WHERE quote_id = $1) AS grounds,
              (SELECT count(*)::int FROM held_rows WHERE quote_id = $1) AS held,
              (SELECT count(*)::int FROM undecided_rows WHERE quote_id = $1) AS undecided`,
      [quoteId],
    )
  )[0];
const NOTHING = { recorded: 0, grounds: 0, held: 0, undecided: 0 };

const IMPORT = FAILPOINTS.filter((each) => each.startsWith('import.') && each !== 'import.committed');
const CALLS = IMPORT.flatMap((failpoint) => [
  { failpoint, what: 'a reversal', amounts: {}, status: 201, after: { ...NOTHING, recorded: 1, grounds: 1 } },
  { failpoint, what: 'a request', amounts: SHARE_ALONE, status: 202, after: { ...NOTHING, held: 1, undecided: 1 } },
]);
for (const { failpoint, what, amounts, status, after } of someOf(
  CALLS,
  times({ few: 2, short: 4, long: CALLS.length }),
)) {
  test(`${what} by API that is killed at ${failpoint} and sent again is recorded once`, async () => {
    const quoteId = await sale();
    const body = { reversal_id: `refund-of-${quoteId}`, ...amounts };
    const path = `/api/v1/quote/${quoteId}/reverse`;
    const doomed = await serving.serve(failpoint);
    const exited = once(doomed.child, 'exit');
    expect(await doomed.caller.post(path, body).catch(() => 'no answer')).toBe('no answer');
    expect(await exited).toEqual([null, 'SIGKILL']);
    expect(await stateOf(quoteId)).toEqual(NOTHING);
    const { child, caller } = await serving.serve();
    const [one, other] = [await caller.post(path, body), await caller.post(path, body)];
    expect([one.status, other.status, other.text]).toEqual([status, status, one.text]);
    expect(await stateOf(quoteId)).toEqual(after);
    child.kill('SIGKILL');
    tally('kills survived', 'of reversals by API', 1);
  });
}

const reckon = (args: readonly string[], failpoint?: string): Promise<Ran> =>
  reckoner(['--json', ...args], {
    env: {
      ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: NOW },
      ...(failpoint && { RECKONER_FAILPOINT: failpoint }),
    },
  });
const GRANTED = { recorded: 1, grounds: 1, held: 1, undecided: 0 };
const REFUSED = { ...GRANTED, recorded: 0, grounds: 0 };
const OPEN = { ...NOTHING, held: 1, undecided: 1 };
const OF_DECISIONS = FAILPOINTS.filter((each) => each.startsWith('reversal.'));
const DECISIONS = [
  ...[...IMPORT, ...OF_DECISIONS].map((failpoint) => ({ failpoint, verb: 'grant', decided: GRANTED, status: 201 })),
  ...OF_DECISIONS.map((failpoint) => ({ failpoint, verb: 'refuse', decided: REFUSED, status: 202 })),
];
for (const { failpoint, verb, decided, status } of someOf(
  DECISIONS,
  times({ few: 3, short: 5, long: DECISIONS.length }),
)) {
  test(`a ${verb} that is killed at ${failpoint} and repeated decides once`, async () => {
    const quoteId = await sale();
    const { child, caller } = await serving.serve();
    const body = { reversal_id: `refund-of-${quoteId}`, ...SHARE_ALONE };
    const ask = () => caller.post(`/api/v1/quote/${quoteId}/reverse`, body);
    const { request_id } = (await ask()).body;
    const args = ['reversal', verb, String(request_id), '--reason', 'as agreed'];
    expect((await reckon(args, failpoint)).signal).toBe('SIGKILL');
    const isDone = failpoint.endsWith('.committed');
    expect(await stateOf(quoteId)).toEqual(isDone ? decided : OPEN);
    const again = await reckon(args);
    expect({ status: again.status, stdout: again.stdout }).toMatchObject({
      status: isDone ? 3 : 0,
      ...(isDone && { stdout: expect.stringContaining('held_row_decided') }),
    });
    expect(await stateOf(quoteId)).toEqual(decided);
    expect((await ask()).status).toBe(status);
    await new Publisher(world.database).publish(10_000);
    const told = (await caller.get('/api/v1/events?limit=100')).body as unknown;
    const events = (told as { type: string; data: { quote_id?: string } }[]).filter(
      ({ type, data }) => type.startsWith('reversal.') && data.quote_id === quoteId,
    );
    expect(events.map(({ type }) => type)).toEqual([verb === 'grant' ? 'reversal.recorded' : 'reversal.rejected']);
    child.kill('SIGKILL');
    tally('kills survived', 'of decisions about reversals', 1);
  });
}
