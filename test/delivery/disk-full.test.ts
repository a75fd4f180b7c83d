/** A full disk under the outbox: no e-mail is half written, nothing is lost, and freeing space is all it takes. */
import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readStatus } from '../../src/reports/status.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let mounted = false;
beforeAll(async () => {
  world = await openWorld();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', join(world.home, 'outbox')], { stdio: 'ignore' });
    mounted = true;
  } catch {
    // Only root may mount, and not in every container.
  }
});
afterAll(async () => {
  if (mounted) execFileSync('umount', [join(world.home, 'outbox')]);
  await world.end();
});

test('a delivery that finds the disk full waits with that reason, and goes out when there is space', async (context) => {
  if (!mounted) context.skip('needs the right to mount a disk');
  const outbox = join(world.home, 'outbox');
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
  writeFileSync(join(outbox, 'ballast'), Buffer.alloc(230 * 1024));
  expect(await world.deliver()).toMatchObject([
    // Which disk is full is seen by the file.
    { status: 'deferred', detail: expect.stringMatching(/ENOSPC.* '.*outbox.*'/) },
  ]);
  expect(readdirSync(outbox).filter((name) => name.endsWith('.eml'))).toEqual([]);
  const status = await world.database.reading((tx) => readStatus(tx, world));
  expect(status.waiting).toMatchObject([{ status: 'queued', reason: expect.stringMatching(/ENOSPC|no space/i) }]);

  rmSync(join(outbox, 'ballast'));
  expect(await world.deliver()).toMatchObject([{ status: 'sent' }]);
  expect(readdirSync(outbox)).toHaveLength(1);
});
