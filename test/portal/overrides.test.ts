/** Pages have no templates that an operator could override: a file that tries keeps the server from starting, with the reason. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { serveWorld } from '../support/service.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

test('the server does not start while a page is overridden, and names the file and what to do', async () => {
  const folder = join(world.home, 'templates', 'pages');
  mkdirSync(folder, { recursive: true });
  await (await serveWorld(world)).end();
  for (const name of ['style.css', 'payment.html.hbs']) {
    writeFileSync(join(folder, name), 'x');
    await expect(serveWorld(world)).rejects.toMatchObject({
      code: 'settings_invalid',
      facts: { file: join(folder, name) },
      message: expect.stringMatching(/pages cannot be overridden, only e-mails in templates\/email\. Delete this file/),
    });
  }
  rmSync(folder, { recursive: true });
  await (await serveWorld(world)).end();
});
