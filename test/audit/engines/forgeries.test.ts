/** Forged ledgers that an auditor wants named: each is the honest history with one change, and the rule that finds it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { needs } from '../../support/tools.ts';
import { inSqlite } from './sqlite.ts';

const CHECKS = join(import.meta.dirname, '../../../templates/export/checks.sql');
const honest = readFileSync(join(import.meta.dirname, 'honest.tsv'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'reckoner-forgeries-'));
afterAll(() => rmSync(folder, { recursive: true }));

type Change = readonly [from: string | RegExp, to: string];
const SALE = /^(ledger_rows\t1014\t.*)$/m;
const at = (number: number, from: string, to: string): Change => [
  new RegExp(`^(\\w+\\t${number}\\t.*?)${from.replace(/[.]/g, '\\.')}`, 'm'),
  `$1${to}`,
];

const FORGERIES: readonly (readonly [sentence: string, rule: string, ...changes: Change[]])[] = [
  ['a sale is billed twice', 'sold_once', [SALE, '$1\n$1']],
  ['a row is higher than its invoice', 'documents_of_rows', at(1014, '0.433', '0.533')],
  ['a number is skipped', 'numbers_without_gaps', at(1790, 'CN-2026-000003\tCN-2026\t3', 'CN-2026-000009\tCN-2026\t9')],
  ['an invoice names another partner', 'document_party', at(1790, 'Renamed 31', 'Somebody Else')],
  ['a replacement is due later', 'document_days', at(2005, '2026-05-31', '2026-12-31')],
  ['a tax rate is lower', 'tax_rounded_once', at(1261, '\t19\t', '\t10\t')],
  ['only a part is written off', 'write_off', at(1201, '0.433', '0.4')],
  ['credit is released on a later day', 'correction_dated', at(1589, '2026-05-01', '2026-12-01')],
  [
    'a credit note says that more is left',
    'credit_states_rest',
    [/^(?<before>documents\t1597\t(?:[^\t]*\t){41})[^\t]*/m, '$<before>0.999'],
  ],
  ['a payment by hand is lower', 'identity_of_payment', at(1557, '\t2170\t', '\t2000\t')],
  ['a bank line is lower', 'identity_of_payment', at(1409, '\t20.82\t', '\t10.82\t')],
  [
    'a payment comes a month earlier',
    'identity_of_payment',
    at(1856, '2026-07-01\t2026-07-01', '2026-06-01\t2026-06-01'),
  ],
  ['a payment is reversed as another kind', 'details_of_event', at(1974, '\trefunded\t', '\treturned\t')],
  ['a dispute was promised for another day', 'details_of_event', at(1777, 'Ada\t2026-06-01', 'Ada\t2026-09-01')],
  ['a client belongs to another partner', 'details_of_event', at(1371, '\tp-3\t', '\tp-1\t')],
  ['an import of partners is missing', 'details_of_event', [/^audit_events\t1485\t.*\n/m, '']],
  ['a revoked role is kept', 'details_of_event', [/^user_roles\t.*\trevoke\t.*\n/m, '']],
  ['a user is invited by an approver', 'act_in_role', [/^(audit_events\t.*\tuser\.invite\t.*)\t5$/m, '$1\t4']],
  [
    'an opening is higher with its control',
    'opening_of_event',
    at(1884, '14.83\t0\t36.86\t-22.03', '20\t0\t36.86\t-16.86'),
  ],
  ['books cover less than they say', 'books_in_order', at(1573, '\t1567\t', '\t1555\t')],
  [
    'books say that the bank was reported later',
    'books_name_bank_feeds',
    at(1864, 'reported_to=2026-06-01', 'reported_to=2026-07-31'),
  ],
  ['a month closes while it goes on', 'month_ended_everywhere', at(1804, '2026-07-01T12', '2026-07-01T01')],
  ['a setting changes from another value', 'changes_continue', at(1940, 'old=all', 'old=none')],
  ['an approver is not counted', 'close_states_approvals', at(1591, 'approvers:2', 'approvers:1')],
  ['sales go on while the ledger is paused', 'nothing_while_paused', [/^resumptions\t.*\n/m, '']],
  [
    'a share comes in another month',
    'share_dated',
    [/^(?<before>share_allocations\t(?:[^\t]*\t){16})[^\t]*/m, '$<before>2026-01-02'],
  ],
  ['an e-invoice has another buyer', 'e_invoice', at(1902, 'buyer.city=Berlin', 'buyer.city=Bern')],
  [
    'an e-mail has the PDF of another document',
    'email_attempt',
    [/^(email_attempts\t.*<INV-2026-00000)4(\..*)$/m, '$18$2'],
  ],
  ['an export goes to another account', 'gl_of_event', at(1221, '\tSales\t', '\tPrivate\t')],
  ['an exported total is another', 'details_of_event', at(1215, 'totals.KWD=0.433', 'totals.KWD=0.933')],
];

const CASES = FORGERIES.map(([sentence, rule, ...changes]) => ({ sentence, rule, changes }));
test.for(CASES)('$sentence: $rule', ({ rule, changes }, context) => {
  needs('python3', context);
  const forged = changes.reduce<string>((log, [from, to]) => log.replace(from, to), honest);
  expect(forged).not.toBe(honest);
  const file = join(folder, 'log.tsv');
  writeFileSync(file, forged);
  expect(inSqlite(CHECKS, file).map((line) => line.split('\t')[0])).toContain(rule);
});
