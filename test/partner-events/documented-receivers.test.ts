/** The receivers in docs/partners.md run as they stand there: they take what is signed, once, and nothing else. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { signedHeaders } from '../../src/partner-events/signature.ts';
import { tool } from '../support/tools.ts';

const folder = mkdtempSync(join(tmpdir(), 'reckoner-receivers-'));
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const KEY = Buffer.alloc(32, 7);

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test.each([
  ['js', 'receiver.mjs', () => process.execPath],
  ['python', 'receiver.py', () => tool('python3')],
])('the receiver in %s', async (language, name, program) => {
  const docs = readFileSync(join(import.meta.dirname, '../../docs/partners.md'), 'utf8');
  const code = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(docs)?.[1];
  writeFileSync(join(folder, name), code as string);
  const port = await freePort();
  const env = { ...process.env, WEBHOOK_SECRET: `whsec_${KEY.toString('base64')}`, PORT: String(port) };
  const child = spawn(program(), [join(folder, name)], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  children.push(child);
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const send = async (position: number, { keys = [KEY], seconds = Math.floor(Date.now() / 1000), sent = '' } = {}) => {
    const body = JSON.stringify({
      event_id: `evt_${position}`,
      position,
      type: 'document.sent',
      data: { to: ['ü@x'] },
    });
    const headers = signedHeaders(keys, { eventId: `evt_${position}`, seconds, body });
    return (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: sent || body })).status;
  };
  for (let ready = false; !ready; ) ready = await send(1).then(Boolean, () => sleep(50, false));
  const other = Buffer.alloc(32, 8);
  expect(await send(1)).toBe(204);
  expect(await send(2, { keys: [other, KEY] })).toBe(204);
  expect(await send(3, { keys: [other] })).toBe(401);
  expect(await send(3, { seconds: Math.floor(Date.now() / 1000) - 600 })).toBe(401);
  expect(await send(3, { sent: '{"event_id":"evt_3","position":3}' })).toBe(401);
  expect(await send(3)).toBe(204);
  expect(await send(2)).toBe(204);
  while (printed.split('\n').length < 4) await sleep(20);
  expect(printed.match(/^\d+ document\.sent/gm)).toEqual(['1 document.sent', '2 document.sent', '3 document.sent']);
});
