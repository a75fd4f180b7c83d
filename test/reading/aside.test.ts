/** Files are read by one process at a time, which ends by itself, by a limit or by a signal: each is told as what it is. */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { bullets, COMMAND_SECONDS } from '../../src/errors/definition.ts';
import { httpStatusOf } from '../../src/errors/refusals.ts';
import { compiled } from '../support/program.ts';

const load = (path: string) => import(/* @vite-ignore */ pathToFileURL(compiled(path)).href);

let aside: typeof import('../../src/reading/aside.ts');
beforeAll(async () => {
  aside = (await load('src/reading/aside.js')) as typeof aside;
});
afterEach(() => aside.setReadingSeconds(COMMAND_SECONDS));

/** A reader whose work is this code, and a file that is large enough for a process. */
const readerThat = (code: string) =>
  aside.readerOf(`data:text/javascript,${encodeURIComponent(`export const one = { read: ${code} }`)}`, 'one', () => {
    throw new Error('read in place');
  });
const fileOf = (name: string) => ({ name, bytes: Buffer.alloc(64 * 1024, 'x') });
const failureOf = (reading: Promise<unknown>): Promise<Error & { code?: string; exit?: number }> =>
  reading.then(
    () => expect.unreachable(),
    (error: unknown) => error as Error,
  );

test('files that are asked for at once are read one after another', async () => {
  const reader = readerThat(
    '() => { const from = Date.now(); while (Date.now() < from + 200); return { pid: process.pid, from, to: Date.now() }; }',
  );
  const read = (await Promise.all(['a', 'b', 'c'].map((name) => aside.readAside(reader, fileOf(name))))) as unknown as {
    pid: number;
    from: number;
    to: number;
  }[];
  expect(new Set(read.map(({ pid }) => pid)).size).toBe(3);
  for (const [index, { from }] of read.slice(1).entries()) {
    expect(from).toBeGreaterThanOrEqual((read[index] as { to: number }).to);
  }
});

test('the files of one input are read by one process, small ones too', async () => {
  const reader = readerThat('({ name }) => ({ name, pid: process.pid })');
  const files = Array.from({ length: 58 }, (_, nth) => ({ name: `${nth}.eml`, bytes: Buffer.alloc(2000, 'x') }));
  const { contentsOf } = (await load('src/actions/contents.js')) as typeof import('../../src/actions/contents.ts');
  const read = (await contentsOf(files, reader)) as unknown as { name: string; pid: number }[];
  expect(read.map(({ name }) => name)).toEqual(files.map(({ name }) => name));
  expect(new Set(read.map(({ pid }) => pid)).size).toBe(1);
});

test('file_takes_too_long: a reading that does not end is ended, and the next file is read', async () => {
  aside.setReadingSeconds(1);
  const hanging = failureOf(aside.readAside(readerThat('() => { for (;;); }'), fileOf('slow.xml')));
  const stopped = failureOf(
    aside.readAside(readerThat("() => { process.kill(process.pid, 'SIGSTOP'); for (;;); }"), fileOf('stopped.xml')),
  );
  const next = aside.readAside(readerThat("() => 'read'"), fileOf('next.xml'));
  expect(await hanging).toMatchObject({
    code: 'file_takes_too_long',
    exit: 2,
    message:
      'Nothing was recorded: reading slow.xml was stopped after 1 s. Check that it is the right file. Split it, or ' +
      'run the command in a shell, where reading may take 10 minutes.',
  });
  expect(httpStatusOf('file_takes_too_long')).toBe(422);
  expect((await stopped).code).toBe('file_takes_too_long');
  expect(await next).toBe('read');
});

test('a reader that fails is told without its stack, which is kept for the log', async () => {
  const failure = await failureOf(
    aside.readAside(readerThat("() => { throw new RangeError('Maximum call stack size exceeded'); }"), fileOf('a.xml')),
  );
  expect(failure.message).toBe('reading a.xml failed: Maximum call stack size exceeded');
  expect((failure.cause as Error).stack).toMatch(/\n\s+at /);
});

test('a process that ends is told by its signal, and as lack of memory only where V8 had none', async () => {
  const ended = (code: string) => failureOf(aside.readAside(readerThat(code), fileOf('a.xml')));
  expect((await ended("() => { process.kill(process.pid, 'SIGTERM'); for (;;); }")).message).toBe(
    'the reading of a.xml was ended (SIGTERM)',
  );
  expect((await ended('() => process.exit(7)')).message).toBe('the reading of a.xml was ended (exit 7)');
  const full = '() => { const all = []; for (;;) all.push({ at: [all.length] }); }';
  expect(await ended(full)).toMatchObject({ code: 'file_memory' });
});

test('the unit of the server goes on where memory ends the process that reads', () => {
  const unit = readFileSync('jobs/systemd/reckoner-serve.service', 'utf8');
  const mebibytes = (text: RegExp) => Number(text.exec(unit)?.[1]);
  expect(unit).toMatch(/^OOMPolicy=continue$/m);
  // Its heap, and the heap that reads 4 MB of files.
  expect(mebibytes(/max-old-space-size=(\d+)/) + 128 + 32 * 4).toBeLessThan(1024 * mebibytes(/^MemoryMax=(\d+)G$/m));
});

test('a refusal cuts what it quotes, and not what it says', () => {
  const actions = Array.from({ length: 60 }, (_, nth) => `invoice.action_${nth}`).join(', ');
  const reason = `'${'x'.repeat(5000)}' is no action: ${actions}`;
  expect(bullets([{ path: 'approvals', reason }])).toBe(`  approvals: '${'x'.repeat(200)}…' is no action: ${actions}`);
});
