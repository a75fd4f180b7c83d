/**
 * Every block of docs/operations.md, run in its order on an empty machine: first by several people, who approve, and then
 * by one person alone. What a block cannot do here is changed or left out below, each time with a reason.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../support/modules.ts';
import { partner } from '../support/world.ts';
import { type Done, Machine } from './machine.ts';

interface Block {
  /** The heading above it. */
  readonly under: string;
  readonly text: string;
}

const PAGE = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
const BLOCKS: readonly Block[] = [...PAGE.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].map(({ 1: text = '', index }) => ({
  under:
    [
      ...PAGE.slice(0, index)
        .replace(/^```[\s\S]*?^```$/gm, '')
        .matchAll(/^#+ (.*)$/gm),
    ].at(-1)?.[1] ?? '',
  text,
}));

const BASE = process.env['RECKONER_DEBIAN_13'];
/** The month that has ended, and a day in it. */
const ENDED = new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() - 1, 15));
const MONTH = ENDED.toISOString().slice(0, 7);

/** What an operator writes with the editor, one file for each time that the handbook opens it. */
const SETTINGS = {
  issuer: {
    legal_name: 'Quay Protection, Inc.',
    address: {
      ...{ line1: '9 Quay Street', line2: '', city: 'Boston', region: 'MA', postal_code: '02110', country: 'US' },
    },
    ...{ email: 'billing@issuer.example', phone: '', tax_id: '12-3456789', logo: '' },
  },
  ...{ public_url: 'https://billing.example.com', mail_from: 'billing@issuer.example' },
  ...{ finance_email: 'finance@issuer.example', auditor_email: 'auditor@auditor.example' },
  operations_email: 'operations@issuer.example',
  instructions: {
    USD: {
      ach: {
        ...{ account_holder: 'Quay Protection, Inc.', bank_name: 'Harbor Bank' },
        account_holder_address: {
          ...{ line1: '9 Quay Street', line2: '', city: 'Boston', region: 'MA', postal_code: '02110', country: 'US' },
        },
        bank_address: {
          ...{ line1: '1 Harbor Plaza', line2: '', city: 'Boston', region: 'MA', postal_code: '02110', country: 'US' },
        },
        ...{ routing_number: '011000015', account_number: '000987654321', account_type: 'checking' },
      },
    },
  },
};
const APPROVALS = { approvals: { 'partner.import': {}, 'settings.adopt': {} } };

/** An editor that merges what the operator would write into the file. */
const EDITOR = `#!/bin/sh
exec node -e '
  const fs = require("fs");
  const [file] = process.argv.slice(1);
  const edits = fs.readdirSync("/srv/edits").sort();
  const merged = { ...JSON.parse(fs.readFileSync(file)), ...JSON.parse(fs.readFileSync("/srv/edits/" + edits[0])) };
  fs.rmSync("/srv/edits/" + edits[0]);
  fs.writeFileSync(file, JSON.stringify(merged, null, 2));
' "$@"
`;

const CSV = [
  'kind,partner_id,quote_id,requote_id,reversal_id,enrollment_id,policy_id,currency,accepted_at,spotPrice,partnerCut,invoiceAmount',
  `quote_accepted,p-harbour-lights,q-1,,,e-1,ticket-protection,USD,${MONTH}-14T18:30:00Z,12.50,3.75,8.75`,
  `quote_accepted,p-harbour-lights,q-2,,,e-2,ticket-protection,USD,${MONTH}-15T18:30:00Z,10.00,3.00,7.00`,
  '',
].join('\n');

type Change = readonly [from: string | RegExp, to: string];
/** Values that the handbook leaves to its reader. */
const VALUES: readonly Change[] = [
  ['reckoner_owner:…', 'reckoner_owner:owner-secret'],
  ['reckoner_runtime:…', 'reckoner_runtime:runtime-secret'],
  ['smtp://reckoner:…', 'smtp://reckoner:mail-secret'],
  [/\/absolute\/path\//g, '/srv/files/'],
  // It exits with 4 while something is missing, and a person reads what.
  [/^rk init --check/gm, '[ "$(rk init --check > /tmp/check; echo $?)" = 4 ] && cat /tmp/check'],
];

/** How a block is run: by the first line of each, in the order of the page. */
interface Treatment {
  /** Why it differs from a run as it stands. */
  readonly because?: string;
  readonly changes?: readonly Change[];
  /** A file whose content the block shows. */
  readonly file?: string;
  /** Runs before the block: what the text around it says. */
  readonly before?: (machine: Machine) => void;
  /** What must be seen after it. */
  readonly after?: (machine: Machine, done: Done) => void;
  /** The exit status of the last command, if it is not 0. */
  readonly status?: number;
  /** It runs only on this machine. */
  readonly only?: 'several' | 'one';
  /** It is not run. */
  readonly left?: true;
}

const interactive = [
  /su postgres -c "psql -d reckoner -c '\\\\password.*/,
  ['owner', 'runtime', 'reader']
    .map((name) => `su postgres -c "psql -qd reckoner -c \\"ALTER ROLE reckoner_${name} PASSWORD '${name}-secret'\\""`)
    .join('\n'),
] as const;

const MOVED = `pg_ctlcluster 17 standby promote
pg_conftool 17 standby set port 5432 && pg_ctlcluster 17 standby restart`;

let moment = '';

const TREATMENTS: Readonly<Record<string, Treatment>> = {
  'npm install --global': {},
  "su postgres -c 'createdb": { because: 'psql asks a terminal for passwords', changes: [interactive] },
  'RECKONER_ENVIRONMENT=production': {
    file: '/etc/reckoner/environment',
    after: (machine) =>
      machine.expect(`
        install -m 0644 /srv/ca.crt /etc/reckoner/ca.crt
        chown root:reckoner /etc/reckoner/environment && chmod 0640 /etc/reckoner/environment`),
  },
  '(umask 077; openssl genpkey': {},
  "DATABASE_URL='postgres://reckoner_owner": {
    because: 'doctor finds no server for the names and the host of this test: no DNS, no synchronized clock',
    changes: [['rk doctor', 'rk doctor || [ $? = 4 ]']],
  },
  'rk user invite ada@issuer.example --role administrator --role finance --role approver': { only: 'one' },
  'rk user invite ada@issuer.example --role administrator --role finance': {
    only: 'several',
    because: 'a request for approval exits with 3',
    changes: [[/^(rk .*)# request \d$/gm, '$1|| [ $? = 3 ]']],
  },
  'export RECKONER_USER=ada': {
    after: (machine) => expect(machine.mails().join('\n')).toMatch(/^Subject: .*INV-/m),
  },
  RECKONER_ALARM_COMMAND: {
    because: 'nobody has a pager at pager.example',
    changes: [
      [
        /RECKONER_ALARM_COMMAND=.*/,
        `echo "RECKONER_ALARM_COMMAND='cat >> /var/lib/reckoner/alarm'" >> /etc/reckoner/environment`,
      ],
    ],
    after: (machine) => {
      machine.run(
        'export RECKONER_ENVIRONMENT_FILE=/srv/broken; sed s#db.internal#nowhere.internal# /etc/reckoner/environment > $RECKONER_ENVIRONMENT_FILE; chmod 644 $RECKONER_ENVIRONMENT_FILE; setpriv --reuid reckoner --regid reckoner --init-groups /opt/reckoner/app/jobs/run-job verify; true',
      );
      expect(machine.read('var/lib/reckoner/alarm')).toMatch(/^Reckoner on .*: verify: exit 1/);
    },
  },
  "su postgres -c 'createuser --pwprompt reckoner_drill": {
    because: 'createuser asks a terminal, and the second line is one of the environment file',
    changes: [
      [
        'createuser --pwprompt reckoner_drill',
        `psql -qc "CREATE ROLE reckoner_drill LOGIN PASSWORD '\\''drill-secret'\\''"`,
      ],
      [/^DRILL_DATABASE_URL=(.*)$/m, 'echo "DRILL_DATABASE_URL=$1" >> /etc/reckoner/environment'],
      ['reckoner_drill:…', 'reckoner_drill:drill-secret'],
    ],
    after: (machine) => {
      machine.expect(`
        rk backup /var/backups/reckoner --keep 3`);
      expect(machine.expect('rk drill')).toMatch(/rolled it back[\s\S]*^0 differences found/m);
    },
  },
  'archive_mode = on': {
    file: '/etc/postgresql/17/main/conf.d/archive.conf',
    after: (machine) => machine.expect('pg_ctlcluster 17 main restart'),
  },
  'install -d -o postgres': {},
  'systemctl stop reckoner-serve': {
    because: 'the day of the base backup and the moment before the mistake are those of this run',
    before: (machine) => {
      moment = machine.expect('sleep 2; date -u "+%F %T+00"; sleep 2').trim();
      machine.expect(`rk invoice void INV-${new Date().getUTCFullYear()}-000001 --reason mistake`);
      machine.expect(`rk invoice rerun INV-${new Date().getUTCFullYear()}-000001 --no-deliver`);
    },
    changes: [
      ['/var/backups/base/2026-11-22', '/var/backups/base/$(date +%F)'],
      ['2026-11-23 01:00:00+00', '$moment'],
      ['rk status ', '{ rk status || [ $? = 4 ]; } '],
    ],
    after: (machine, { output }) => {
      expect(output).toMatch(/The ledger has been paused[\s\S]*this host has\s+seen\s+INV-\d{4}-000002/);
      const year = new Date().getUTCFullYear();
      machine.expect(`rk resume --numbers-after INV-${year}-000002 --numbers-after CN-${year}-000000 \\
        --numbers-after ST-${year}-000000`);
    },
  },
  'su postgres -c "psql -c \\"ALTER SYSTEM SET synchronous': {
    because: 'the standby must be there first',
    before: (machine) => machine.expect(STANDBY),
    after: (machine, { output }) => {
      expect(output).toMatch(/sync_state +\| sync/);
      machine.expect('rk checkpoint take');
    },
  },
  'pg_ctlcluster 17 main stop -- -m fast        #': {
    because: 'both servers are on one machine, so the standby takes the port instead of a name',
    changes: [
      [/pg_ctlcluster 17 main promote.*/, MOVED],
      ['rk status ', '{ rk status || [ $? = 4 ]; } '],
    ],
    after: (_, { output }) => expect(output).toMatch(/^Server +another one or timeline/m),
  },
  'age-keygen': {
    because: 'a restore needs an empty database',
    before: (machine) => machine.expect("su postgres -c 'createdb -O reckoner_owner restored'"),
    changes: [['age1… ', '$(age-keygen -y /etc/reckoner/backup-key.txt) ']],
  },
  'echo "WEBHOOK_SIGNING_KEY=': {},
  'Checkpoint   of 3,028 facts': { because: 'it is what status prints', left: true },
  'rk serve --host': {
    because: 'the machine has no such address, and neither of them ends by itself',
    changes: [
      [
        /rk serve --host \S+/,
        `timeout 150 rk serve > /tmp/serve.log 2>&1 &
tries=0
until node -e 'fetch("http://127.0.0.1:8080/readyz").then(async (it) => console.log(it.status, await it.text()))'; do
  tries=$((tries + 1)); [ $tries -lt 120 ]; sleep 1
done 2> /dev/null
kill $!; wait || :`,
      ],
      ['rk deliver --watch', 'timeout 8 rk deliver --watch || [ $? = 124 ]'],
    ],
  },
  '(umask 077; openssl genrsa': {
    because: 'this machine has no DNS in which the record could be published',
    changes: [['rk doctor', 'rk doctor || [ $? = 4 ]']],
    after: (machine) => expect(machine.mails().at(-1)).toMatch(/^DKIM-Signature:/im),
  },
  'rk mail bounces': {
    before: (machine) => machine.write('var/mail/billing', ''),
    after: (machine) =>
      machine.expect(`setpriv --reuid reckoner --regid reckoner --init-groups sh -c '
      . /dev/null; eval "$(sed "s/^"|//; s/"$//" /var/lib/reckoner/.forward)" < /dev/null'`),
  },
  'createuser -U postgres': {
    because: 'createuser asks a terminal, and the replica is on this machine, at another port',
    changes: [
      [
        /createuser .*/,
        `su postgres -c "psql -qc \\"CREATE ROLE replicator REPLICATION LOGIN PASSWORD 'replica-secret'\\""`,
      ],
      [
        'pg_basebackup -h db.internal -U replicator',
        `su postgres -c "PGPASSWORD=replica-secret pg_basebackup -d 'host=db.internal user=replicator sslmode=require'`,
      ],
      [/-S reporting .*/, `-S reporting"\n${'$REPLICA'}`],
      ['reckoner_reader:…@replica.internal', 'reckoner_reader:reader-secret@replica.internal:5434'],
    ],
  },
  'SELECT application_name': {
    because: 'it is SQL',
    changes: [[/^([\s\S]*)$/, `su postgres -c psql <<'END'\n$1END`]],
    after: (_, { output }) => expect(output).toMatch(/streaming/),
  },
};

/** A standby by the name that the handbook gives it. */
const STANDBY = `
pg_createcluster 17 standby -p 5433 && rm -rf /var/lib/postgresql/17/standby
cp /etc/postgresql/17/main/pg_hba.conf /etc/postgresql/17/standby/
cp /etc/postgresql/17/main/server.* /etc/postgresql/17/standby/ && chown postgres: /etc/postgresql/17/standby/*
sed 's#/main/#/standby/#' /etc/postgresql/17/main/conf.d/tls.conf > /etc/postgresql/17/standby/conf.d/tls.conf
su postgres -c "pg_basebackup -D /var/lib/postgresql/17/standby -R -X stream -d 'application_name=standby'"
pg_ctlcluster 17 standby start`;

/** The replica's own files in Debian's places. */
const REPLICA = `
pg_createcluster 17 replica -p 5434 && rm -rf /var/lib/postgresql/17/replica
mv /var/lib/postgresql/replica /var/lib/postgresql/17/replica
cp /etc/postgresql/17/standby/pg_hba.conf /etc/postgresql/17/replica/
cp /etc/postgresql/17/main/server.* /etc/postgresql/17/replica/ && chown postgres: /etc/postgresql/17/replica/*
sed 's#/main/#/replica/#' /etc/postgresql/17/main/conf.d/tls.conf > /etc/postgresql/17/replica/conf.d/tls.conf
pg_ctlcluster 17 replica start`;

const treatmentOf = ({ text }: Block) => {
  const key = Object.keys(TREATMENTS)
    .filter((start) => text.startsWith(start))
    .sort((a, b) => b.length - a.length)[0];
  return key === undefined ? undefined : { key, ...(TREATMENTS[key] as Treatment) };
};

test('each block of the handbook has its place here, and none is listed that is gone', () => {
  const used = BLOCKS.map((block) => treatmentOf(block)?.key);
  expect(BLOCKS.filter((_, index) => used[index] === undefined).map(({ text }) => text)).toEqual([]);
  expect(Object.keys(TREATMENTS).filter((key) => !used.includes(key))).toEqual([]);
});

for (const people of ['several', 'one'] as const) {
  describe.skipIf(BASE === undefined && process.env['CI'] !== 'true')(`a machine of ${people}`, () => {
    const machine = new Machine();
    beforeAll(async () => {
      if (BASE === undefined) throw new Error('RECKONER_DEBIAN_13 is not set: .ci/debian-13 prints it');
      await machine.start(BASE);
      machine.expect('mkdir -p /srv/files /srv/edits && chmod 755 /srv /srv/files');
      machine.write('usr/bin/editor', EDITOR);
      machine.expect('chmod 755 /usr/bin/editor');
      machine.write('srv/edits/1.json', JSON.stringify(SETTINGS));
      machine.write('srv/edits/2.json', JSON.stringify(APPROVALS));
      machine.write('srv/files/partners.json', JSON.stringify([partner({ partner_id: 'p-harbour-lights' })]));
      machine.write('srv/files/rows.csv', CSV);
      machine.pack();
    }, 300_000);
    afterAll(() => machine.end());

    for (const block of BLOCKS) {
      const treatment = treatmentOf(block);
      if (treatment === undefined || treatment.left) continue;
      if (treatment.only !== undefined && treatment.only !== people) continue;
      const { file, before, after, changes = [], status = 0 } = treatment;
      test(`${block.under}: ${block.text.split('\n')[0]?.slice(0, 60)}`, { timeout: 300_000 }, () => {
        before?.(machine);
        let text = block.text;
        for (const [from, to] of [...changes, ...VALUES]) {
          text = text.replace(from, to.replace('$moment', moment).replace('$REPLICA', REPLICA));
        }
        if (file !== undefined) {
          machine.write(file, text);
          after?.(machine, { status: 0, output: '' });
          return;
        }
        const done = machine.run(text);
        expect(done.status, done.output).toBe(status);
        after?.(machine, done);
      });
    }

    // There is no systemd as process 1, so `systemctl` and the units themselves do not run.
    test.skipIf(people === 'one')(
      'the files of Install, 5: systemd, cron and logrotate accept them as they are',
      () => {
        machine.expect(`
        cp /opt/reckoner/app/jobs/systemd/* /etc/systemd/system/
        cp /opt/reckoner/app/jobs/crontab /etc/cron.d/reckoner
        cp /opt/reckoner/app/jobs/logrotate /etc/logrotate.d/reckoner`);
        const verified = machine.expect(`
        for unit in /opt/reckoner/app/jobs/systemd/*; do
          name=$(basename "$unit")
          echo "$name"
          systemd-analyze verify "/etc/systemd/system/$(echo "$name" | sed s/@/@verify/)"
        done`);
        const units = verified.trim().split('\n');
        expect(units.length).toBeGreaterThan(10);
        // Anything else is a complaint.
        expect(units.filter((line) => !/^reckoner-[\w@-]+\.(service|timer)$/.test(line))).toEqual([]);
        expect(machine.expect('logrotate --debug /etc/logrotate.d/reckoner')).not.toMatch(/^error/m);
        // cron's own check of a file is that it takes it: a wrong line is named in its log.
        expect(machine.run('timeout 3 cron -f -L 15').output).not.toMatch(/bad|error/i);
      },
    );
  });
}
