/**
 * What an auditor from outside tried as the owner of the database, each line once, with the checks that name it, and the few
 * that nothing names. Other ways are in tampering.test.ts, insider.test.ts and verify.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import type { Transaction } from '../../src/database/transaction.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { tradeByHttp } from '../support/service.ts';
import { quote, type World } from '../support/world.ts';
import { checkpoint, openBooks } from './books.ts';
import { failing } from './failing.ts';
import { type Owner, openOwner } from './owner.ts';

let world: World;
let owner: Owner;

/** September is closed, October open: what is in it is under a checkpoint, but for the last import and acceptances. */
beforeAll(async () => {
  world = await openBooks();
  await world.rows([1, 2, 3].map((day) => quote({ quote_id: `q-early-${day}`, accepted_at: '2026-10-01T08:00:00Z' })));
  await checkpoint(world);
  world.at('2026-10-02T10:00:00Z');
  await tradeByHttp(world);
  await world.rows([1, 2, 3].map((day) => quote({ quote_id: `q-late-${day}`, accepted_at: '2026-10-02T08:00:00Z' })));
  owner = openOwner(world);
}, 120_000);
afterAll(async () => {
  await owner.close();
  await world.end();
});

/** Does the statements with every guard switched off, and gives the names of the checks and rules that find something. */
const named = (statements: readonly string[]): Promise<string[]> =>
  owner.undone(async (tx: Transaction) => {
    await tx.knex.raw(GUARDS_OFF);
    for (const statement of statements) {
      const { rowCount } = (await tx.knex.raw(statement)) as { rowCount: number | null };
      if (/^(UPDATE|DELETE|INSERT)/.test(statement)) expect([statement, rowCount]).not.toEqual([statement, 0]);
    }
    await tx.knex.raw(GUARDS_ON);
    return failing(await verify(tx, undefined, { schema: world.schema }));
  });

test('untouched, nothing is named', async () => {
  expect(await named([])).toEqual([]);
});

const LOG = 'log_derived_again';

type Line = [what: string, checks: readonly string[], ...statements: string[]];

const PARKING = `policy_id = 'parking' AND month = '2026-07'`;
const JULY = `(SELECT document_id FROM documents WHERE partner_id = 'p-1' AND month = '2026-07' AND purpose = 'month')`;
const MORE = 'spot_price = spot_price + 1, invoice_amount = invoice_amount + 1';
/** A PDF of September, the last closed month: it is drawn after the close, so the checkpoint of October covers it. */
const LAST_PDF = `(SELECT max(document_id) FROM document_pdfs)`;
const OTHER_PDF = `pdf = '\\x25504446'::bytea, sha256 = encode(sha256('\\x25504446'::bytea), 'hex')`;
const CLOSED_PDF = `(SELECT min(document_id) FROM document_pdfs)`;

/** Closed months; no checkpoint is taken again. */
const CLOSED: readonly Line[] = [
  [
    'a row, its line and its invoice raised together',
    [LOG, 'document_pdfs_as_issued', 'import_totals'],
    `UPDATE ledger_rows SET ${MORE} WHERE partner_id = 'p-1' AND ${PARKING}`,
    `UPDATE document_lines SET ${MORE} WHERE ${PARKING} AND document_id IN ${JULY}`,
    `UPDATE documents SET ${MORE} WHERE document_id IN ${JULY}`,
  ],
  [
    "money moved from our share of a row to the partner's cut",
    [LOG, 'import_totals'],
    `UPDATE ledger_rows SET partner_cut = partner_cut + 1, invoice_amount = invoice_amount - 1
     WHERE partner_id = 'p-1' AND ${PARKING}`,
  ],
  [
    'the quotes of two customers exchanged',
    [LOG],
    'DROP INDEX ledger_rows_known_once',
    `UPDATE ledger_rows SET quote_id = (
       SELECT o.quote_id FROM ledger_rows o WHERE o.posted_month = '2026-09' AND o.entry_id <> ledger_rows.entry_id
       ORDER BY o.entry_id LIMIT 1)
     WHERE entry_id IN (SELECT entry_id FROM ledger_rows WHERE posted_month = '2026-09' ORDER BY entry_id LIMIT 2)`,
  ],
  [
    'a quote deleted, with its line',
    [LOG, 'import_totals', 'document_pdfs_as_issued'],
    `DELETE FROM ledger_rows WHERE partner_id = 'p-1' AND ${PARKING}`,
    `DELETE FROM document_lines WHERE ${PARKING} AND document_id IN ${JULY}`,
  ],
  [
    'an invoice deleted, and the numbers after it moved up',
    [LOG, 'documents_of_rows'],
    `DELETE FROM documents WHERE number = 'INV-2026-000003'`,
    `UPDATE documents SET sequence = sequence - 1 WHERE series = 'INV-2026' AND sequence > 3`,
  ],
  ['the e-mails of a month deleted', ['emails_consistent'], 'DELETE FROM emails', 'DELETE FROM email_attempts'],
  [
    'a PDF replaced with its hash, under the next close',
    [LOG, 'document_pdfs_as_issued'],
    `UPDATE document_pdfs SET ${OTHER_PDF} WHERE document_id = ${CLOSED_PDF}`,
  ],
  [
    'a PDF replaced with its hash, said to be drawn by other libraries, before the next close',
    [LOG],
    `UPDATE document_pdfs SET ${OTHER_PDF}, libraries = '{"fontkit": "0"}' WHERE document_id = ${LAST_PDF}`,
  ],
  [
    'an invisible character in the name of a policy, which the PDF does not show either',
    [LOG],
    `UPDATE document_lines SET policy_name = policy_name || chr(8203) WHERE ${PARKING}`,
  ],
  ['a void taken away', [LOG, 'event_has_fact', 'one_live_document'], 'DELETE FROM voids'],
  ['the id of the installation', [LOG], `UPDATE installation SET installation_id = 'aaaaaaaaaaaa'`],
  ['the last fact of closed books', [LOG], `UPDATE book_closes SET facts_to = facts_to - 1 WHERE month = '2026-07'`],
  [
    'our bank details as they were printed',
    [LOG, 'document_pdfs_as_issued'],
    `UPDATE instruction_versions SET content = replace(content::text, 'Sandbox', 'Evil')::jsonb`,
  ],
  [
    'our own name as it was printed',
    [LOG, 'document_pdfs_as_issued'],
    `UPDATE issuer_versions SET content = replace(content::text, 'Sandbox', 'Evil')::jsonb`,
  ],
  [
    'the last month opened again',
    [LOG],
    `DELETE FROM log_checkpoints WHERE closes = 'month 2026-09'`,
    `DELETE FROM closed_months WHERE month = '2026-09'`,
  ],
  [
    'a second live invoice for the same rows',
    ['one_live_document'],
    'DROP INDEX document_one_live_per_month',
    `DELETE FROM voids WHERE document_id = (SELECT min(document_id) FROM voids)`,
  ],
];

describe('in closed months, verify names', () => {
  test.each(CLOSED)('%s', async (_, checks, ...statements) => {
    expect(await named(statements)).toEqual(expect.arrayContaining([...checks]));
  });
});

const ROW = (quoteId: string) => `WHERE quote_id = '${quoteId}'`;
const COLUMNS = `partner_id, posted_month, kind, enrollment_id, policy_id, currency, accepted_at, spot_price, partner_cut,
  invoice_amount, time_zone, month, arrangement, recorded_at`;
const ACCEPTED = `(SELECT quote_id FROM quote_acceptances)`;
const REQUOTE_EVENT = `action = 'requote.accept' AND occurred_at = (SELECT max(occurred_at) FROM audit_events)`;

/** The open month, up to the day's checkpoint and since. */
const OPEN: readonly Line[] = [
  ['a price before the checkpoint', [LOG, 'import_totals'], `UPDATE ledger_rows SET ${MORE} ${ROW('q-early-1')}`],
  ['a price since', ['import_totals'], `UPDATE ledger_rows SET ${MORE} ${ROW('q-late-1')}`],
  ['a row deleted before the checkpoint', [LOG, 'import_totals'], `DELETE FROM ledger_rows ${ROW('q-early-2')}`],
  ['a row deleted since', ['import_totals'], `DELETE FROM ledger_rows ${ROW('q-late-2')}`],
  [
    'the other partner of a row before the checkpoint',
    [LOG],
    `UPDATE ledger_rows SET partner_id = 'p-2' ${ROW('q-early-1')}`,
  ],
  [
    'a row slipped into an import',
    ['import_totals'],
    `INSERT INTO ledger_rows (quote_id, event_id, ${COLUMNS})
     SELECT 'q-invented', event_id, ${COLUMNS} FROM ledger_rows ${ROW('q-late-1')}`,
  ],
  [
    'a row of no event',
    ['row_of_event'],
    `INSERT INTO ledger_rows (quote_id, event_id, ${COLUMNS})
     SELECT 'q-invented', 999999, ${COLUMNS} FROM ledger_rows ${ROW('q-late-1')}`,
  ],
  [
    'a row pushed to a month that nobody will close',
    ['row_posted'],
    `UPDATE ledger_rows SET posted_month = '2099-12' ${ROW('q-late-1')}`,
  ],
  [
    'an acceptance over HTTP at another price, with its quote',
    ['rows_at_offered_prices'],
    `UPDATE ledger_rows SET ${MORE} WHERE quote_id = ${ACCEPTED} AND kind = 'quote_accepted'`,
  ],
  [
    'an acceptance by another client',
    ['acceptance_has_row'],
    `INSERT INTO api_clients (client_id, partner_id, created_at, event_id)
     SELECT 'c-other', partner_id, created_at, event_id FROM api_clients LIMIT 1`,
    `UPDATE quote_acceptances SET client_id = 'c-other'`,
  ],
  [
    'an acceptance taken away',
    ['rows_of_every_event'],
    'DELETE FROM requote_acceptances',
    `DELETE FROM ledger_rows WHERE kind = 'requote_accepted' AND quote_id = ${ACCEPTED}`,
  ],
  [
    'the client in the event of an acceptance',
    ['acceptance_has_row'],
    `UPDATE audit_events SET details = '{"client_id": "c-other"}' WHERE ${REQUOTE_EVENT}`,
  ],
  [
    'who did something before the checkpoint',
    [LOG],
    `UPDATE audit_events SET os_user = 'friend'
     WHERE event_id = (SELECT event_id FROM ledger_rows ${ROW('q-early-1')})`,
  ],
];

describe('in the open month, verify names', () => {
  test.each(OPEN)('%s', async (_, checks, ...statements) => {
    expect(await named(statements)).toEqual(expect.arrayContaining([...checks]));
  });
});

/** What was done since the last checkpoint and leaves everything consistent. The next checkpoint covers what it finds. */
const UNNAMED: readonly [what: string, ...statements: string[]][] = [
  [
    'the other enrollment of a row since the checkpoint: the totals of its import are as before',
    `UPDATE ledger_rows SET enrollment_id = 'e-other' ${ROW('q-late-1')}`,
  ],
  [
    'a row since the checkpoint together with its receipt and the totals in its event: all say the same',
    `UPDATE ledger_rows SET ${MORE} ${ROW('q-late-1')}`,
    `UPDATE audit_events SET details = jsonb_set(jsonb_set(details, '{totals,USD,spotPrice}', '"31"'),
       '{totals,USD,invoiceAmount}', '"22"')
     WHERE event_id = (SELECT event_id FROM ledger_rows ${ROW('q-late-1')})`,
    `UPDATE ledger_receipts SET ${MORE} WHERE event_id = (SELECT event_id FROM ledger_rows ${ROW('q-late-1')})`,
  ],
  [
    'who did something since the checkpoint: an event says what it says',
    `UPDATE audit_events SET os_user = 'friend'
     WHERE event_id = (SELECT event_id FROM ledger_rows ${ROW('q-late-1')})`,
  ],
];

describe('verify cannot name, and a checkpoint taken in time would have,', () => {
  test.each(UNNAMED)('%s', async (_, ...statements) => {
    expect(await named(statements)).toEqual([]);
  });
});

test('the database refuses the bytes of a PDF without its hash', async () => {
  await expect(
    named([`UPDATE document_pdfs SET pdf = '\\x00'::bytea WHERE document_id = ${LAST_PDF}`]),
  ).rejects.toThrow(/check constraint/);
});

test.each([
  ['an invisible character', `chr(8203)`],
  ['a letter that looks like another', `chr(1072)`],
])('the database refuses %s in the id of a quote, with every guard off', async (_, character) => {
  await expect(
    named([`UPDATE ledger_rows SET quote_id = quote_id || ${character} ${ROW('q-late-1')}`]),
  ).rejects.toThrow(/ledger_rows_ids_form/);
});
