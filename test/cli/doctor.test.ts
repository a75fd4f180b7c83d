/** `reckoner doctor`: what is wrong with a machine, before anything depends on it. */
import { generateKeyPairSync } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { chmodSync, existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkDkim, type Finding } from '../../src/cli/doctor.ts';
import { dkimRecord } from '../../src/mail/dkim.ts';
import { startMailServer } from '../support/mail-server.ts';
import { command } from '../support/program.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

async function doctor(env: Record<string, string> = {}) {
  const ran = await command(['--json', 'doctor'], {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, ...env },
  });
  const { findings, problems } = ran.json() as { findings: Finding[]; problems: number };
  const of = (check: string) => findings.filter((each) => each.check === check && each.state !== 'ok');
  return { ...ran, findings, problems, of };
}

test('a machine that can run Reckoner has no problem', async () => {
  const mail = await startMailServer();
  chmodSync(world.home, 0o700);
  const { status, findings } = await doctor({ SMTP_URL: mail.url });
  await mail.close();
  // The tests' server gives up safety for speed, and is told so.
  const problems = findings.filter(({ state }) => state === 'problem').map(({ says }) => says.split(':')[0]);
  expect([status, problems]).toEqual([4, ['full_page_writes is off']]);
  expect(findings.map(({ check }) => check)).toEqual(
    expect.arrayContaining([
      'node',
      'time zones',
      'environment',
      'home',
      'disk',
      'fonts',
      'database',
      'settings',
      'mail',
    ]),
  );
  expect(mail.mails).toEqual([]);
});

test('everything that is wrong is named at once, and no secret with it', async () => {
  const port = await freePort();
  const { status, problems, stdout, of } = await doctor({
    DATABASE_URL: `postgres://someone:geheim-1@127.0.0.1:${port}/none`,
    SMTP_URL: `smtp://someone:geheim-2@127.0.0.1:${port}`,
  });
  expect([status, problems]).toEqual([4, 2]);
  expect(of('database')[0]?.says).toContain(`127.0.0.1:${port}/none`);
  expect(of('mail')[0]?.says).toContain('ECONNREFUSED');
  expect(stdout).not.toContain('geheim');
});

test('a home that others may read is a warning, and one that is missing a problem', async () => {
  chmodSync(world.home, 0o755);
  expect((await doctor()).of('home')).toMatchObject([
    { state: 'warning', says: expect.stringContaining('chmod 0700') },
  ]);
  chmodSync(world.home, 0o700);
  const missing = join(world.home, 'nowhere');
  const { status, of } = await doctor({ RECKONER_HOME: missing, DATABASE_URL: '' });
  expect([status, of('home')[0]?.state, of('settings')[0]?.state]).toEqual([4, 'problem', 'problem']);
  expect(existsSync(missing)).toBe(false);
});

describe('the record of the key that signs e-mails', () => {
  const { privateKey: dkimKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const signing = () => ({ environment: { dkimKey }, settings: { ...world.settings, mail_from: 'a@issuer.example' } });
  const name = 'reckoner._domainkey.issuer.example';

  /** What doctor says where a DNS server has these TXT records, or with `null` never answers. */
  async function withRecords(records: readonly string[] | null, patience?: number): Promise<Finding | undefined> {
    const server = createSocket('udp4');
    server.on('message', (question, { port, address }) => {
      if (records !== null) server.send(answerTo(question, records), port, address);
    });
    await new Promise<void>((done) => server.bind(0, '127.0.0.1', done));
    const resolver = new Resolver({ timeout: 5000, tries: 3 });
    resolver.setServers([`127.0.0.1:${server.address().port}`]);
    const [finding] = await checkDkim(signing(), resolver, patience);
    server.close();
    return finding;
  }

  test('it is found however it is split and spaced', async () => {
    const value = dkimRecord(signing())?.value ?? '';
    expect(await withRecords([value])).toMatchObject({ check: 'dkim', state: 'ok' });
    expect(await withRecords([value.replaceAll(';', ' ; ').replace('p=', 'p= ')])).toMatchObject({ state: 'ok' });
  });

  test('it is named with what to publish where it is missing, has another key, or is not alone', async () => {
    const record = dkimRecord(signing());
    const missing = await withRecords([]);
    expect(missing).toMatchObject({ state: 'problem', publish: record });
    expect(missing?.says).toBe(`${name} is not in the DNS. Publish the record below`);
    expect((await withRecords(['v=DKIM1; k=rsa; p=']))?.says).toContain('has another key');
    expect((await withRecords([record?.value ?? '', 'v=DKIM1; p=MIIB']))?.says).toContain('has 2 TXT records');
  });

  test('a DNS server that does not answer is a warning, soon', async () => {
    const began = performance.now();
    expect(await withRecords(null, 300)).toMatchObject({
      state: 'warning',
      says: expect.stringContaining('ECANCELLED'),
    });
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  test('without a key nothing is asked', async () => {
    expect(await checkDkim({ environment: {}, settings: world.settings })).toEqual([]);
  });
});

/** An answer with TXT records in strings of at most 255 bytes; without any, that the name has none. */
function answerTo(question: Buffer, records: readonly string[]): Buffer {
  const asked = question.subarray(12, question.indexOf(0, 12) + 5);
  const header = Buffer.from(question.subarray(0, 12));
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(records.length, 6);
  header.writeUInt16BE(0, 10);
  const answers = records.map((text) => {
    const strings = (text.match(/.{1,255}/g) ?? []).map((each) =>
      Buffer.concat([Buffer.of(each.length), Buffer.from(each)]),
    );
    const data = Buffer.concat(strings);
    const head = Buffer.from([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, 0]);
    head.writeUInt16BE(data.length, 10);
    return Buffer.concat([head, data]);
  });
  return Buffer.concat([header, asked, ...answers]);
}

function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => done(port));
    });
  });
}
