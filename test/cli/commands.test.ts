/** A finance person's and a script's first day with the program: every command, what it prints and how it exits. */
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, type RunOptions, reckoner } from '../support/program.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

let world: World;
let folder: string;
beforeAll(async () => {
  world = await openWorld();
  folder = mkdtempSync(join(tmpdir(), 'reckoner-commands-'));
});
afterAll(async () => {
  await world.end();
  rmSync(folder, { recursive: true, force: true });
});

const run = (args: string[], now = '2026-08-01T10:00:00Z', options: RunOptions = {}) =>
  // Standard input needs a process of its own; so does the first command, which starts as people start it.
  (options.input === undefined && !args.includes('init') ? command : reckoner)(args, {
    ...options,
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now, ...options.env },
  });

const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const ndjson = (rows: object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

const first = quote({ quote_id: 'q-first', spotPrice: 20, partnerCut: 6, invoiceAmount: 14 });
/** The parking policy's cut is another: the row is recorded, and named. */
const differing_cuts = [
  {
    ...{ partner_id: 'p-1', policy_id: 'parking', currency: 'USD', partner_cut_rate: '0.20', rows: 1 },
    ...{ partner_cut: '3.00', by_rate: '2.00' },
  },
];
const july = [first, requote(first), quote({ quote_id: 'q-parking', policy_id: 'parking' })];

test('init creates a sandbox with complete settings, and keeps them when repeated', async () => {
  const home = join(folder, 'new', 'home');
  const env = { RECKONER_HOME: home };
  const made = await run(['--json', 'init'], undefined, { env });
  expect(made).toMatchObject({ status: 0 });
  expect(made.json()).toEqual({
    home,
    environment: 'sandbox',
    origin: expect.stringMatching(/^sandbox\.reckoner\.invalid\/[0-9a-f]{12}$/),
    settings: 'created',
    migrations: [],
  });
  const settings = readFileSync(join(home, 'settings.json'), 'utf8');
  writeFileSync(join(home, 'settings.json'), settings.replace('Sandbox Protection', 'Our Protection'));
  expect((await run(['--json', 'init'], undefined, { env })).json()).toMatchObject({ settings: 'kept' });
  expect(readFileSync(join(home, 'settings.json'), 'utf8')).toContain('Our Protection');
});

test('partners are imported, listed and shown in the format of their file', async () => {
  const given = [partner(), partner({ partner_id: 'p-0', name: 'Über Größe & Söhne', currency: 'EUR' })];
  const imported = await run(['--json', 'partner', 'import', file('partners.json', JSON.stringify(given))]);
  expect(imported).toMatchObject({ status: 0 });
  expect(imported.json()).toEqual({ created: 2, updated: 0, unchanged: 0, changes: [] });
  const listed = (await run(['--json', 'partner', 'list'])).json() as { partner_id: string }[];
  expect(listed.map((each) => each.partner_id)).toEqual(['p-0', 'p-1']);
  const shown = (await run(['--json', 'partner', 'show', 'p-1'])).json() as Record<string, unknown>;
  const defaults = { active: true, largest_price: null, cancellation: null, purchase_order: '' };
  const policies = (partner()['policies'] as { policy_id: string }[]).map((policy) => ({ ...policy, ...defaults }));
  expect(shown).toEqual({
    ...partner(),
    active: true,
    tax_id: '',
    purchase_order: '',
    legal_note: '',
    e_invoice: 'none',
    buyer_reference: '',
    electronic_address: '',
    ...{ reminder_email: '', statement_email: '', dispute_email: '' },
    arrangement: 'invoicing',
    policies: policies.sort((a, b) => (a.policy_id < b.policy_id ? -1 : 1)),
    account: [],
  });
  const again = await run(['--json', 'partner', 'import', file('again.json', JSON.stringify(listed))]);
  expect(again.json()).toEqual({ created: 0, updated: 0, unchanged: 2, changes: [] });
});

test('one invalid line rejects a whole import, exits 2 and is named; --dry-run records nothing either', async () => {
  const path = file('bad.ndjson', ndjson([...july, quote({ spotPrice: '10.001' })]));
  const ran = await run(['--json', 'ledger', 'import', path]);
  expect(ran.status).toBe(2);
  expect(ran.json()).toEqual({
    accepted: 0,
    duplicates: 0,
    held: 0,
    rejected: 1,
    errors: [
      {
        file: path,
        line: 4,
        field: 'spotPrice',
        code: 'amount_too_precise',
        reason: 'has 3 decimals, but the currency has 2',
      },
    ],
  });
  const dry = await run(['--json', 'ledger', 'import', '--dry-run', file('july.ndjson', ndjson(july))]);
  expect({ status: dry.status, report: dry.json() }).toEqual({
    status: 0,
    report: { accepted: 3, duplicates: 0, held: 0, rejected: 0, errors: [], differing_cuts },
  });
  expect(await world.sql('SELECT FROM ledger_rows')).toHaveLength(0);
});

test('rows come from standard input too, and the same rows again are duplicates', async () => {
  const ran = await run(['--json', 'ledger', 'import', '-', '--format', 'ndjson'], undefined, { input: ndjson(july) });
  expect(ran.json()).toEqual({ accepted: 3, duplicates: 0, held: 0, rejected: 0, errors: [], differing_cuts });
  const again = await run(['--json', 'ledger', 'import', file('july.ndjson', ndjson(july))]);
  expect({ status: again.status, report: again.json() }).toEqual({
    status: 0,
    report: { accepted: 0, duplicates: 3, held: 0, rejected: 0, errors: [] },
  });
});

test('--skip-invalid records the valid rows, writes the invalid ones with their reasons, and exits 4', async () => {
  const rejects = join(folder, 'rejects.ndjson');
  const good = quote({ quote_id: 'q-good' });
  const bad = quote({ quote_id: 'q-bad', policy_id: 'unheard-of' });
  const path = file('mixed.ndjson', ndjson([good, bad]));
  const ran = await run(['--json', 'ledger', 'import', path, '--skip-invalid', '--rejects', rejects]);
  expect(ran.status).toBe(4);
  expect(ran.json()).toMatchObject({ accepted: 1, rejected: 1, errors: [{ line: 2, code: 'policy_unknown' }] });
  const written = JSON.parse(readFileSync(rejects, 'utf8')) as Record<string, unknown>;
  expect(written).toMatchObject({ file: path, line: 2, field: 'policy_id', code: 'policy_unknown' });
  expect(JSON.parse(written['row'] as string)).toEqual(bad);
});

const MONTH = {
  month: '2026-07',
  invoices: 1,
  credit_notes: 0,
  statements: 0,
  entries: 4,
  late_entries: 0,
  partners_without_activity: 1,
  totals: { USD: { spotPrice: '45.00', partnerCut: '13.50', invoiceAmount: '31.50' } },
};

const CHECKPOINT = { size: expect.any(Number), root: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) };

test('a preview shows the documents that would be issued and writes nothing', async () => {
  const ran = await run(['--json', 'close', '--dry-run']);
  expect(ran.status).toBe(0);
  const preview = ran.json() as { months: object[]; documents: { number: string; pdf: unknown }[] };
  expect(preview.months).toMatchObject([{ ...MONTH, status: 'preview' }]);
  expect(preview.documents).toMatchObject([{ number: 'INV-2026-000001', amount_due: '31.50', pdf: null }]);
  expect(await world.sql('SELECT FROM documents')).toHaveLength(0);
});

test('close issues and delivers, and prints the JSON of the contract; closing again changes nothing', async () => {
  const ran = await run(['--json', 'close']);
  const deliveries = { sent: 1, pending: 0, held: 0, failed: 0, uncertain: 0 };
  expect({ status: ran.status, report: ran.json() }).toEqual({
    status: 0,
    report: { months: [{ ...MONTH, status: 'closed', deliveries, checkpoint: CHECKPOINT }] },
  });
  const listed = (await run(['--json', 'invoice', 'list'])).stdout;
  const again = await run(['--json', 'close']);
  expect({ status: again.status, report: again.json() }).toEqual({ status: 0, report: { months: [] } });
  const named = await run(['--json', 'close', '2026-07']);
  expect(named.json()).toEqual({ months: [{ ...MONTH, status: 'closed', deliveries, checkpoint: CHECKPOINT }] });
  expect((await run(['--json', 'invoice', 'list'])).stdout).toBe(listed);
});

test('an invoice is listed and shown with exactly the fields of the contract', async () => {
  const [listed] = (
    await run(['--json', 'invoice', 'list', '--month', '2026-07', '--partner', 'p-1'])
  ).json() as object[];
  const { story, ...shown } = (await run(['--json', 'invoice', 'show', 'INV-2026-000001'])).json() as {
    story: { action: string; by: { claimed_by: string | null } | null }[];
  };
  expect(shown).toEqual(listed);
  expect(story.map(({ action }) => action)).toEqual(['issued', 'linked', 'drawn', 'sending_asked', 'sending']);
  expect(story[0]?.by).toEqual({ claimed_by: null, os_user: expect.any(String), host: expect.any(String) });
  const [{ installation_id }] = (await world.sql('SELECT installation_id FROM installation')) as [
    { installation_id: string },
  ];
  const [{ url }] = (await world.sql('SELECT url FROM payment_links')) as [{ url: string }];
  const [{ sha256, bytes }] = (await world.sql('SELECT sha256, length(pdf) AS bytes FROM document_pdfs')) as [
    { sha256: string; bytes: number },
  ];
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:8080\/pay\/[\w-]{32}$/);
  const line = { month: '2026-07', policy_id: 'ticket-protection' };
  expect(shown).toEqual({
    number: 'INV-2026-000001',
    series: 'INV-2026',
    sequence: 1,
    document: 'invoice',
    purpose: 'month',
    status: 'open',
    partner_id: 'p-1',
    month: '2026-07',
    currency: 'USD',
    issued_on: '2026-08-01',
    due_on: '2026-08-31',
    enrollments: 3,
    spotPrice: '45.00',
    partnerCut: '13.50',
    invoiceAmount: '31.50',
    credit_applied: '0.00',
    amount_due: '31.50',
    credited: '0.00',
    amount_paid: '0.00',
    balance: '31.50',
    lines: [
      {
        ...line,
        policy_id: 'parking',
        kind: 'quote_accepted',
        count: 1,
        spotPrice: '10.00',
        partnerCut: '3.00',
        invoiceAmount: '7.00',
      },
      { ...line, kind: 'quote_accepted', count: 2, spotPrice: '30.00', partnerCut: '9.00', invoiceAmount: '21.00' },
      { ...line, kind: 'requote_accepted', count: 1, spotPrice: '5.00', partnerCut: '1.50', invoiceAmount: '3.50' },
    ],
    payment_link: url,
    pdf: { sha256, bytes },
    email: {
      status: 'sent',
      to: ['ap@partner.example'],
      message_id: `<INV-2026-000001.1.${installation_id}@protection.example>`,
      sent_at: '2026-08-01T10:00:00Z',
    },
    replaces: null,
    replaced_by: null,
    credits: null,
    void_reason: null,
  });
});

test('the PDF is written byte for byte as issued, and the e-mail is in the outbox under its Message-ID', async () => {
  const path = join(folder, 'invoice.pdf');
  expect((await run(['invoice', 'pdf', 'INV-2026-000001', '-o', path])).status).toBe(0);
  const [{ sha256 }] = (await world.sql('SELECT sha256 FROM document_pdfs')) as [{ sha256: string }];
  expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(sha256);
  const [{ message_id }] = (await world.sql('SELECT message_id FROM document_emails')) as [{ message_id: string }];
  const letters = readdirSync(join(world.home, 'outbox')).filter((name) => name.startsWith('INV-'));
  expect(letters).toEqual([`${message_id.slice(1, -1)}.eml`]);
});

test('a partner without an e-mail address is held, exit 4, until a corrected import releases it', async () => {
  const silent = partner({ invoicing_contact: { name: 'Nobody', email: '' } });
  await run(['partner', 'import', file('silent.json', JSON.stringify([silent]))]);
  const refund = reversal({ ...first, accepted_at: '2026-08-10T12:00:00Z' });
  await run(
    ['ledger', 'import', file('august.ndjson', ndjson([quote({ accepted_at: '2026-08-03T12:00:00Z' }), refund]))],
    '2026-09-02T10:00:00Z',
  );
  const closed = await run(['--json', 'close'], '2026-09-02T10:00:00Z');
  expect(closed.status).toBe(4);
  expect(closed.json()).toMatchObject({ months: [{ month: '2026-08', deliveries: { sent: 0, held: 1 } }] });
  const status = await run(['status'], '2026-09-02T10:00:00Z');
  expect(status.status).toBe(4);
  expect(status.stdout).toMatch(/partner p-1 has no invoicing contact's e-mail address/);
  await run(['partner', 'import', file('repaired.json', JSON.stringify([partner()]))]);
  const delivered = await run(['--json', 'deliver'], '2026-09-02T11:00:00Z');
  expect({ status: delivered.status, report: delivered.json() }).toEqual({
    status: 0,
    report: { deliveries: { sent: 2, pending: 0, held: 0, failed: 0, uncertain: 0 } },
  });
  expect((await run(['status'], '2026-09-02T11:00:00Z')).status).toBe(0);
});

test('init --check lists what production still needs, by setting, currency and partner', async () => {
  await run(['partner', 'import', file('bare.json', JSON.stringify([partner({ partner_id: 'p-2', address: {} })]))]);
  const ran = await run(['--json', 'init', '--check']);
  expect(ran.status).toBe(4);
  expect(ran.json()).toEqual({
    environment: 'sandbox',
    missing: [
      ...['issuer.legal_name', 'issuer.email', 'public_url', 'mail_from'].map((id) => ({
        scope: 'settings',
        id,
        needs: "your own value: this is the sandbox's",
      })),
      ...['instructions.*.wire', 'instructions.USD.ach', 'instructions.USD.wire'].map((id) => ({
        scope: 'settings',
        id,
        needs: "a real bank account: this is the sandbox's",
      })),
      { scope: 'settings', id: 'public_url', needs: 'https: otherwise payment details can be changed in transit' },
      { scope: 'environment', id: 'SMTP_URL', needs: 'a mail server: without one, e-mails stay in outbox/' },
      {
        scope: 'environment',
        id: 'LOG_SIGNING_KEY_FILE',
        needs: 'a key that signs checkpoints: without one, anyone who can write to the database can make them',
      },
      ...['address.line1', 'address.city', 'address.country'].map((needs) => ({ scope: 'partner', id: 'p-2', needs })),
    ],
    link_limits: {},
    premium_taxes_not_calculated: [],
  });
});

test('tables fit a terminal of 80 columns, and a pipe gets no color codes', async () => {
  for (const command of [
    ['partner', 'list'],
    ['partner', 'show', 'p-1'],
    ['close', '2026-07'],
    ['close', '--dry-run'],
    ['status'],
    ['--help'],
    ['close', '--help'],
    ['ledger', 'import', '--help'],
    ['invoice', '--help'],
    ['payment', '--help'],
    ['payment', 'import', '--help'],
    ['processor', '--help'],
    ['report', '--help'],
  ]) {
    const { stdout } = await run(command);
    expect([command, stdout.length > 0]).toEqual([command, true]);
    const wide = stdout.split('\n').filter((each) => each.length > 80);
    expect({ command, wide }).toEqual({ command, wide: [] });
    expect(stdout).not.toContain('\u001b');
  }
});

test('with --json the help and the version are one document too', async () => {
  const help = await run(['--json', 'close', '--help']);
  expect(help).toMatchObject({ status: 0, stderr: '' });
  expect(help.json()).toEqual({ help: expect.stringContaining('Usage: reckoner close') });
  expect(((await run(['--json', '--version'])).json() as { version: string }).version).toMatch(
    /^\d+\.\d+\.\d+( \([0-9a-f]{12}(-dirty)?\))?$/,
  );
  expect((await run(['help', 'close'])).stdout).toContain('Usage: reckoner close');
});

test('a home that cannot be created is refused by every command', async () => {
  const env = { RECKONER_HOME: '/proc/x', DATABASE_URL: undefined };
  const init = await run(['--json', 'init'], undefined, { env });
  expect(init.status).toBe(1);
  expect(init.json()).toMatchObject({ error: { code: 'file_unwritable', file: '/proc/x/settings.json' } });
  const migrate = await run(['--json', 'migrate'], undefined, { env });
  expect(migrate.status).toBe(1);
  expect(migrate.json()).toMatchObject({ error: { code: 'embedded_server' } });
});

test('the program writes nothing into the folder that it was started in', async () => {
  const cwd = mkdtempSync(join(folder, 'cwd-'));
  await run(['status'], undefined, { cwd });
  expect(readdirSync(cwd)).toEqual([]);
  expect(existsSync(join(cwd, 'reckoner'))).toBe(false);
});

test('a command that is typed wrongly names its own help', async () => {
  for (const args of [
    ['invoice', 'void', 'INV-2026-000001'],
    ['close', '--without', 'p-1'],
    ['--by', 'Ada', 'report', 'aging', '--x'],
  ]) {
    const ran = await run(args);
    const name = args.slice(args[0] === '--by' ? 2 : 0, args[0] === 'close' ? 1 : args[0] === '--by' ? 4 : 2).join(' ');
    expect([ran.status, ran.stderr]).toEqual([
      2,
      expect.stringContaining(`See its options with 'reckoner ${name} --help'.`),
    ]);
  }
  expect((await run(['invioce'])).stderr).toContain("See the commands with 'reckoner --help'.");
});
