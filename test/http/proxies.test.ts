/**
 * The proxies of deploy/ as they are shipped, run in front of a server that answers and of one that is gone: no log has a
 * one-time link, a payment link or what an identity provider sent.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { request } from 'node:https';
import { type AddressInfo, createServer as createPlainServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { type Tool, tool } from '../support/tools.ts';

const SECRET = 'cbfYd0QPw4uC6sXr1hTtV8nZ';
const DOORS = [
  `/console/sign-in/provider/callback?code=${SECRET}&state=${SECRET}`,
  `/place/ask/${SECRET}`,
  `/PLACE/ask/${SECRET}`,
  `/%70ay/${SECRET}?to=%2F`,
  `/pay/${SECRET}`,
  `/pay/${SECRET}/rows.csv`,
];

let folder: string;
let backend: Server;
let proxy: ChildProcess | undefined;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-proxy-'));
  mkdirSync(join(folder, 'log'));
  backend = createServer(({ url }, response) => {
    if (url === '/readyz') return response.end();
    // As an identity provider is asked: the answer's own headers have secrets, too.
    return response.writeHead(303, { location: `https://id.example/?state=${SECRET}`, 'x-request-id': 'req-1' }).end();
  });
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await stop();
  rmSync(folder, { recursive: true, force: true });
});

async function stop(): Promise<void> {
  backend.close();
  backend.closeAllConnections();
  if (proxy === undefined || proxy.exitCode !== null) return;
  const ended = new Promise((resolve) => proxy?.once('exit', resolve));
  proxy.kill('SIGTERM');
  await ended;
}

async function freePort(): Promise<number> {
  const server = createPlainServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The file of deploy/ with what differs on every machine replaced. Each must be there. */
function configured(name: string, changes: readonly (readonly [from: string | RegExp, to: string])[]): string {
  return changes.reduce(
    (text, [from, to]) => {
      const changed = text.replaceAll(typeof from === 'string' ? from : new RegExp(from.source, 'gm'), to);
      expect([name, from, changed === text]).toEqual([name, from, false]);
      return changed;
    },
    readFileSync(join(packageRoot, 'deploy', name), 'utf8'),
  );
}

interface Proxy {
  readonly program: Tool;
  readonly args: readonly string[];
}

function nginx(port: number, plain: number): Proxy {
  const shipped = configured('nginx.conf', [
    [/^ *listen \[::\].*$/, ''],
    ['listen 80;', `listen 127.0.0.1:${plain};`],
    ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`],
    ['127.0.0.1:8080', `127.0.0.1:${(backend.address() as AddressInfo).port}`],
    ['/etc/ssl/reckoner', folder],
    ['/var/log/nginx', join(folder, 'log')],
  ]);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (each) => `${each}_temp_path ${folder}/t;`,
  );
  writeFileSync(
    join(folder, 'main.conf'),
    `daemon off; ${process.getuid?.() === 0 ? 'user root;' : ''} pid ${folder}/pid;
     error_log ${folder}/log/error.log; events {}
     http { access_log ${folder}/log/access.log; ${temporary.join(' ')}\n${shipped} }`,
  );
  return { program: 'nginx', args: ['-c', join(folder, 'main.conf'), '-e', join(folder, 'log/error.log')] };
}

function caddy(port: number, plain: number): Proxy {
  const shipped = configured('Caddyfile', [
    [/^\{$/, `{\n\tadmin off\n\thttp_port ${plain}\n\tskip_install_trust`],
    [/^pay\.protection\.example/, `https://localhost:${port}`],
    ['# tls /etc/ssl/reckoner/fullchain.pem /etc/ssl/reckoner/', `tls ${folder}/fullchain.pem ${folder}/`],
    ['lb_try_duration 3s', 'lb_try_duration 100ms'],
    ['127.0.0.1:8080 {', `127.0.0.1:${(backend.address() as AddressInfo).port} {`],
  ]);
  writeFileSync(join(folder, 'Caddyfile'), shipped);
  return { program: 'caddy', args: ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')] };
}

const ask = (port: number, path: string, referer = 'https://localhost/'): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { host: 'localhost', referer };
    request({ port, path, headers, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false }, (answer) =>
      answer.resume().once('end', () => resolve(answer.statusCode ?? 0)),
    )
      .once('error', reject)
      .end();
  });

test.each([
  ['nginx', nginx],
  ['caddy', caddy],
] as const)('%s logs no secret, whether the server answers or not', async (_, configure) => {
  const [port, plain] = [await freePort(), await freePort()];
  const { program, args } = configure(port, plain);
  const path = tool(program);
  const subject = '-nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout privkey.pem';
  execFileSync(
    tool('openssl'),
    ['req', '-x509', '-newkey', 'rsa:2048', ...subject.split(' '), '-out', 'fullchain.pem'],
    {
      ...{ cwd: folder, stdio: 'pipe' },
    },
  );
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  proxy = spawn(path, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [proxy.stdout, proxy.stderr]) stream?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  for (let tries = 0; (await ask(port, '/console').catch(() => 0)) !== 303; tries += 1) {
    if (tries > 200 || proxy.exitCode !== null) throw new Error(`${program} does not answer: ${said}`);
    await sleep(50);
  }
  for (const each of DOORS) expect([each, await ask(port, each)]).toEqual([each, 303]);
  expect(await ask(port, `/console/invoices?q=${SECRET}`, `https://localhost/pay/${SECRET}`)).toBe(303);
  expect((await fetch(`http://127.0.0.1:${plain}/pay/${SECRET}`, { redirect: 'manual' })).status).toBe(308);
  backend.close();
  backend.closeAllConnections();
  for (const each of [...DOORS, '/console/invoices'])
    expect([each, [502, 503].includes(await ask(port, each))]).toEqual([each, true]);
  await stop();

  const logs = readdirSync(join(folder, 'log')).map((name) => readFileSync(join(folder, 'log', name), 'utf8'));
  const text = `${said}\n${logs.join('\n')}`;
  expect(text.split('\n').filter((line) => line.includes(SECRET))).toEqual([]);
  // What happened stands there all the same.
  for (const [known, times] of [
    ['/console/sign-in/', 1],
    ['/pay/', 4],
    ['/console/invoices', 2],
  ] as const)
    expect([known, text.split(known).length > times]).toEqual([known, true]);
});
