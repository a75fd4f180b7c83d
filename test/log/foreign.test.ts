/** Our log is checked by code that others wrote for other logs: that of Go's checksum database, and that of npm. */
import { execFileSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exportPack } from '../../src/audit/export.ts';
import { provePartner } from '../../src/log/partner-proof.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import type { Month } from '../../src/month.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { needs, tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let pack: string;
let proof: string;
beforeAll(async () => {
  world = await openWorld({ logKey: LOG_KEY });
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  await world.rows([1, 2, 3].map((each) => quote({ quote_id: `q-${each}`, partner_id: each === 2 ? 'p-2' : 'p-1' })));
  await world.close();
  await signCheckpoints(world);
  world.at('2026-09-01T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-02T12:00:00Z' })]);
  await world.close();
  await signCheckpoints(world);
  pack = join(world.home, 'pack');
  const month = '2026-07' as Month;
  const request = { kind: 'ledger', from: month, to: '2026-08' as Month, format: 'csv', out: pack } as const;
  await exportPack(world.database, world.environment, request);
  const [proved] = await world.database.reading((tx) => provePartner(tx, { partnerId: 'p-2', month }, async () => {}));
  proof = join(world.home, 'p-2.tlog-proof');
  writeFileSync(proof, proved?.proof ?? '');
});
afterAll(() => world.end());

test("Go's checksum database accepts each checkpoint, each pair of them and the proof of a partner", () => {
  needs('go');
  const program = join(import.meta.dirname, 'sumdb', 'main.go');
  const env = {
    ...process.env,
    GO111MODULE: 'off',
    GOPATH: '/usr/share/gocode',
    GOFLAGS: '',
    GOCACHE: join(world.home, 'go'),
  };
  const said = execFileSync(tool('go'), ['run', program, pack, proof], { encoding: 'utf8', env });
  expect(said).toMatch(
    /^2 checkpoints signed, with the roots of the leaves; 1 pairs consistent\nleaf \d+ is in the log of \d+\n$/,
  );
}, 120_000);

test("npm's own verifier of signatures accepts the checkpoint and the proof, and refuses a changed fact", () => {
  needs('npm');
  const npm = dirname(realpathSync(tool('npm')));
  const folder = ['..', '../lib/node_modules/npm']
    .map((each) => join(npm, each))
    .find((each) => existsSync(join(each, 'node_modules')));
  const load = createRequire(join(folder ?? npm, 'node_modules/@sigstore/verify/package.json'));
  const { verifyCheckpoint } = load('./dist/tlog/checkpoint.js');
  const { verifyMerkleInclusion } = load('./dist/tlog/merkle.js');
  const [head = '', note = ''] = readFileSync(proof, 'utf8').split(/\n\n(.*)/s);
  const [, extra = '', index = '', ...hashes] = head.split('\n');
  const [name = '', id = '', encoded = ''] = readFileSync(join(pack, 'vkey'), 'utf8')
    .trim()
    .split(/\+([0-9a-f]{8})\+/);
  const der = Buffer.concat([
    Buffer.from('302a300506032b6570032100', 'hex'),
    Buffer.from(encoded, 'base64').subarray(1),
  ]);
  const log = {
    logID: Buffer.from(id, 'hex'),
    baseURL: `https://${name}`,
    publicKey: createPublicKey({ key: der, format: 'der', type: 'spki' }),
  };
  const entry = {
    canonicalizedBody: Buffer.from(extra.replace('extra ', ''), 'base64'),
    inclusionProof: {
      logIndex: index.replace('index ', ''),
      hashes: hashes.map((hash) => Buffer.from(hash, 'base64')),
      checkpoint: { envelope: note },
    },
  };
  const checkpoint = verifyCheckpoint(entry, [log]);
  verifyMerkleInclusion(entry, checkpoint);
  entry.canonicalizedBody[20] = (entry.canonicalizedBody[20] ?? 0) ^ 1;
  expect(() => verifyMerkleInclusion(entry, checkpoint)).toThrow(/root/i);
});
