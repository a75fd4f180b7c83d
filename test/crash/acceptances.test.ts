/** kill -9 of a server in the middle of acceptances that it does together: each is recorded whole, or not at all. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { FAILPOINTS } from '../../src/failpoint.ts';
import type { Credentials } from '../../src/partners/clients.ts';
import { compiled, reckoner } from '../support/program.ts';
import { callerWith, PRICED } from '../support/service.ts';
import { someOf, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let credentials: Credentials;
const children: ChildProcess[] = [];
const env = () => ({ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl });

beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(PRICED)]);
  credentials = (await reckoner(['--json', 'client', 'create', 'p-1'], { env: env() })).json() as Credentials;
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await world.end();
});

async function serve(failpoint?: string) {
  const child = spawn(process.execPath, [compiled('src/cli/reckoner.js'), '--json', 'serve', '--port', '0'], {
    env: { ...process.env, ...env(), ...(failpoint && { RECKONER_FAILPOINT: failpoint }) },
  });
  children.push(child);
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  const { listening } = JSON.parse(said.toString()) as { listening: string };
  return { child, caller: await callerWith(listening, credentials) };
}

// The first request to pass may have started before the others arrived, so the second passing is killed, too.
const PASSINGS = FAILPOINTS.filter((each) => each.startsWith('accept.')).flatMap((each) => [each, `${each}:2`]);
for (const failpoint of someOf(PASSINGS, times({ few: 2, short: 3, long: PASSINGS.length }))) {
  test(`twenty acceptances killed at ${failpoint} and repeated are in the ledger once each`, async () => {
    const doomed = await serve(failpoint);
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

    const { child, caller } = await serve();
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
  expect(await world.database.reading((tx) => verify(tx, undefined))).toMatchObject({ differences: 0 });
});

const rowsOf = (ids: readonly string[]) =>
  world.sql<{ quote_id: string; enrollment_id: string; accepted: boolean }>(
    `SELECT e.quote_id, e.enrollment_id, a.quote_id IS NOT NULL AS accepted
     FROM ledger_rows e LEFT JOIN quote_acceptances a USING (partner_id, posted_month, entry_id)
     WHERE e.quote_id = ANY ($1) ORDER BY e.quote_id COLLATE "C"`,
    [ids],
  );
