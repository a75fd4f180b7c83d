import { writeFileSync, appendFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { csvLine, HEADER } from './ledger.ts';
let world: World;
beforeAll(async () => { world = await openWorld(); await world.partners(Array.from({ length: 20 }, (_, index) => partner({ partner_id: `p-${index}` }))); });
afterAll(() => world.end());
test('t', async () => {
  const p = world.file('x.csv', `${HEADER}\n`); const p2 = world.file('y.csv', `${HEADER}\n`);
  let buf = ''; let b2 = '';
  for (let i = 0; i < 200_000; i++) { const q = quote({ quote_id: `q-${i}`, partner_id: `p-${i % 20}` }); buf += `${csvLine(q)}\n`; if (i % 2 === 0) b2 += `${csvLine(requote(q))}\n`; if (i % 4 === 0) b2 += `${csvLine(reversal(q))}\n`; }
  appendFileSync(p, buf); appendFileSync(p2, b2);
  const out: string[] = [];
  for (const [n, f] of [['200k quotes', p], ['again', p], ['150k requotes and reversals of the ledger', p2], ['again', p2]] as const) { const t = performance.now(); const r = await world.importFiles([f]); out.push(`${n} ${Math.round(performance.now() - t)}ms ${r.accepted}/${r.duplicates}/${r.rejected}`); }
  writeFileSync('/tmp/exp/timing.txt', out.join('\n'));
}, 300_000);
