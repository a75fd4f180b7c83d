/**
 * An empty machine: a root of Debian 13 of its own, without a network, with PostgreSQL 17 and a mail server that demand
 * TLS of a certificate authority of ours. `.ci/debian-13` installs the root, which each machine covers with a layer.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../support/modules.ts';
import { tool } from '../support/tools.ts';

export interface Done {
  readonly status: number | null;
  /** stdout and stderr, as a terminal shows them. */
  readonly output: string;
}

const NAMES = ['db.internal', 'mail.internal', 'replica.internal', 'billing.example.com'];

/** Mounts the machine's files where only its own processes see them, and waits until the test ends it. */
const INIT = `
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount --rbind /dev "$2/root/dev" && mount -t proc proc "$2/root/proc"
ip link set lo up && echo ready && exec sleep infinity`;

export class Machine {
  readonly folder = mkdtempSync(join(tmpdir(), 'reckoner-machine-'));
  /** The machine's files, as its own processes and as the test see them. */
  readonly #root = join(this.folder, 'root');
  readonly #processes: ChildProcess[] = [];
  #init: ChildProcess | undefined;
  #blocks = 0;

  path = (...names: string[]): string => join('/proc', this.#pid(), 'root', this.#root, ...names);
  write = (path: string, text: string): void => writeFileSync(this.path(path), text);
  read = (path: string): string => readFileSync(this.path(path), 'utf8');
  mails = (): string[] => readdirSync(this.path('srv/mail')).map((name) => this.read(`srv/mail/${name}`));

  /** Starts the machine over a base root. */
  async start(base: string): Promise<void> {
    for (const name of ['upper', 'work', 'root']) mkdirSync(join(this.folder, name));
    const init = spawn(
      tool('unshare'),
      ['--mount', '--net', '--uts', '--pid', '--fork', '--kill-child', 'sh', '-euc', INIT, 'sh', base, this.folder],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    this.#init = init;
    await new Promise((resolve, reject) => {
      init.stdout.once('data', resolve);
      init.once('exit', (status) => reject(new Error(`the machine did not start: exit ${status}`)));
    });
    this.write('etc/hosts', `127.0.0.1 localhost ${NAMES.join(' ')}\n`);
    mkdirSync(this.path('srv/mail'));
    this.expect(CERTIFICATES);
    this.#processes.push(
      spawn(
        ...this.#inside([
          process.execPath,
          join(ROOT, 'test/handbook/mail-server.mjs'),
          ...['mail', 'server.key', 'server.crt'].map((name) => join(this.#root, 'srv', name)),
        ]),
        { stdio: 'inherit' },
      ),
    );
    this.expect(POSTGRESQL);
  }

  /** The first process of the machine, by its number outside. */
  #pid(): string {
    const { pid } = this.#init as ChildProcess;
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  }

  #inside(command: readonly string[]): [string, string[]] {
    return [tool('nsenter'), ['--target', this.#pid(), '--mount', '--net', '--uts', '--pid', ...command]];
  }

  #script(text: string): [string, string[]] {
    this.#blocks += 1;
    const file = `/tmp/block-${this.#blocks}.sh`;
    const keeps = `set -euo pipefail\ncd /root\n[ ! -f /tmp/exports ] || . /tmp/exports\n`;
    this.write(file, `${keeps}${text}\nexport -p | grep -v 'PWD=' > /tmp/exports\n`);
    const env = ['env', '-i', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root'];
    return this.#inside(['chroot', this.#root, ...env, 'TERM=dumb', 'LANG=C.UTF-8', 'bash', file]);
  }

  /** Runs a script as root, as a person does who copies it into a shell. What it exports stays. */
  run(text: string): Done {
    const { status, stdout } = spawnSync(...this.#script(`exec 2>&1\n${text}`), {
      ...{ encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], timeout: 300_000, maxBuffer: 64 * 1024 ** 2 },
    });
    return { status, output: stdout };
  }

  /** Like `run`, for what must succeed. */
  expect(text: string): string {
    const { status, output } = this.run(text);
    if (status !== 0) throw new Error(`exit ${status} of:\n${text}\n${output}`);
    return output;
  }

  /** Packs the program into /root. Without npm's scripts, which would build dist/ anew under other tests. */
  pack(): void {
    const arguments_ = ['pack', '--ignore-scripts', '--silent', '--pack-destination', this.folder];
    const packed = execFileSync(tool('npm'), arguments_, { cwd: ROOT, encoding: 'utf8' }).trim();
    cpSync(join(this.folder, packed), this.path('root', packed));
  }

  end(): void {
    this.#init?.kill('SIGKILL');
    for (const each of this.#processes) each.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A certificate authority of ours, and one certificate for both servers. */
const CERTIFICATES = `
cd /srv
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj '/CN=Our authority' -keyout ca.key -out ca.crt
openssl req -newkey rsa:2048 -nodes -subj '/CN=db.internal' -keyout server.key -out server.csr
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out server.crt \\
  -extfile <(echo 'subjectAltName=DNS:db.internal,DNS:mail.internal,DNS:replica.internal')
cp ca.crt /etc/ssl/certs/our-authority.crt
`;

/** Debian's own cluster, with TLS for everything that is not the local socket. */
const POSTGRESQL = `
pg_createcluster 17 main
install -o postgres -g postgres -m 0600 /srv/server.key /srv/server.crt /etc/postgresql/17/main/
cat > /etc/postgresql/17/main/conf.d/tls.conf <<END
ssl = on
ssl_cert_file = '/etc/postgresql/17/main/server.crt'
ssl_key_file = '/etc/postgresql/17/main/server.key'
END
cat > /etc/postgresql/17/main/pg_hba.conf <<END
local all postgres peer
local replication postgres peer
hostssl all all 127.0.0.1/32 scram-sha-256
hostssl replication replicator 127.0.0.1/32 scram-sha-256
END
pg_ctlcluster 17 main start
`;
