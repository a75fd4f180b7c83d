/**
 * The steps of the Dockerfile and the services of compose.yaml, on a machine of Debian 13, without Docker. What differs is
 * listed: Docker itself, its networks and the images of others are not tested.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../support/modules.ts';
import { Machine } from './machine.ts';

const LINES = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').replace(/^#.*\n/gm, '');
const STEPS = LINES.replace(/\\\n/g, '').split('\n').filter(Boolean);
const stepsOf = (name: string) =>
  STEPS.filter((step) => step.startsWith(`${name} `)).map((step) => step.slice(name.length + 1).trim());
const wordsOf = (step: string | undefined) => JSON.parse(/\[.*\]/.exec(step ?? '')?.[0] ?? '[]') as string[];

/** What a step does that this machine cannot do. */
const CHANGES: readonly (readonly [because: string, from: string | RegExp, to: string])[] = [
  ['there is no network: the package has its dependencies', /^npm ci --ignore-scripts$/, 'true'],
  ['the program is packed outside', 'npm pack --pack-destination /tmp', 'cp /root/reckoner-*.tgz /tmp'],
  ['there is no network, for the embedded PostgreSQL either', 'npm install --global', 'npm install --offline --global'],
  ['there is no network: the root has the certificates, and nothing here needs tini', /^apt-get .*? tini +&& /, ''],
];
const INIT = /^\/usr\/bin\/tini$|^--$/;

const BASE = process.env['RECKONER_DEBIAN_13'];

describe.skipIf(BASE === undefined && process.env['CI'] !== 'true')('an image', () => {
  const machine = new Machine();
  const environment = stepsOf('ENV').join(' ');
  /** As compose.yaml runs it: not as root, with a read-only root, without capabilities and new privileges. */
  const contained = (command: string) => `
    cat > /srv/command.sh <<'END'
    export ${environment} RECKONER_HOME=/var/lib/reckoner/home RECKONER_ENVIRONMENT=sandbox
    export DATABASE_URL='postgres://contained:secret@db.internal/contained?sslmode=verify-full'
    export NODE_EXTRA_CA_CERTS=/srv/ca.crt LOG_SIGNING_KEY_FILE=/var/lib/reckoner/key.pem
    ${command}
END
    unshare --mount sh -euc '
      mount --bind /var/lib/reckoner /var/lib/reckoner
      mount --bind /var/backups/reckoner /var/backups/reckoner
      mount -t tmpfs tmpfs /tmp
      mount -o remount,bind,ro /
      exec setpriv --reuid ${stepsOf('USER')[0]} --regid ${stepsOf('USER')[0]} --clear-groups --bounding-set=-all \
        --no-new-privs sh -eu /srv/command.sh'`;

  beforeAll(async () => {
    if (BASE === undefined) throw new Error('RECKONER_DEBIAN_13 is not set: .ci/debian-13 prints it');
    await machine.start(BASE);
    machine.pack();
    machine.expect(`
      chmod 755 /srv
      su postgres -c "psql -qc \\"CREATE ROLE contained LOGIN CREATEROLE PASSWORD 'secret'\\" -c 'CREATE DATABASE contained OWNER contained'"`);
  }, 300_000);
  afterAll(() => machine.end());

  test('every step of the Dockerfile runs, and no change is listed that none needs', { timeout: 300_000 }, () => {
    const unused = new Set(CHANGES);
    for (const step of stepsOf('RUN')) {
      let run = step;
      for (const change of CHANGES) {
        const [, from, to] = change;
        if (run !== run.replace(from, to)) unused.delete(change);
        run = run.replace(from, to);
      }
      machine.expect(run);
    }
    expect([...unused]).toEqual([]);
    expect(machine.expect(contained('id -u; reckoner --version; touch /nothing || echo read-only'))).toMatch(
      /^10001\n\d+\.\d+\.\d+.*\n[\s\S]*read-only\n$/,
    );
  });

  test('serve answers its health check, the worker starts, and the scheduler backs up', { timeout: 300_000 }, () => {
    const [program = '', ...serve] = [...wordsOf(stepsOf('ENTRYPOINT')[0]), ...wordsOf(stepsOf('CMD').at(-1))].filter(
      (word) => !INIT.test(word),
    );
    const health = wordsOf(stepsOf('HEALTHCHECK')[0]);
    expect([program, serve[0], health[0]]).toEqual(['reckoner', 'serve', 'node']);
    const quoted = (words: readonly string[]) => words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    machine.expect(contained('openssl genpkey -algorithm ed25519 -out /var/lib/reckoner/key.pem; reckoner init'));
    const { status, output } = machine.run(
      contained(`
        timeout 40 ${quoted([program, ...serve])} > /tmp/serve.log 2>&1 &
        tries=0; until ${quoted(health)}; do tries=$((tries + 1)); [ $tries -lt 30 ]; sleep 1; done
        timeout 15 reckoner deliver --watch || [ $? = 124 ]
        RECKONER_BACKUPS=/var/backups/reckoner /opt/reckoner/app/deploy/scheduler.sh once backup
        ls /var/backups/reckoner; kill %1`),
    );
    expect(status, output).toBe(0);
    expect(output).toMatch(/^reckoner-.*backup/m);
  });
});
