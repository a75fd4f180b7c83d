/** kill -9 of a server in the middle of acceptances that it does together: each is recorded whole, or not at all. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FAILPOINTS } from '../support/failpoints.ts';
import { PRICED } from '../support/service.ts';
import { someOf, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { prepareServing, type Serving } from './serving.ts';

let world: World;
let serving: Serving;

beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED)]);
  serving = await prepareServing(world);
});
afterAll(async () => {
  serving.end();
  await world.end();
});

// The first request to pass may have started before the others arrived, so the second passing is killed, too.
const PASSINGS = FAILPOINTS.filter((each) => each.startsWith('accept.')).flatMap((each) => [each, `${each}:2`]);
for (const failpoint of someOf(PASSINGS, times({ few: 2, short: 3, long: PASSINGS.length }))) {
  test(`twenty acceptances killed at ${failpoint} and repeated are in the ledger once each`, async () => {
    const doomed = await serving.serve(failpoint);
    const ids: string[] = [];
    for (let nth = 0; nth < 20; nth += 1) {
      const body = { policy_id: 'ticket-protection', insured_amount: '250' };
      ids.push((await doomed.caller.post('/api/v1/quote', body)).body['quote_id'] as string);
    }
    const exited = once(doomed.child, 'exit');
    const answers = await Promise.all(
      ids.map((id) => doomed.caller.get(`/api/v1/quote/${id}/accept`).catch(() => undefined)),
    );
    expect(await exited).toEqual([null, 'SIGKILL']);
    const first = await rowsOf(ids);
    // No acceptance is half recorded, and every confirmed one is recorded.
    expect(first.filter(({ accepted }) => !accepted)).toEqual([]);
    const told = ids.filter((_, index) => answers[index]?.status === 200);
    expect(first.map(({ quote_id }) => quote_id)).toEqual(expect.arrayContaining(told));

    const { child, caller } = await serving.serve();
    const again = await Promise.all(ids.map((id) => caller.get(`/api/v1/quote/${id}/accept`)));
    expect(again.map(({ status }) => status)).toEqual(ids.map(() => 200));
    const rows = await rowsOf(ids);
    expect(rows.map(({ quote_id }) => quote_id)).toEqual([...ids].sort());
    expect(rows.map(({ enrollment_id }) => enrollment_id).sort()).toEqual(
      again.map(({ body }) => body['enrollment_id']).sort(),
    );
    // What was recorded before the kill is what is answered after it.
    const kept = new Map(rows.map(({ quote_id, enrollment_id }) => [quote_id, enrollment_id]));
    for (const { quote_id, enrollment_id } of first) expect(kept.get(quote_id)).toBe(enrollment_id);
    child.kill('SIGKILL');
    tally('kills survived', 'of acceptances under way', 1);
  });
}

test('every check of verify passes afterwards', async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
});

const rowsOf = (ids: readonly string[]) =>
  world.sql<{ quote_id: string; enrollment_id: string; accepted: boolean }>(
    `SELECT e.quote_id, e.enrollment_id, a.quote_id IS NOT NULL AS accepted
     FROM ledger_rows e LEFT JOIN quote_acceptances a USING (partner_id, posted_month, entry_id)
     WHERE e.quote_id = ANY ($1) ORDER BY e.quote_id COLLATE "C"`,
    [ids],
  );
