#!/usr/bin/env node
/**
 * Checks a pack exported by Reckoner, or a proof. It needs Node 20.12 or later and nothing else, and only reads.
 *
 *   node verify.mjs PACK                      check the pack in that folder
 *     --previous PACK                         … and that it continues an earlier pack
 *     --seal 2026-07=5f0c…                    … and that a month has the seal that you received
 *     --books-seal 2026-07=9b41…              … and that its books have the seal that you received
 *     --checkpoint 12=77ab…                   … and that a checkpoint has the seal that you received
 *     --key VKEY                              … and that every record is signed by this key, or by another that you name
 *     --seal FILE --witness VKEY              … a seal from a signed note, which the key of a witness has signed
 *     --countersign 2026-07 --private-key auditor.pem --name NAME --out FILE
 *                                             … and, if all checks hold, sign the record of a month with your own key
 *   node verify.mjs PROOF.json [--seal …]     check that a row, a document, a payment or an event is under a seal
 *   node verify.mjs --public-key auditor.pem --name NAME    print the VKEY of a key
 *
 * Take it from a release of Reckoner, never from the maker of the pack, and compare its SHA-256 with the one in
 * docs/auditors.md or in a seal's e-mail. docs/pack-format.md is the grammar that it follows, and verify.py does the same.
 * It parses first and checks then: a pack that is not exactly as the grammar says is refused.
 *
 * To read it: first GRAMMAR, the tables that say what a pack is; then `checkPack` near the end, the order of the checks;
 * then each check, top to bottom. READING only cuts files into lines, fields and cells.
 *
 * Exit status: 0 all checks hold, 1 refused, 2 nothing could be checked.
 */
import { createHash, createPublicKey, hash, sign, verify } from 'node:crypto';
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

// === OUTPUT ==========================================================================================================

/** A text from a pack, safe to print: control, format and direction characters are shown as \u{…}. */
const printable = (text) =>
  text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (each) => `\\u{${each.codePointAt(0).toString(16)}}`);
const print = (text) => console.log(printable(text));

/** The grammar is violated. */
class Malformed extends Error {}
/** A refusing check has failed; nothing after it is read. */
class Refused extends Error {}
/** Nothing can be checked: exit status 2. */
class Unusable extends Error {}

function malformed(place, what) {
  throw new Malformed(`${place}: ${what}`);
}

/** What a check found. Only the first problems are kept: a forged pack can have millions. */
const SHOWN = 20;
class Findings {
  problems = new Map();
  notes = [];
  add(check, problem) {
    const of = this.of(check);
    of.count += 1;
    if (of.count <= SHOWN) of.first.push(problem);
  }
  of(check) {
    if (!this.problems.has(check)) this.problems.set(check, { count: 0, first: [] });
    return this.problems.get(check);
  }
}

const failed = [];
let total = 0;
const REFUSING = new Set(['layout', 'manifest', 'records', 'files', 'tables', 'proof']);

/** Runs a check and prints its result. `work` returns what it inspected. Reading may already have found problems. */
function check(findings, name, work) {
  let looked = '';
  try {
    looked = work();
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    findings.add(name, error.message);
  }
  const { count, first } = findings.of(name);
  print(`${count === 0 ? 'ok  ' : 'FAIL'}  ${name.padEnd(20)} ${looked}`);
  for (const problem of first) print(`      ${problem}`);
  if (count > SHOWN) print(`      … and ${count - SHOWN} more`);
  for (const note of findings.notes.splice(0)) print(`note  ${note}`);
  if (count === 0) return;
  failed.push(name);
  total += count;
  if (REFUSING.has(name)) throw new Refused();
}

// === GRAMMAR =========================================================================================================

const words = (text) => text.split(' ');
const whole = (pattern) => new RegExp(`^(?:${pattern})$`);

const MONTH = '\\d{4}-(?:0[1-9]|1[0-2])';
const DAY = `${MONTH}-(?:0[1-9]|[12]\\d|3[01])`;
const TIME = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d';
const INSTANT = `${DAY}T${TIME}\\.\\d{6}Z`;
const NUMBER = '(?:0|[1-9]\\d{0,14})';
const HASH = '[0-9a-f]{64}';
const AMOUNT = '(?:0|-?(?:0\\.\\d{0,3}[1-9]|[1-9]\\d*(?:\\.\\d{0,3}[1-9])?))';
/** An amount of a data file, with the digits of its currency. */
const WITH_DIGITS = '-?(?:0|[1-9]\\d*)(?:\\.\\d{1,4})?';
const CURRENCY = '[A-Z]{3}';
const NAME = '[a-z][a-z0-9_]*';
const INSTALLATION = '[0-9a-f]{12} (?:production|sandbox)';
const CONTROL = '[a-z][a-z0-9-]*(?::[a-z0-9-]+)*';
const [IS_NUMBER, IS_MONTH, IS_DAY, IS_HASH] = [NUMBER, MONTH, DAY, HASH].map(whole);
const [IS_NAME, IS_CURRENCY, IS_AMOUNT, IS_WITH_DIGITS] = [NAME, CURRENCY, AMOUNT, WITH_DIGITS].map(whole);

/** The lines of each kind of record in order: the first word, the form of the rest, and whether it repeats. */
const PREVIOUS = `none|(?<month>${MONTH}) (?<seal>${HASH})`;
const MANY = true;
const RECORDS = {
  seal: [
    ['reckoner', 'seal 1'],
    ['installation', `(?<text>${INSTALLATION})`],
    ['month', `(?<text>${MONTH})`],
    ['previous', PREVIOUS],
    ['issued_on', DAY],
    ['closed_at', INSTANT],
    ['sealed_at', `(?<text>${INSTANT})`],
    ['rows', `(?<text>${NUMBER})`],
    ['rows_root', `(?<text>${HASH})`],
    ['rows_columns', `(?<text>${NAME}(?: ${NAME})*)`],
    [
      'closed_with',
      `(?<text>${NUMBER}) rows, ${NUMBER} late, ${NUMBER} partners with documents, ${NUMBER} without activity`,
    ],
    ['total', `(?<key>${CURRENCY}) (?<sums>${AMOUNT} ${AMOUNT} ${AMOUNT})`, MANY],
    ['facts', `(?<first>${NUMBER}) to (?<last>${NUMBER})`],
    ['facts_of', `(?<key>${NAME}) (?<rows>${NUMBER}) (?<hash>${HASH})`, MANY],
  ],
  books: [
    ['reckoner', 'books 1'],
    ['installation', `(?<text>${INSTALLATION})`],
    ['month', `(?<text>${MONTH})`],
    ['previous', PREVIOUS],
    ['sealed_after', `(?<month>${MONTH}) (?<seal>${HASH})`],
    ['closed_at', INSTANT],
    ['facts_to', `(?<text>${NUMBER})`],
    ['entries', `(?<rows>${NUMBER}) (?<hash>${HASH})`],
    ['accounts', `(?<rows>${NUMBER}) (?<hash>${HASH})`],
    ['we_are', '(?<text>supplier_to_partner|principal)'],
    ['balance', `(?<key>${CONTROL} ${CURRENCY}) (?<amount>${AMOUNT})`, MANY],
  ],
  checkpoint: [
    ['reckoner', 'checkpoint 1'],
    ['installation', `(?<text>${INSTALLATION})`],
    ['checkpoint', `(?<text>${NUMBER})`],
    ['previous', `none|(?<number>${NUMBER}) (?<seal>${HASH})`],
    ['sealed_after', `(?<text>none|${MONTH} ${HASH})`],
    ['taken_at', `(?<text>${INSTANT})`],
    ['entries', `(?<first>${NUMBER}) to (?<last>${NUMBER})`],
    ['rows_columns', `(?<text>${NAME}(?: ${NAME})*)`],
    ['rows', `(?<key>${MONTH}) (?<rows>${NUMBER}) (?<hash>${HASH})`, MANY],
    ['facts', `(?<first>${NUMBER}) to (?<last>${NUMBER})`],
    ['facts_of', `(?<key>${NAME}) (?<rows>${NUMBER}) (?<hash>${HASH})`, MANY],
  ],
};

/** 1 row, 2 rows. */
const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;

/** The interpreted tables and columns. All others are only compared with their seal. */
const SUMS = words('spot_price partner_cut invoice_amount');
const BILL = words('partner_id month currency arrangement');
const EVENT = words('event_id occurred_at action subject details claimed_by os_user host via user_id');
const PAYMENT = words(
  'payment_id received_on entry_on partner_id currency amount method account reference payer_name payer_account source ' +
    'identity recorded_at',
);
const MOVED = 'entry_on recorded_at';
const INTERPRETED = {
  documents:
    'document_id number series sequence document purpose partner_id month currency arrangement issued_on due_on entry_on ' +
    'enrollments entries spot_price partner_cut invoice_amount credit_applied partner_name replaces credits reason ' +
    'opening_id opening_number opening_revision original_amount',
  openings: 'opening_id cut_over_on',
  opening_totals: 'opening_id currency items invoices credits cash control',
  skipped_numbers: 'series first_sequence last_sequence event_id',
  user_roles: 'user_role_id user_id action role partner_id source',
  user_ends: 'user_id',
  approval_requests: 'request_id requested_by expires_at',
  approval_decisions: 'request_id requested_by decision decided_by recorded_at event_id',
  document_lines: 'document_id position policy_id policy_name kind month count spot_price partner_cut invoice_amount',
  document_taxes: 'document_id position currency country category rate taxable tax line_positions',
  voids: `document_id partner_id month currency arrangement reason voided_on event_id ${MOVED}`,
  document_pdfs: 'document_id sha256',
  credit_applications: `credit_application_id credit_note_id invoice_id amount applied_on event_id ${MOVED}`,
  credit_releases: `credit_application_id released_on event_id ${MOVED}`,
  write_offs: `write_off_id document_id amount reason written_off_on event_id ${MOVED}`,
  write_off_reversals: `write_off_id reason reversed_on event_id ${MOVED}`,
  payments: `${PAYMENT.join(' ')} opening_id opening_number`,
  payment_assignments: `payment_assignment_id payment_id from_partner_id partner_id amount assigned_on ${MOVED}`,
  payment_applications: `payment_application_id payment_id document_id partner_id currency amount applied_on evidence ${MOVED}`,
  payment_unapplications: `payment_application_id payment_reversal_id unapplied_on ${MOVED}`,
  small_differences: `payment_application_id document_id currency amount ${MOVED}`,
  payment_reversals: `payment_reversal_id payment_id partner_id currency amount kind code reason booked_to reversed_on ${MOVED}`,
  payment_reinstatements: 'payment_reversal_id partner_id reinstated_on entry_on',
  payouts: 'payout_id bank_line_id account currency amount received_on entry_on',
  payout_settlements: 'payout_id fees entry_on',
  bank_lines:
    'bank_line_id account currency direction amount bank_booked_on value_on bank_reference text payer_name payer_account ' +
    'type is_reversal return_code',
  bank_statement_lines: 'bank_statement_id position bank_line_id',
  bank_statements: 'bank_statement_id bank_file_id reference opening closing credits debits lines',
  bank_line_outcomes: 'bank_line_id outcome payment_id payout_id payment_reversal_id needs_review reason',
  bank_files: 'bank_file_id name sha256 recorded_at',
  credit_refunds: `credit_refund_id document_id partner_id account currency amount reference refunded_on ${MOVED}`,
  credit_refund_returns: `credit_refund_id reason returned_on ${MOVED}`,
  refund_matches: 'refund_match_id credit_refund_id payment_reversal_id account currency amount paid_on entry_on',
  share_allocations:
    'share_allocation_id balance_transaction_id partner_id currency amount settled_currency settled_amount occurred_on entry_on',
  share_payments: 'share_allocation_id amount',
  balance_transactions: 'balance_transaction_id id',
  book_closes: 'month facts_to record seal',
  checkpoints: 'checkpoint_number facts_to entries_to taken_at record seal',
  seal_signatures: 'kind name seal key_name public_key signature signed_at',
  gl_exports: 'gl_export_id month format part kind seal books_closed recorded_at event_id',
  gl_export_lines:
    'gl_export_id line control account partner_id policy_id currency amount to_account class location name memo',
  gl_export_files: 'gl_export_id position name sha256',
  seal_time_stamps: 'kind name seal authority stamped_at recorded_at response_sha256',
};
/** Tables that only a pack of their kind compares. */
const INTERPRETED_FOR = {
  events: { audit_events: EVENT.join(' ') },
  partners: { audit_events: EVENT.join(' ') },
};
/** The details of events that skipped numbers, closed months or decided on requests; for payments, the action of all events. */
const RESUMPTION = { audit_events: 'event_id action subject details user_id' };
const isNeeded = ({ action, details }) =>
  action === 'ledger.resume' || action === 'month.close' || action?.startsWith('approval.') || isAlone({ details });
/** Done by one person, because no one else could approve it. */
const isAlone = ({ details }) => details?.includes('"one_person"') && 'one_person' in jsonOrEmpty(details);
const ROW = ['entry_id', 'posted_month', ...BILL, 'policy_id', 'kind', ...SUMS];
const ENTRY = words('fact fact_id entry_on dated_on debit credit currency amount document reference');
const ACCOUNT = words('control account currency amount');

/** Interpreted columns that have a form, and are never NULL. */
const FORMS = new Map(
  Object.entries({
    [AMOUNT]: [...SUMS, 'amount', 'credit_applied', 'fees', 'settled_amount', 'rate', 'taxable', 'tax'],
    [NUMBER]: words(
      'sequence first_sequence last_sequence position count entries lines facts_to entries_to document_id event_id entry_id checkpoint_number',
    ),
    [MONTH]: ['month', 'posted_month'],
    [DAY]: ['entry_on', 'dated_on'],
    [CURRENCY]: ['currency'],
  }).flatMap(([form, columns]) => columns.map((column) => [column, whole(form)])),
);

/** The data files of a pack: their columns, and `json` those of .jsonl where they differ. */
const CSV_OR_JSON = ['csv', 'jsonl'];
const LEDGER_SUMS = words('spotPrice partnerCut invoiceAmount');
const DOCUMENT_SUMS = [...LEDGER_SUMS, ...words('credit_applied amount_due credited amount_paid balance')];
const MOVE = 'move document currency amount dated_on entry_on why recorded_at';
const DATA_COLUMNS = {
  ledger: words(
    'kind partner_id quote_id requote_id reversal_id enrollment_id policy_id currency accepted_at spotPrice partnerCut ' +
      'invoiceAmount entry_id posted_month recorded_at document',
  ),
  invoices: words(
    'number series sequence document purpose status partner_id partner_name month currency arrangement issued_on due_on ' +
      `enrollments ${DOCUMENT_SUMS.join(' ')} pdf_sha256 email_status sent_at replaces replaced_by credits ` +
      'reason voided_on void_reason',
  ),
  'invoice-lines': words(
    'number position policy_id policy_name kind month count currency spotPrice partnerCut invoiceAmount',
  ),
  events: EVENT,
  payments: [...PAYMENT, 'applied', 'reversed', 'unapplied', 'status'],
  'payment-moves': words(`payment_id ${MOVE}`),
  'credit-moves': words(`credit_note ${MOVE}`),
  voids: words(
    'number document_id partner_id month currency arrangement reason voided_on entry_on recorded_at event_id',
  ),
  'write-offs': words(
    'fact_id write_off_id move document partner_id currency amount reason dated_on entry_on recorded_at event_id',
  ),
  openings: words(
    'fact_id opening_id cut_over_on kind number partner_id date due_on currency original_amount amount status balance',
  ),
  'bank-lines': words(
    'bank_statement_id position bank_line_id account currency direction amount bank_booked_on value_on bank_reference ' +
      'text payer_name payer_account type is_reversal return_code outcome payment_id payout_id payment_reversal_id ' +
      'needs_review reason statement file file_sha256 recorded_at',
  ),
  partners: words(
    'partner_id name address.line1 address.line2 address.city address.region address.postal_code address.country ' +
      'invoicing_contact.name invoicing_contact.email invoicing_contact.cc currency time_zone payment_terms_days active ' +
      'tax_id purchase_order legal_note parent account_statement e_invoice buyer_reference electronic_address arrangement ' +
      'arrangement_from connected_account_id merchant_of_record split settlement_currencies connected_account_type connected_account_state balance_transactions_from',
  ),
  policies: words('partner_id policy_id name kind active partner_cut_rate price.rate price.minimum largest_price'),
  'partner-changes': words(
    'event_id occurred_at partner_id action field old new import_event_id claimed_by os_user host via',
  ),
  dictionary: words('file column type meaning'),
  'opening-balances': words('account currency amount'),
  journal: words('entry_on dated_on fact fact_id account partner_id policy_id currency amount document reference'),
  'gl-exports': words(
    'gl_export_id month format part kind seal books_closed position file sha256 recorded_at event_id',
  ),
  'gl-lines': words(
    'gl_export_id line month format part external_id control account partner_id policy_id currency amount to_account ' +
      'class location name memo',
  ),
};
const JSON_COLUMNS = {
  invoices: words(
    'number series sequence document purpose status partner_id month currency issued_on due_on enrollments ' +
      `${DOCUMENT_SUMS.join(' ')} lines pdf email replaces replaced_by credits void_reason`,
  ),
};
const AMOUNTS = new Set([...DOCUMENT_SUMS, 'amount', 'original_amount']);
const TIMES = new Set(words('accepted_at recorded_at occurred_at'));
/** The columns with totals in the manifest, by the kind of pack and its first data file. */
const SUMMED = { ledger: LEDGER_SUMS, invoices: DOCUMENT_SUMS, payments: ['amount'] };

/** The data files of a pack of this kind and format; undefined if there is no such pack. */
function dataFiles(kind, format) {
  if (kind === 'journal' && format === 'hledger') return ['journal.ledger'];
  if (kind === 'journal' && format === 'beancount') return ['journal.beancount'];
  if (!CSV_OR_JSON.includes(format)) return undefined;
  const names = {
    ledger: ['ledger'],
    invoices: ['invoices', ...(format === 'csv' ? ['invoice-lines'] : []), 'voids', 'write-offs', 'openings'],
    payments: ['payments', 'payment-moves', 'credit-moves', 'bank-lines'],
    partners: ['partners', 'policies', 'partner-changes'],
    events: ['events'],
    journal: ['opening-balances', 'journal', 'gl-exports', 'gl-lines'],
  };
  return Object.hasOwn(names, kind) ? names[kind].map((name) => `${name}.${format}`) : undefined;
}

const isTable = (name) => /\.(?:csv|jsonl)$/.test(name);
const DATA_FILE = `(?:${Object.keys(DATA_COLUMNS).join('|')})\\.(?:csv|jsonl|parquet)|journal\\.(?:ledger|beancount)`;
const KNOWN_FILE = whole(
  `manifest\\.json|README\\.txt|${DATA_FILE}|` +
    `sealed/${MONTH}/(?:record\\.(?:txt|sig|tsr)|${NAME}\\.tsv)|` +
    `books/${MONTH}/(?:record\\.(?:txt|sig|tsr)|entries\\.tsv|accounts\\.tsv)`,
);
const KNOWN_FOLDER = whole(`(?:sealed|books)(?:/${MONTH})?`);

// === HELPERS =========================================================================================================

/** A canonical amount as an integer of ten-thousandths: no currency has more decimals. */
function units(text) {
  const point = text.indexOf('.');
  if (point < 0) return BigInt(text) * 10000n;
  return BigInt(text.slice(0, point) + text.slice(point + 1).padEnd(4, '0'));
}
const canonical = (amount) => (amount.includes('.') ? amount.replace(/\.?0+$/, '') : amount);
const negated = (amount) => (amount === '0' ? '0' : amount.startsWith('-') ? amount.slice(1) : `-${amount}`);

function monthAfter(month) {
  const [year, number] = month.split('-').map(Number);
  return number === 12
    ? `${String(year + 1).padStart(4, '0')}-01`
    : `${month.slice(0, 5)}${String(number + 1).padStart(2, '0')}`;
}

const ascending = (texts) => texts.every((text, index) => index === 0 || texts[index - 1] < text);
const sha256 = (text) => hash('sha256', text);
const firstOf = (map) => map.values().next().value;
const groupBy = (map, key) => map.get(key) ?? map.set(key, []).get(key);

function asObject(columns, values) {
  const object = {};
  for (let index = 0; index < columns.length; index += 1) object[columns[index]] = values[index];
  return object;
}

/** Sums of several amounts by key. */
function addTo(sums, key, values) {
  const before = sums.get(key);
  if (before === undefined) sums.set(key, [...values]);
  else for (let index = 0; index < values.length; index += 1) before[index] += values[index];
}
const keysOf = (...maps) => new Set(maps.flatMap((map) => [...map.keys()]));

/** Keys, each as often as it was added. */
class Bag {
  counts = new Map();
  add(key) {
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
  }
  take(key) {
    const count = this.counts.get(key);
    if (count === 1) this.counts.delete(key);
    else if (count !== undefined) this.counts.set(key, count - 1);
    return count !== undefined;
  }
}

/** The sealed fact of another table that a column's value names. */
const byId = (pack, table, column) => new Map(pack.of(table).map((each) => [each[column], each]));

/** The root of a Merkle tree (RFC 9162, 2.1.1), from its leaves in order. Hashes are texts of 32 one-byte characters. */
class MerkleTree {
  subtrees = [];
  leaves = 0;
  add(line) {
    this.leaves += 1;
    let tree = { hash: leafHash(line), leaves: 1 };
    for (let left = this.subtrees.at(-1); left?.leaves === tree.leaves; left = this.subtrees.at(-1))
      tree = { hash: nodeHash(this.subtrees.pop().hash, tree.hash), leaves: 2 * tree.leaves };
    this.subtrees.push(tree);
  }
  root() {
    if (this.subtrees.length === 0) return sha256('');
    return hexOf(this.subtrees.map((each) => each.hash).reduceRight((right, left) => nodeHash(left, right)));
  }
}
const leafHash = (line) => hash('sha256', `\0${line}`, 'latin1');
const nodeHash = (left, right) => hash('sha256', Buffer.from(`\x01${left}${right}`, 'latin1'), 'latin1');
const hexOf = (bytes) => Buffer.from(bytes, 'latin1').toString('hex');

// === READING =========================================================================================================

/** The lines of a file without their LF. The file is UTF-8, and its last line ends with LF too. */
function* linesOf(pack, name) {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const file = openSync(join(pack.folder, name));
  try {
    const piece = Buffer.alloc(1 << 18);
    let rest = '';
    for (;;) {
      const length = readSync(file, piece);
      const lines = (rest + decoded(decoder, piece.subarray(0, length), length > 0, name)).split('\n');
      rest = lines.pop();
      yield* lines;
      if (length === 0) break;
    }
    if (rest !== '') malformed(name, 'its last line does not end');
  } finally {
    closeSync(file);
  }
}

function decoded(decoder, bytes, more, name) {
  try {
    return decoder.decode(bytes, { stream: more });
  } catch {
    return malformed(name, 'is not UTF-8');
  }
}

const LONGEST_TEXT = 1 << 26;
/** A small file whole. */
function textOf(folder, name) {
  const path = join(folder, name);
  if (statSync(path).size > LONGEST_TEXT) malformed(name, 'is too long');
  return decoded(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }), readFileSync(path), false, name);
}

function parsedJson(text, place) {
  try {
    return JSON.parse(text);
  } catch {
    return malformed(place, 'is not JSON');
  }
}

/** JSON exactly as the program writes it, so that no key occurs twice. */
function jsonOf(text, name) {
  const value = parsedJson(text, name);
  // Half of a surrogate pair cannot be written as UTF-8.
  if (`${JSON.stringify(value, null, 2)}\n` !== text || /\\ud[89a-f]/i.test(text))
    malformed(name, 'is not written as the program writes it');
  return value;
}

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** An object with exactly these keys in this order; returns its values. */
function valuesOf(place, object, keys) {
  if (!isObject(object)) malformed(place, 'is not an object');
  if (Object.keys(object).join() !== keys.join()) malformed(place, `does not have exactly ${keys.join(', ')}`);
  return keys.map((key) => object[key]);
}

/** Requires a text of this form. */
function text(place, value, pattern) {
  if (typeof value !== 'string' || !whole(pattern).test(value)) malformed(place, 'does not have its form');
  return value;
}
const orNull = (place, value, pattern) => (value === null ? null : text(place, value, pattern));
const number = (place, value) =>
  Number.isSafeInteger(value) && IS_NUMBER.test(String(value)) ? value : malformed(place, 'is not a number');
const list = (place, value) => (Array.isArray(value) ? value : malformed(place, 'is not a list'));

const ESCAPES = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', '\\': '\\' };
/** A field of COPY's text format. NULL is null. */
function unescaped(field, place) {
  if (!field.includes('\\')) return field;
  if (field === '\\N') return null;
  return field.replace(/\\(.?)/gs, (_, letter) => ESCAPES[letter] ?? malformed(place, 'has an unknown escape'));
}
const fieldsOf = (line, place) => {
  const fields = line.split('\t');
  return line.includes('\\') ? fields.map((each) => unescaped(each, place)) : fields;
};

function columnsOf(line, place) {
  const columns = line.split('\t');
  if (!columns.every((each) => IS_NAME.test(each)) || new Set(columns).size !== columns.length)
    malformed(place, 'its first line does not name its columns');
  return columns;
}

/** Reads a .tsv file: `begin` gets its columns and its first line, and returns what gets the fields and line of each row. */
function readTsv(pack, name, begin) {
  let [columns, row, rows] = [undefined, undefined, 0];
  for (const line of linesOf(pack, name)) {
    if (columns === undefined) {
      columns = columnsOf(line, name);
      row = begin(columns, line);
      continue;
    }
    rows += 1;
    if (line.includes('\r')) malformed(name, `row ${rows} has a carriage return`);
    const fields = fieldsOf(line, `${name}: row ${rows}`);
    if (fields.length !== columns.length) malformed(name, `row ${rows} does not have ${columns.length} fields`);
    row(fields, line, rows);
  }
  if (columns === undefined) malformed(name, 'is empty');
  if (rows !== pack.manifest.files.get(name).rows) malformed(name, `it has ${rows} rows, and others in the manifest`);
  return rows;
}

/** Takes the interpreted columns of a row, each in its form. */
function interpreter(name, columns, wanted) {
  const places = wanted.map((each) => columns.indexOf(each));
  if (places.includes(-1)) malformed(name, `does not have the columns ${wanted.join(', ')}`);
  const forms = wanted.map((each) => FORMS.get(each));
  return (fields, row) => {
    const object = {};
    for (let index = 0; index < wanted.length; index += 1) {
      const value = fields[places[index]];
      if (forms[index] !== undefined && (value === null || !forms[index].test(value)))
        malformed(name, `row ${row}: ${wanted[index]} does not have its form`);
      object[wanted[index]] = value;
    }
    return object;
  };
}

/** The rows of a .csv file: the header is exactly `columns`. */
function* csvRows(pack, name, columns) {
  let [rows, open] = [-1, ''];
  for (const line of linesOf(pack, name)) {
    open = open === '' ? line : `${open}\n${line}`;
    if (open.includes('"') && open.split('"').length % 2 === 0) continue; // A quoted cell continues on the next line.
    const cells = open.includes('"') || open.includes('\r') ? quotedCells(open) : open.split(',');
    open = '';
    rows += 1;
    if (rows === 0 && cells?.join() !== columns.join()) malformed(name, `its header is not ${columns.join(',')}`);
    if (cells?.length !== columns.length) malformed(name, `row ${rows} does not have ${columns.length} cells`);
    if (rows > 0) yield cells;
  }
  if (open !== '') malformed(name, 'a quote is open at its end');
  if (rows < 0) malformed(name, 'is empty');
}

const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|$)/y;
function quotedCells(line) {
  const cells = [];
  CELL.lastIndex = 0;
  for (let end = ','; end === ','; ) {
    const found = CELL.exec(line);
    if (found === null) return undefined;
    cells.push(found[1] === undefined ? found[2] : found[1].replaceAll('""', '"'));
    end = found[3];
  }
  return cells;
}

/** A line of a .jsonl file: an object with keys of these columns, in their order, each once. */
function jsonRow(name, line, columns) {
  const object = parsedJson(line, name);
  // A duplicate key is in the text more often than in the value.
  const keys = [...line.matchAll(/"(?:[^"\\]|\\.)*"\s*(:?)/g)].filter(([, colon]) => colon === ':').length;
  if (!isObject(object) || countKeys(object) !== keys) malformed(name, 'a row is not an object with each key once');
  if (Object.keys(object).join() !== columns.filter((each) => Object.hasOwn(object, each)).join())
    malformed(name, `a row has other keys than ${columns.join(', ')}`);
  return object;
}
function countKeys(value) {
  if (value === null || typeof value !== 'object') return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum, each) => sum + countKeys(each), own);
}
const jsonCell = (value) => (isObject(value) || Array.isArray(value) ? value : String(value ?? ''));

function columnsOfFile(name) {
  const [kind, format] = name.split('.');
  return (format === 'csv' ? undefined : JSON_COLUMNS[kind]) ?? DATA_COLUMNS[kind];
}

/** The rows of a data file as texts by column. NULL is an empty text, amounts and times are as in the sealed tables. */
function* dataRows(pack, name) {
  const [kind, format] = name.split('.');
  const csv = format === 'csv';
  const columns = columnsOfFile(name);
  const plain = columns.map((each) => {
    if (isValue(kind, each)) return plainValue;
    return AMOUNTS.has(each) ? plainAmount : TIMES.has(each) ? plainTime : plainText;
  });
  const row = (cells) => {
    const object = {};
    for (let index = 0; index < columns.length; index += 1)
      object[columns[index]] = plain[index](cells[index], csv, name);
    return object;
  };
  if (csv) for (const cells of csvRows(pack, name, columns)) yield { row: row(cells) };
  else
    for (const line of linesOf(pack, name)) {
      const object = jsonRow(name, line, columns);
      yield { row: row(columns.map((each) => (isValue(kind, each) ? object[each] : jsonCell(object[each])))), line };
    }
}

const plainAmount = (cell, _, name) =>
  IS_WITH_DIGITS.test(cell) ? canonical(cell) : malformed(name, `'${cell}' is not an amount`);
/** A sealed time `2026-07-15 12:00:00.25+00` is exported with T and Z, and may have zeros at the end of its fraction. */
const plainTime = (cell) => cell.replace(/(\.\d*?)0+Z$/, '$1Z').replace('.Z', 'Z');
const exportedTime = (sealed) => sealed.replace(' ', 'T').replace(/\+00$/, 'Z');
/** A value of a partner as a text: a text is itself, anything else its JSON. In JSON Lines the two are not the same. */
const isValue = (kind, column) =>
  kind === 'partners' || kind === 'policies' || (kind === 'partner-changes' && (column === 'old' || column === 'new'));
const plainValue = (cell, csv, name) => valueText(csv ? plainText(cell, csv, name) : cell, csv);
function valueText(value, csv) {
  if (typeof value !== 'string') return (value ?? null) === null ? '' : `${csv ? '' : '='}${JSON.stringify(value)}`;
  if (!/^[[{]/.test(value)) return value;
  try {
    return JSON.stringify(JSON.parse(value));
  } catch {
    return value;
  }
}
/** In CSV, a text that a spreadsheet could run has an apostrophe in front of it. */
const COULD_RUN = /^(?:['\t\r\n]|[ \t\r\n]*[=+@\uFF1D\uFF0B\uFF0D\uFF20-])/;
function plainText(cell, csv, name) {
  if (!csv || !COULD_RUN.test(cell) || IS_WITH_DIGITS.test(cell)) return cell;
  const covered = cell.slice(1);
  if (!cell.startsWith("'") || !COULD_RUN.test(covered) || IS_WITH_DIGITS.test(covered))
    malformed(name, `'${cell}' does not have the apostrophe of a text that could be run`);
  return covered;
}

// === LAYOUT, MANIFEST, RECORDS, FILES ================================================================================

/** A pack while it is read and checked. */
class Pack {
  findings = new Findings();
  records = new Map();
  books = new Map();
  facts = {};
  counts = { facts: 0, rows: 0, entries: 0, accounts: 0 };
  events = new Set();
  firstEvent = Number.POSITIVE_INFINITY;
  /** Sums of the ledger rows by document line, and by month, account and currency. */
  lines = new Map();
  postings = new Map();
  documents = new Map();
  numbers = new Map();
  bills = new Map();
  opening = new Map();
  checkpoints = [];
  /** The journals that `gl-exports` states, by id. */
  glExports = new Map();

  constructor(folder) {
    this.folder = folder;
  }
  found(name, problem) {
    this.findings.add(name, problem);
  }
  note(text) {
    this.findings.notes.push(text);
  }
  of(table) {
    return this.facts[table] ?? [];
  }
}

/** The names of the files in a folder. Links are not followed. */
function scan(pack, under = '') {
  const names = [];
  const entries = readdirSync(join(pack.folder, under), { withFileTypes: true });
  if (entries.length === 0) pack.found('layout', `${under || 'the folder'} is empty`);
  for (const entry of entries) {
    const name = under === '' ? entry.name : `${under}/${entry.name}`;
    if (entry.isFile() && KNOWN_FILE.test(name)) names.push(name);
    else if (entry.isDirectory() && KNOWN_FOLDER.test(name)) names.push(...scan(pack, name));
    else if (entry.isFile() || entry.isDirectory()) pack.found('layout', `${name} does not belong in a pack`);
    else pack.found('layout', `${name} is not a regular file`);
  }
  return names;
}

const MANIFEST = words(
  'format version kind data_format from to program installation environment created_at months preliminary files',
);

function readManifest({ folder }) {
  const name = 'manifest.json';
  const manifest = asObject(MANIFEST, valuesOf(name, jsonOf(textOf(folder, name), name), MANIFEST));
  const { kind, from, to, preliminary } = manifest;
  if (manifest.format !== 'reckoner-export' || manifest.version !== 1)
    malformed(name, 'is not of an export pack, version 1');
  const data = dataFiles(kind, manifest.data_format);
  if (data === undefined) malformed(name, 'kind and data_format are unknown');
  if (text(`${name}: from`, from, MONTH) > text(`${name}: to`, to, MONTH)) malformed(name, 'from is after to');
  text(`${name}: program`, manifest.program, '[0-9A-Za-z.+-]+');
  text(`${name}: installation`, `${manifest.installation} ${manifest.environment}`, INSTALLATION);
  text(`${name}: created_at`, manifest.created_at, `${DAY}T${TIME}\\.\\d{3}Z`);
  const months = readMonths(manifest, `${name}: months`);
  const open = months.some(({ books }) => books === null);
  const ends = months.at(-1)?.month === to;
  if (typeof preliminary !== 'boolean' || (open ? !preliminary : ends && preliminary))
    malformed(`${name}: preliminary`, 'does not follow from the months');
  return { ...manifest, data, months, files: readFiles(manifest, `${name}: files`) };
}

function readMonths({ from, to, months }, place) {
  let before;
  return list(place, months).map((each) => {
    const [month, seal, previous, books] = valuesOf(place, each, words('month seal previous books_seal'));
    const at = `${place}: ${text(place, month, MONTH)}`;
    orNull(at, seal, HASH);
    orNull(at, books, HASH);
    orNull(at, previous, MONTH);
    if (month < from || month > to) malformed(at, `is not from ${from} to ${to}`);
    if (previous !== null && monthAfter(previous) !== month) malformed(at, 'previous is not the month before');
    if (before !== undefined && (before.month >= month || previous === null)) malformed(at, 'is out of order');
    if (before !== undefined && seal !== null && (before.seal === null || before.month !== previous))
      malformed(at, 'does not follow the sealed month before it');
    if (books !== null && (seal === null || before?.books === null)) malformed(at, 'has closed books out of order');
    before = { month, seal, previous, books };
    return before;
  });
}

function readFiles({ kind, files }, place) {
  const found = new Map();
  for (const each of list(place, files)) {
    const summed = Object.hasOwn(SUMMED, kind) && [`${kind}.csv`, `${kind}.jsonl`].includes(each?.name);
    const keys = ['name', 'bytes', 'sha256', 'rows', ...(summed ? ['totals'] : [])];
    const [name, bytes, sum, rows, totals] = valuesOf(place, each, keys);
    const at = `${place}: ${text(place, name, '[\\x20-\\x7e]{1,200}')}`;
    if (found.has(name)) malformed(at, 'occurs twice');
    const file = { bytes: number(at, bytes), sha256: text(at, sum, HASH), rows: number(at, rows) };
    if (summed) file.totals = readTotals(totals, SUMMED[kind], at);
    found.set(name, file);
  }
  return found;
}

function readTotals(totals, columns, place) {
  if (!isObject(totals)) malformed(place, 'has no totals');
  const currencies = Object.keys(totals);
  if (!ascending(currencies) || !currencies.every((each) => IS_CURRENCY.test(each)))
    malformed(place, 'its totals are not by currency');
  const sumsOf = (currency) =>
    valuesOf(place, totals[currency], columns).map((sum) => units(canonical(text(place, sum, WITH_DIGITS))));
  return new Map(currencies.map((each) => [each, sumsOf(each)]));
}

/** The lines of a record by their first word. Only the words of the grammar are there, each in its place. */
function parseRecord(place, content, grammar) {
  const lines = content.split('\n');
  if (lines.pop() !== '') malformed(place, 'its last line does not end');
  const record = {};
  let at = 0;
  for (const [word, form, repeated = false] of grammar) {
    const pattern = whole(`${word} (?:${form})`);
    const found = [];
    while (lines[at]?.startsWith(`${word} `) && (repeated || found.length === 0)) {
      const { groups } = pattern.exec(lines[at]) ?? malformed(place, `line ${at + 1} is not a line ${word}`);
      found.push(groups ?? {});
      at += 1;
    }
    if (!repeated && found.length === 0) malformed(place, `line ${at + 1} is not the line ${word}`);
    if (repeated && !ascending(found.map(({ key }) => key.replace(' ', '\x01'))))
      malformed(place, `the lines ${word} are not in order`);
    record[word] = repeated ? found : found[0];
  }
  if (at < lines.length) malformed(place, `line ${at + 1} is not known`);
  return record;
}

const previousOf = ({ month, seal }) => (month === undefined ? null : { month, seal });
const counted = ({ rows, hash: of }) => ({ rows: Number(rows), hash: of });

function readSealRecord(place, content) {
  const lines = parseRecord(place, content, RECORDS.seal);
  const [first, last] = [Number(lines.facts.first), Number(lines.facts.last)];
  const columns = words(lines.rows_columns.text);
  const previous = previousOf(lines.previous);
  const month = lines.month.text;
  if (first > last) malformed(place, 'its range of facts is empty');
  if (lines.facts_of.length === 0 || lines.facts_of.some(({ rows }) => rows === '0'))
    malformed(place, 'it covers no facts');
  if (new Set(columns).size !== columns.length) malformed(place, 'a column of the rows occurs twice');
  if (lines.closed_with.text !== lines.rows.text) malformed(place, 'it was closed with another number of rows');
  if (previous === null ? first !== 1 : monthAfter(previous.month) !== month)
    malformed(place, 'it does not follow its predecessor');
  return {
    ...{ seal: sha256(content), installation: lines.installation.text, month, previous, columns, first, last },
    ...{ rows: Number(lines.rows.text), root: lines.rows_root.text, text: content, sealedAt: lines.sealed_at.text },
    checkpoints: [],
    totals: new Map(lines.total.map(({ key, sums }) => [key, words(sums).map(units)])),
    tables: new Map(lines.facts_of.map((each) => [each.key, counted(each)])),
  };
}

function readBooksRecord(place, content) {
  const lines = parseRecord(place, content, RECORDS.books);
  const month = lines.month.text;
  const previous = previousOf(lines.previous);
  if (previous !== null && monthAfter(previous.month) !== month) malformed(place, 'it does not follow its predecessor');
  if (lines.sealed_after.month < month) malformed(place, 'it follows the seal of an earlier month');
  if (lines.balance.some(({ amount }) => amount === '0')) malformed(place, 'a balance is zero');
  return {
    ...{ seal: sha256(content), installation: lines.installation.text, month, previous, text: content },
    ...{ sealedAfter: lines.sealed_after, factsTo: Number(lines.facts_to.text), weAre: lines.we_are.text },
    ...{ entries: counted(lines.entries), accounts: counted(lines.accounts) },
    balances: new Map(lines.balance.map(({ key, amount }) => [key, units(amount)])),
    // The contents of its tables: entries, movements by account and currency, and balances.
    ...{ lines: [], moved: new Map(), balancesNow: new Map() },
  };
}

function readCheckpoint(place, content) {
  const lines = parseRecord(place, content, RECORDS.checkpoint);
  const range = ({ first, last }) => ({ first: Number(first), last: Number(last), trees: new Map() });
  const columns = words(lines.rows_columns.text);
  const checkpoint = {
    ...{ seal: sha256(content), installation: lines.installation.text, number: Number(lines.checkpoint.text), columns },
    previous: lines.previous.seal === undefined ? null : { ...lines.previous, number: Number(lines.previous.number) },
    ...{ sealedAfter: lines.sealed_after.text, takenAt: lines.taken_at.text },
    ...{ entries: range(lines.entries), facts: range(lines.facts) },
    rows: new Map(lines.rows.map((each) => [each.key, counted(each)])),
    tables: new Map(lines.facts_of.map((each) => [each.key, counted(each)])),
  };
  for (const { first, last } of [checkpoint.entries, checkpoint.facts])
    if (last < first - 1) malformed(place, 'a range ends before it begins');
  if ([...lines.rows, ...lines.facts_of].some(({ rows }) => rows === '0')) malformed(place, 'it names nothing');
  if (checkpoint.number === 0) malformed(place, 'checkpoints begin with 1');
  if (new Set(columns).size !== columns.length) malformed(place, 'a column of the rows occurs twice');
  return checkpoint;
}

/** The records of a pack, each as the manifest names it. */
function readRecords(pack) {
  const { manifest, names } = pack;
  for (const { month, seal, previous, books } of manifest.months) {
    for (const [folder, expected, read, into] of [
      ['sealed', seal, readSealRecord, pack.records],
      ['books', books, readBooksRecord, pack.books],
    ]) {
      if (expected === null) continue;
      const place = `${folder}/${month}/record.txt`;
      if (!names.includes(place)) malformed(place, 'is missing');
      const record = read(place, textOf(pack.folder, place));
      const found = (problem) => pack.found('records', `${place}: ${problem}`);
      if (record.seal !== expected) found(`its seal is ${record.seal}, not ${expected}`);
      if (record.month !== month) found(`it is for ${record.month}`);
      if (record.installation !== `${manifest.installation} ${manifest.environment}`)
        found(`it belongs to the installation ${record.installation}`);
      if (folder === 'sealed' && (record.previous?.month ?? null) !== previous)
        found(`the month before it is not ${previous ?? 'none'}`);
      into.set(month, record);
    }
  }
  const first = firstOf(pack.records)?.previous;
  if (first && first.month >= manifest.from) pack.found('records', `${first.month} was sealed and is not in the pack`);
}

function checkFiles(pack) {
  const { manifest, records, books } = pack;
  const found = (problem) => pack.found('files', problem);
  const expected = new Set(['README.txt', 'dictionary.csv', ...manifest.data]);
  const parquet = manifest.data.filter(isTable).map((name) => name.replace(/[a-z]+$/, 'parquet'));
  if (parquet.some((name) => pack.names.includes(name) || manifest.files.has(name)))
    for (const [index, name] of parquet.entries()) {
      expected.add(name);
      if (manifest.files.get(name)?.rows !== manifest.files.get(manifest.data[index])?.rows)
        found(`${name} has a number of rows other than ${manifest.data[index]}`);
    }
  for (const [month, { tables }] of records) {
    expected.add(`sealed/${month}/record.txt`);
    if (manifest.kind === 'ledger') expected.add(`sealed/${month}/ledger_rows.tsv`);
    for (const name of tables.keys()) expected.add(`sealed/${month}/${name}.tsv`);
  }
  for (const month of books.keys())
    for (const name of ['record.txt', 'entries.tsv', 'accounts.tsv']) expected.add(`books/${month}/${name}`);
  const there = new Set(pack.names);
  for (const { folder } of recordsOf(pack))
    for (const name of [`${folder}/record.sig`, `${folder}/record.tsr`])
      if (there.has(name) || manifest.files.has(name)) expected.add(name);
  for (const name of expected) {
    if (!there.has(name)) found(`${name} is missing`);
    if (!manifest.files.has(name)) found(`${name} is not in the manifest`);
  }
  for (const name of there)
    if (!expected.has(name) && name !== 'manifest.json') found(`${name} is not covered by any record`);
  for (const [name, file] of manifest.files) {
    if (!expected.has(name)) found(`${name}, in the manifest, is not covered by any record`);
    else if (there.has(name) && hashOfFile(join(pack.folder, name), file.bytes) !== file.sha256)
      found(`${name} is not the file that the manifest names`);
  }
}

/** The records that have files of their own: of months, and of books. */
function* recordsOf({ records, books }) {
  for (const [month, record] of records) yield { kind: 'month', name: month, folder: `sealed/${month}`, record };
  for (const [month, record] of books) yield { kind: 'books', name: month, folder: `books/${month}`, record };
}

function hashOfFile(path, bytes) {
  if (lstatSync(path).size !== bytes) return undefined;
  const sum = createHash('sha256');
  const file = openSync(path);
  try {
    const piece = Buffer.alloc(1 << 20);
    for (let length = readSync(file, piece); length > 0; length = readSync(file, piece))
      sum.update(piece.subarray(0, length));
  } finally {
    closeSync(file);
  }
  return sum.digest('hex');
}

// === TABLES ==========================================================================================================

/** Reads all .tsv files: a malformed one refuses the pack. Other problems are kept for their checks. */
function readTables(pack) {
  const interpreted = { ...INTERPRETED, ...(INTERPRETED_FOR[pack.manifest.kind] ?? RESUMPTION) };
  for (const record of pack.records.values()) {
    const seen = new Set();
    // Events first: other facts name them.
    const tables = [...record.tables.keys()].sort(
      (one, other) => (other === 'audit_events') - (one === 'audit_events'),
    );
    if (record.tables.has('checkpoints')) readCheckpoints(pack, record);
    for (const table of tables) {
      const wanted = Object.hasOwn(interpreted, table) ? words(interpreted[table]) : undefined;
      readFacts(pack, record, table, wanted, seen);
    }
  }
  if (pack.manifest.kind === 'ledger') for (const record of pack.records.values()) readRows(pack, record);
  for (const books of pack.books.values()) readBooks(pack, books);
}

/** Reads a month's checkpoints before its other facts, which are in their ranges. */
function readCheckpoints(pack, record) {
  const name = `sealed/${record.month}/checkpoints.tsv`;
  readTsv(pack, name, (columns) => {
    const take = interpreter(name, columns, words(INTERPRETED.checkpoints));
    return (fields, _, row) => {
      const fact = take(fields, row);
      const place = `checkpoint ${fact.checkpoint_number}`;
      try {
        const checkpoint = { ...readCheckpoint(place, fact.record ?? ''), fact, factId: Number(fields[0]), record };
        record.checkpoints.push(checkpoint);
        pack.checkpoints.push(checkpoint);
      } catch (error) {
        if (!(error instanceof Malformed)) throw error;
        pack.found('checkpoints', error.message);
      }
    };
  });
}

/** Adds lines to the trees of the checkpoints in whose range they are. Numbers ascend. */
function checkpointsTrees(ranges, header) {
  let at = 0;
  return (key, number, line) => {
    while (at < ranges.length && ranges[at].last < number) at += 1;
    const range = ranges[at];
    if (range === undefined || number < range.first) return;
    if (!range.trees.has(key)) {
      range.trees.set(key, new MerkleTree());
      if (header !== undefined) range.trees.get(key).add(header);
    }
    range.trees.get(key).add(line);
  };
}

function readFacts(pack, record, table, wanted, seen) {
  const name = `sealed/${record.month}/${table}.tsv`;
  const expected = record.tables.get(table);
  const into = wanted && groupByTable(pack, table);
  const tree = new MerkleTree();
  const found = (problem) => pack.found('seals', `${name}: ${problem}`);
  let before = 0;
  const rows = readTsv(pack, name, (columns, header) => {
    tree.add(header);
    const addToCheckpoint = checkpointsTrees(
      record.checkpoints.map(({ facts }) => facts),
      header,
    );
    if (columns[0] !== 'fact_id') malformed(name, 'its first column is not fact_id');
    const [event, entry] = [columns.indexOf('event_id'), columns.indexOf('entry_on')];
    const take = wanted && interpreter(name, columns, wanted);
    return (fields, line, row) => {
      tree.add(line);
      if (fields[0] === null || !IS_NUMBER.test(fields[0])) malformed(name, `row ${row}: fact_id is not a number`);
      const fact = Number(fields[0]);
      if (fact <= before) found(`fact ${fact} is out of order`);
      if (fact < record.first || fact > record.last) found(`fact ${fact} is outside of its record`);
      if (seen.has(fact)) found(`fact ${fact} is in another table too`);
      seen.add(fact);
      before = fact;
      addToCheckpoint(table, fact, line);
      if (entry > 0 && fields[entry] !== null) checkDated(pack, name, fact, fields[entry]);
      if (event > 0 && fields[event] !== null) checkEvent(pack, name, table, fact, Number(fields[event]));
      if (take === undefined) return;
      const values = take(fields, row);
      if (table === 'audit_events' && !(pack.manifest.kind in INTERPRETED_FOR) && !isNeeded(values)) {
        if (pack.manifest.kind !== 'payments') return;
        delete values.details;
      }
      into.push({ ...values, fact, sealed_in: record.month });
    };
  });
  if (rows !== expected.rows || tree.root() !== expected.hash) found('is not what was sealed');
  pack.counts.facts += rows;
}

function groupByTable(pack, table) {
  pack.facts[table] ??= [];
  return pack.facts[table];
}

/** An event that a fact names is in the pack, or older than it. */
function checkEvent(pack, name, table, fact, event) {
  if (table === 'audit_events') {
    pack.events.add(event);
    pack.firstEvent = Math.min(pack.firstEvent, event);
  } else if (!pack.events.has(event) && (pack.fromTheStart || !(event < pack.firstEvent)))
    pack.found('seals', `${name}: fact ${fact} names event ${event}, which does not exist`);
}

/** No fact recorded after the books closed is dated in them. */
function checkDated(pack, name, fact, day) {
  for (const books of pack.books.values()) {
    if (day.slice(0, 7) > books.month) continue;
    if (fact > books.factsTo)
      pack.found('books', `${name}: fact ${fact} is dated ${day}, but was recorded after those books closed`);
    return;
  }
}

function readRows(pack, record) {
  const { month, totals } = record;
  const name = `sealed/${month}/ledger_rows.tsv`;
  const tree = new MerkleTree();
  const sums = new Map();
  const found = (problem) => pack.found('rows', `${name}: ${problem}`);
  let before = 0;
  const rows = readTsv(pack, name, (columns) => {
    if (columns.join(' ') !== record.columns.join(' ')) malformed(name, 'its columns are not those of the record');
    const missing = DATA_COLUMNS.ledger.find((each) => each !== 'document' && !columns.includes(SEALED[each] ?? each));
    if (missing !== undefined) malformed(name, `does not have the column ${missing}`);
    const take = interpreter(name, columns, ROW);
    const addToCheckpoint = checkpointsTrees(pack.checkpoints.map(({ entries }) => entries));
    return (fields, line, index) => {
      tree.add(line);
      const row = take(fields, index);
      const id = row.entry_id;
      if (Object.values(row).includes(null)) malformed(name, `row ${id} has a NULL where none is allowed`);
      if (Number(id) <= before) found(`row ${id} is out of order`);
      before = Number(id);
      addToCheckpoint(row.posted_month, before, line);
      const amounts = SUMS.map((each) => units(row[each]));
      if (amounts[0] !== amounts[1] + amounts[2]) found(`row ${id} does not add up`);
      if (record.previous === null ? row.posted_month > month : row.posted_month !== month)
        found(`row ${id} was posted to ${row.posted_month}`);
      addTo(sums, row.currency, amounts);
      addRow(pack, month, row, amounts);
    };
  });
  if (rows !== record.rows || tree.root() !== record.root) pack.found('seals', `${name} is not what was sealed`);
  for (const currency of keysOf(sums, totals))
    if (String(sums.get(currency)) !== String(totals.get(currency)))
      found(`the rows in ${currency} do not add up to the total of the record`);
  pack.counts.rows += rows;
}

/** Adds a row to the accounts that it is posted to, and to the line of the document that bills it. */
function addRow({ books, postings, lines }, month, row, [spotPrice, partnerCut, invoiceAmount]) {
  const { partner_id: partner, policy_id: policy, currency, arrangement } = row;
  const owed = arrangement === 'invoicing' ? 'unbilled' : 'processor';
  const post = (account, amount) => addTo(postings, `${month}\t${account}\t${currency}`, [amount]);
  post(`assets:receivable:${owed}:${partner}`, invoiceAmount);
  const isPrincipal = books.get(month)?.weAre === 'principal';
  if (isPrincipal) post(`expenses:partner-cut:${partner}`, partnerCut);
  post(`income:sales:${policy}`, -(isPrincipal ? spotPrice : invoiceAmount));
  addTo(lines, lineOf({ ...row, month }, { policy_id: policy, kind: row.kind, month: row.month }), [
    ...[spotPrice, partnerCut, invoiceAmount, 1n],
  ]);
}
const billOf = (row) => BILL.map((name) => row[name]).join('\t');
const lineOf = (bill, { policy_id, kind, month }) => `${billOf(bill)}\t${policy_id}\t${kind}\t${month}`;

function readBooks(pack, books) {
  const { month } = books;
  readBooksTable(pack, books, 'entries', ENTRY, (entry, found) => {
    const { fact, fact_id: id, entry_on: entryOn, debit, credit, currency } = entry;
    const own = entryOn.slice(0, 7);
    if (own > month || (own < month && books.previous !== null)) found(`${fact} ${id} is dated ${entryOn}`);
    addTo(books.moved, `${debit}\t${currency}`, [units(entry.amount)]);
    addTo(books.moved, `${credit}\t${currency}`, [-units(entry.amount)]);
    books.lines.push(entry);
  });
  readBooksTable(pack, books, 'accounts', ACCOUNT, ({ control, account, currency, amount }, found) => {
    const key = `${account}\t${currency}`;
    if (books.balancesNow.has(key)) found(`${account} in ${currency} occurs twice`);
    if (account !== control && !account.startsWith(`${control}:`)) found(`${account} is not in ${control}`);
    if (amount === '0') found(`the balance of ${account} in ${currency} is zero`);
    books.balancesNow.set(key, { control, amount: units(amount) });
  });
}

function readBooksTable(pack, books, table, wanted, each) {
  const name = `books/${books.month}/${table}.tsv`;
  const found = (problem) => pack.found('books', `${name}: ${problem}`);
  const rows = readTsv(pack, name, (columns) => {
    if (columns.join() !== wanted.join()) malformed(name, `its columns are not ${wanted.join(', ')}`);
    const take = interpreter(name, columns, wanted);
    return (fields, _, index) => {
      const row = take(fields, index);
      for (const column of wanted)
        if (row[column] === null && column !== 'document' && column !== 'reference')
          malformed(name, `row ${index} has a NULL`);
      each(row, found);
    };
  });
  if (rows !== books[table].rows) found(`${rows} rows where ${books[table].rows} were sealed`);
  if (pack.manifest.files.get(name).sha256 !== books[table].hash) found('is not what was sealed');
  pack.counts[table] += rows;
}

// === SEALS, DOCUMENTS, BOOKS =========================================================================================

function checkSeals(pack) {
  let before;
  for (const record of pack.records.values()) {
    const { month, previous, first } = record;
    if (before !== undefined && previous?.seal !== before.seal)
      pack.found('seals', `${month} was sealed after ${previous?.seal}, not after ${before.seal}`);
    if (before !== undefined && first !== before.last + 1)
      pack.found('seals', `${month}: its facts begin at ${first}, after ${before.last}`);
    before = record;
  }
  return `${many(pack.records.size, 'month')}, ${many(pack.counts.facts, 'fact')}, ${many(pack.counts.rows, 'row')}`;
}

/** Arranges the sealed documents: their lines, voids and PDFs. */
function arrangeDocuments(pack, found) {
  const { documents, numbers } = pack;
  for (const document of pack.of('documents')) {
    if (documents.has(document.document_id)) found(`${document.number}: its document_id occurs twice`);
    if (numbers.has(document.number)) found(`${document.number} occurs twice`);
    documents.set(document.document_id, document);
    numbers.set(document.number, document);
    document.lines = [];
    document.taxes = [];
  }
  for (const line of pack.of('document_lines')) {
    const document = documents.get(line.document_id);
    if (document === undefined || document.sealed_in !== line.sealed_in)
      found(`a line of document_id ${line.document_id}, sealed in ${line.sealed_in}, has no document in that month`);
    else if (line.position !== String(document.lines.push(line)))
      found(`${document.number}: line ${line.position} is out of order`);
  }
  for (const tax of pack.of('document_taxes')) {
    const document = documents.get(tax.document_id);
    if (document === undefined || document.sealed_in !== tax.sealed_in || document.currency !== tax.currency)
      found(`a tax of document_id ${tax.document_id}, sealed in ${tax.sealed_in}, has no document in that month`);
    else document.taxes.push(tax);
  }
  const named = (id, what) => {
    if (!documents.has(id) && pack.fromTheStart) found(`document_id ${id} ${what}, but is not a document`);
    return documents.get(id);
  };
  for (const each of pack.of('voids')) {
    const document = named(each.document_id, 'is void');
    if (document === undefined) continue;
    if (document.void !== undefined) found(`${document.number} is void twice`);
    if (each.sealed_in < document.sealed_in || billOf(each) !== billOf(document))
      found(`the void of ${document.number} belongs to another document`);
    document.void = each;
  }
  for (const { document_id: id, sha256: sum } of pack.of('document_pdfs')) {
    const document = named(id, 'has a PDF');
    if (document?.pdf !== undefined) found(`${document.number} has two PDFs`);
    else if (document !== undefined) document.pdf = sum;
  }
}

function checkDocuments(pack) {
  const found = (problem) => pack.found('documents', problem);
  arrangeDocuments(pack, found);
  checkSkipped(pack, found);
  const sequences = new Map();
  for (const skipped of skippedNumbers(pack, found)) groupBy(sequences, skipped.series).push(skipped.range);
  const billed = new Set();
  for (const document of pack.documents.values()) {
    const { number, series, sequence, purpose } = document;
    if (number !== numberGiven(document)) found(`${number} is number ${sequence} of ${series}`);
    groupBy(sequences, series).push([Number(sequence), Number(sequence)]);
    if (document.replaces !== null) checkReplaced(pack, document, found);
    checkTaxes(document, found);
    if (purpose !== 'month') continue;
    checkLines(pack, document, billed, found);
    groupBy(pack.bills, billOf(document)).push(document);
  }
  for (const chain of pack.bills.values()) {
    const live = chain.filter((each) => each.void === undefined);
    if (live.length > 1) found(`${live.map(({ number }) => number).join(', ')} bill the same rows`);
    if (live.length === 0) pack.note(`${chain.at(-1).number} is void, and no sealed document replaces it`);
  }
  for (const key of pack.lines.keys()) {
    const [partner, month, currency] = key.split('\t');
    if (!billed.has(key)) found(`rows of ${partner} in ${month} in ${currency} are on no document`);
  }
  checkOpenings(pack, found);
  checkNumbers(sequences, pack.fromTheStart, found);
  return `${many(pack.documents.size, 'document')}, ${sequences.size} series`;
}

/** For an item that an opening carried over, the previous system's number and its revision; otherwise our own. */
const numberGiven = ({ purpose, series, sequence, opening_number: own, opening_revision: revision }) =>
  purpose !== 'opening' ? `${series}-${sequence.padStart(6, '0')}` : revision === '1' ? own : `${own}~${revision}`;

/** The items of an opening add up to its totals, have no lines, and are entered on the day of the cut-over. */
function checkOpenings(pack, found) {
  const openings = byId(pack, 'openings', 'opening_id');
  const sums = new Map();
  const add = (item, what, amount, at) => {
    const key = `${item.opening_id}\t${item.currency}`;
    if (!sums.has(key)) sums.set(key, { items: 0n, invoices: 0n, credits: 0n, cash: 0n });
    const sum = sums.get(key);
    sum.items += 1n;
    sum[what] += units(amount);
    if (openings.get(item.opening_id)?.cut_over_on !== item.entry_on) found(`${at} is not entered at its cut-over`);
  };
  for (const document of pack.documents.values()) {
    const { number, purpose, series, lines, entries, partner_cut: cut } = document;
    if ((purpose === 'opening') !== (document.opening_id !== null)) found(`${number} wrongly has or lacks an opening`);
    if (purpose !== 'opening') continue;
    if (series !== 'OPENING' || lines.length > 0 || entries !== '0' || cut !== '0')
      found(`${number} was carried over but has lines or entries`);
    add(document, document.document === 'invoice' ? 'invoices' : 'credits', document.invoice_amount, number);
  }
  for (const payment of pack.of('payments')) {
    const { payment_id: id, source, opening_id: opening } = payment;
    if ((source === 'opening') !== (opening !== null)) found(`payment ${id} wrongly has or lacks an opening`);
    if (source === 'opening') add(payment, 'cash', payment.amount, `payment ${id}`);
  }
  for (const total of pack.of('opening_totals')) {
    const { opening_id: id, currency } = total;
    const sum = sums.get(`${id}\t${currency}`);
    sums.delete(`${id}\t${currency}`);
    const [invoices, credits, cash, control] = words('invoices credits cash control').map((name) => units(total[name]));
    const stated = String([BigInt(total.items), invoices, credits, cash]);
    if (sum === undefined || String([sum.items, sum.invoices, sum.credits, sum.cash]) !== stated)
      found(`opening ${id} is not the sum of its items in ${currency}`);
    if (control !== invoices - credits - cash) found(`opening ${id} does not match its control total in ${currency}`);
  }
  for (const key of sums.keys()) found(`opening ${key.replace('\t', ' has no total in ')}`);
}

const DIGITS_OF = {
  0: words('BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'),
  3: words('BHD IQD JOD KWD LYD OMR TND'),
  4: words('CLF UYW'),
};

/** Tax of an amount, in ten-thousandths: rounded once, half away from zero, to the currency's digits. */
function taxOf(taxable, rate, currency) {
  const digits = Number(Object.keys(DIGITS_OF).find((each) => DIGITS_OF[each].includes(currency)) ?? 2);
  const step = 10n ** BigInt(4 - digits);
  const exact = taxable * rate;
  const whole = 1_000_000n * step;
  const rounded = ((2n * (exact < 0n ? -exact : exact) + whole) / (2n * whole)) * step;
  return exact < 0n ? -rounded : rounded;
}

/** Each total of a document's tax covers its lines and is taxed once; together they cover the net amount. */
function checkTaxes({ number, purpose, invoice_amount: net, lines, taxes }, found) {
  if (taxes.length === 0) return;
  if (taxes.reduce((sum, each) => sum + units(each.taxable), 0n) !== units(net))
    found(`${number}: its taxes do not add up to its net amount`);
  // A credit note against an invoice has no lines; what it rounds depends on the others against it.
  if (purpose !== 'month') return;
  const covered = [];
  for (const { position, line_positions: positions, taxable, tax, rate, currency } of taxes) {
    const own = words(positions).map((each) => lines[Number(each) - 1]);
    covered.push(...own);
    const sum = own.reduce((total, line) => total + units(line?.invoice_amount ?? '0'), 0n);
    if (sum !== units(taxable)) found(`${number}: tax ${position} does not match its lines`);
    if (taxOf(units(taxable), units(rate), currency) !== units(tax))
      found(`${number}: tax ${position} does not match its rate`);
  }
  if (covered.length !== lines.length || new Set(covered).size !== lines.length)
    found(`${number}: a line has no tax, or two`);
}

/** A document is the sum of its lines, and each line the sum of its rows. */
function checkLines({ lines, records, manifest }, document, billed, found) {
  const { number, month } = document;
  const header = SUMS.map((name) => units(document[name]));
  if (header[0] !== header[1] + header[2]) found(`${number} does not add up`);
  const sums = [0n, 0n, 0n, 0n];
  const sign = document.document === 'credit_note' ? -1n : 1n;
  // A change of tax splits the line of a policy, kind and month.
  const whole = new Map();
  for (const line of document.lines)
    addTo(whole, lineOf(document, line), [...SUMS.map((name) => units(line[name])), BigInt(line.count)]);
  for (const line of document.lines) {
    const amounts = [...SUMS.map((name) => units(line[name])), BigInt(line.count)];
    for (const index of sums.keys()) sums[index] += amounts[index];
    if (manifest.kind !== 'ledger' || !records.has(month)) continue;
    const key = lineOf(document, line);
    billed.add(key);
    const expected = lines.get(key)?.map((sum, index) => (index < 3 ? sign * sum : sum));
    if (String(expected) !== String(whole.get(key)))
      found(`line ${line.position} of ${number} is not the sum of its rows`);
  }
  if (document.lines.length === 0 || String(sums) !== String([...header, BigInt(document.entries)]))
    found(`${number} is not the sum of its lines`);
}

function checkReplaced({ documents, fromTheStart }, { number, replaces }, found) {
  const replaced = documents.get(replaces);
  if (replaced === undefined) {
    if (fromTheStart) found(`${number} replaces document_id ${replaces}, which does not exist`);
    return;
  }
  if (replaced.void === undefined) found(`${number} replaces ${replaced.number}, which is not void`);
  if (replaced.replacedBy !== undefined) found(`${replaced.number} is replaced twice`);
  replaced.replacedBy = number;
}

/** The skipped numbers are those in the events of the resumptions. */
function checkSkipped(pack, found) {
  const numbered = (series, sequence) => `${series}-${String(Number(sequence)).padStart(6, '0')}`;
  const skipped = new Map();
  for (const { series, first_sequence, last_sequence, event_id: event } of pack.of('skipped_numbers')) {
    const [first, last] = [numbered(series, first_sequence), numbered(series, last_sequence)];
    skipped.set(`${event} ${first} ${last}`, `${first} to ${last} are skipped, but not in event ${event}`);
  }
  for (const { action, event_id: event, details } of pack.of('audit_events')) {
    if (action !== 'ledger.resume') continue;
    const ranges = jsonOrEmpty(details).skipped;
    for (const each of Array.isArray(ranges) ? ranges : []) {
      if (!skipped.delete(`${event} ${each?.from} ${each?.to}`))
        found(`event ${event} skipped ${each?.from} to ${each?.to}, but they are not skipped`);
    }
  }
  for (const problem of skipped.values()) found(problem);
}

/** Skipped numbers: each is a gap that its event explains. */
function skippedNumbers(pack, found) {
  return pack.of('skipped_numbers').map(({ series, first_sequence, last_sequence, event_id: event }) => {
    const range = [Number(first_sequence), Number(last_sequence)];
    const [first, last] = range;
    if (first < 1 || last < first) found(`${series}: ${first} to ${last} is not a range of numbers`);
    pack.note(
      `${series}: ${first === last ? `${first} was` : `${first} to ${last} were`} skipped; event ${event} has the reason`,
    );
    return { series, range };
  });
}

function checkNumbers(sequences, fromTheStart, found) {
  for (const [series, ranges] of sequences) {
    ranges.sort(([one], [other]) => one - other);
    let next = fromTheStart ? 1 : ranges[0][0];
    for (const [first, last] of ranges) {
      if (first > next)
        found(`${series}: ${first === next + 1 ? `${next} is` : `${next} to ${first - 1} are`} missing`);
      if (first < next) found(`${series}: ${first} was assigned twice`);
      next = last + 1;
    }
  }
}

/**
 * The decider of a request is not its requester, was an approver at that time, decided before the expiry, and matches
 * its event. For an event of one person, no other user was an approver at that time.
 */
function checkApprovals(pack) {
  const found = (problem) => pack.found('approvals', problem);
  const requests = byId(pack, 'approval_requests', 'request_id');
  const events = byId(pack, 'audit_events', 'event_id');
  const decisions = pack.of('approval_decisions');
  for (const { request_id: id, requested_by: asker, decision, decided_by: user, ...each } of decisions) {
    const [request, event] = [requests.get(id), events.get(each.event_id)];
    const what = `request ${id}: ${decision} by user ${user}`;
    if (request === undefined ? pack.fromTheStart : request.requested_by !== asker || request.fact > each.fact)
      found(`${what}: user ${asker} had made no such request`);
    if ((decision === 'withdraw') !== (user === asker)) found(`${what}: user ${asker} requested it`);
    if (decision === 'approve' && request !== undefined && each.recorded_at >= request.expires_at)
      found(`${what}: it had expired at ${request.expires_at}`);
    if (event?.action !== `approval.${decision}` || event.user_id !== user || askedIn(event) !== id)
      found(`${what}: event ${each.event_id} differs`);
    if (decision !== 'withdraw' && pack.fromTheStart && !wasApprover(pack, user, each.fact))
      found(`${what}: not an approver at that time`);
  }
  const alone = pack.of('audit_events').filter(isAlone);
  const approvers = [...new Set(pack.of('user_roles').map((each) => each.user_id))];
  for (const { event_id: id, action, user_id: user, details, fact } of pack.fromTheStart ? alone : []) {
    const partners = jsonOrEmpty(details).one_person?.partners ?? null;
    const other = approvers.find((each) => each !== user && wasApprover(pack, each, fact, partners));
    if (other !== undefined)
      found(`event ${id}: ${action} was done alone, but user ${other} was an approver at that time`);
  }
  if (alone.length > 0)
    pack.note(`${many(alone.length, 'event')} of one person: no one else could approve them at that time`);
  return many(decisions.length, 'decision');
}

/** Actions without a second person, from the closes of the pack's months. */
function noteOnePerson(pack) {
  if (pack.manifest.environment !== 'production') return;
  const said = new Map();
  for (const { action, subject, details } of pack.of('audit_events')) {
    const text = action === 'month.close' && standing(jsonOrEmpty(details));
    if (text) said.set(text, [...(said.get(text) ?? []), subject]);
  }
  for (const [text, months] of said) pack.note(`approvals at the close of ${months.join(', ')}: ${text}`);
}

function standing({ approvers, approvers_of_some: ofSome, approval_rules: rules }) {
  if (!Number.isInteger(approvers)) return undefined;
  if (approvers === 0 && ofSome > 0) return 'approvers of some partners only: no one can approve for other partners';
  if (approvers < 2) return 'one person: actions are not approved by a second person';
  return rules?.length === 0 && `no rules: ${approvers} people could approve, but no action requires it`;
}

const askedIn = ({ details }) => String(jsonOrEmpty(details).request);

/** Over these partners (null: all). Undefined: over any, as which partners a request touches is not compared here. */
function wasApprover(pack, user, fact, partners) {
  if (pack.of('user_ends').some((each) => each.user_id === user && each.fact < fact)) return false;
  const latest = new Map();
  for (const each of pack.of('user_roles'))
    if (each.user_id === user && each.role === 'approver' && each.fact < fact)
      latest.set(`${each.source} ${each.partner_id}`, each);
  const granted = [...latest.values()].filter(({ action }) => action === 'grant').map((each) => each.partner_id);
  if (partners === undefined || granted.includes(null)) return granted.length > 0;
  return partners === null ? false : partners.every((each) => granted.includes(each));
}

function checkBooks(pack) {
  const { books, records, counts } = pack;
  const found = (problem) => pack.found('books', problem);
  let before;
  for (const each of books.values()) {
    const { month, previous, sealedAfter, factsTo, weAre } = each;
    if (before !== undefined && weAre !== before.weAre)
      found(`the books of ${month} have we_are ${weAre}, those of ${before.month} ${before.weAre}`);
    if (before !== undefined && previous?.seal !== before.seal)
      found(`the books of ${month} closed after ${previous?.seal ?? 'none'}, not after ${before.seal}`);
    if (before !== undefined && factsTo < before.factsTo)
      found(`the books of ${month} closed before those of ${before.month}`);
    const sealed = records.get(sealedAfter.month);
    if (sealed !== undefined && sealed.seal !== sealedAfter.seal)
      found(`the books of ${month} name another seal of ${sealedAfter.month}`);
    const next = records.get(monthAfter(sealedAfter.month));
    if ((sealed !== undefined && factsTo < sealed.last) || (next !== undefined && factsTo > next.last))
      found(`the books of ${month} did not close after the seal of ${sealedAfter.month}`);
    checkTrialBalance(each, found);
    if (before !== undefined || previous === null) checkRollForward(pack, before, each, found);
    else pack.note(`the balances of ${month} are not added up: the books before it are not in this pack`);
    before = each;
  }
  for (const close of pack.of('book_closes')) {
    const closed = books.get(close.month);
    if (closed === undefined && records.has(close.month))
      found(`the books of ${close.month} closed but are not in the pack`);
    else if (
      closed &&
      (closed.text !== close.record || closed.seal !== close.seal || `${closed.factsTo}` !== close.facts_to)
    )
      found(`the books of ${close.month} are not those that were sealed in ${close.sealed_in}`);
  }
  checkPostings(pack, found);
  for (const month of records.keys())
    if (!books.has(month)) pack.note(`the books of ${month} are open: its entries can still change`);
  return `${many(books.size, 'month')}, ${many(counts.entries, 'entry', 'entries')}, ${many(counts.accounts, 'balance')}`;
}

function checkTrialBalance({ month, balancesNow, balances }, found) {
  const controls = new Map();
  const currencies = new Map();
  for (const [key, { control, amount }] of balancesNow) {
    const currency = key.split('\t')[1];
    addTo(controls, `${control} ${currency}`, [amount]);
    addTo(currencies, currency, [amount]);
  }
  for (const name of keysOf(controls, balances))
    if ((controls.get(name)?.[0] ?? 0n) !== (balances.get(name) ?? 0n))
      found(`${month}: the accounts of ${name} do not add up to the balance of the record`);
  for (const [currency, [sum]] of currencies)
    if (sum !== 0n) found(`${month}: debits and credits in ${currency} differ`);
}

/** The accounts of rows: without the rows, their balances cannot be added up. */
const OF_ROWS = /^(?:assets:receivable:(?:unbilled|processor)|expenses:partner-cut|income:sales)(?::|\t)/;

function checkRollForward({ manifest, postings }, before, { month, balancesNow, moved }, found) {
  const sums = new Map([...moved].map(([key, sum]) => [key, [...sum]]));
  for (const [key, { amount }] of before?.balancesNow ?? []) addTo(sums, key, [amount]);
  for (const [key, amounts] of postings)
    if (key.startsWith(`${month}\t`)) addTo(sums, key.slice(month.length + 1), amounts);
  for (const key of keysOf(sums, balancesNow)) {
    if (manifest.kind !== 'ledger' && OF_ROWS.test(key)) continue;
    if ((balancesNow.get(key)?.amount ?? 0n) !== (sums.get(key)?.[0] ?? 0n))
      found(`${month}: ${key.replace('\t', ' in ')} does not follow from the month before`);
  }
}

// === POSTING RULES ===================================================================================================

const receivable = (name) => `assets:receivable:${name}`;
const [BILLED, UNBILLED, OWED] = ['billed', 'unbilled', 'processor'].map(receivable);
const [CREDIT, UNAPPLIED] = ['liabilities:partner-credit', 'liabilities:unapplied'];
const [BANK, PROCESSOR, CONVERSION] = ['assets:bank', 'assets:processor', 'equity:conversion'];
const [BAD_DEBTS, CHARGES, FEES] = ['expenses:bad-debts', 'expenses:bank-charges', 'expenses:processor-fees'];
const [ADJUSTMENTS, OPENING] = ['income:adjustments', 'equity:opening-balances'];
const TAX = 'liabilities:tax';
const ANY = undefined;

/** A fact older than the pack: its values are unknown, so values derived from it are undefined and not compared. */
const OLDER = Object.freeze({});
const account = (control, detail) =>
  detail === undefined || control === undefined ? undefined : detail ? `${control}:${detail}` : control;
const of = (control, { partner_id }) => account(control, partner_id);
function issuedFrom(document) {
  if (document === OLDER) return undefined;
  if (document.document === 'credit_note') return of(CREDIT, document);
  if (document.purpose === 'opening') return OPENING;
  return of(document.purpose === 'missing_shares' ? OWED : UNBILLED, document);
}
function issuedTo(document) {
  if (document === OLDER) return undefined;
  if (document.document === 'invoice') return of(BILLED, document);
  if (document.purpose === 'opening') return OPENING;
  return of(document.purpose === 'adjustment' ? ADJUSTMENTS : UNBILLED, document);
}
function moneyOf({ method, account: own }, match) {
  if (method === undefined) return undefined;
  return method === 'link' ? PROCESSOR : account(BANK, match ? match.account : own);
}

/** An entry. `money` has its currency and amount; `maybe` says that an older fact decides whether there is one. */
const entryOf = (debit, credit, { currency, amount }, document, reference, dated_on, maybe = false) => ({
  ...{ debit, credit, currency, document, reference, dated_on, maybe },
  amount: amount === undefined ? undefined : units(amount),
});
/** One entry for the net amount and one for each tax. With tax, one of them can have the opposite sign of the total. */
const documentEntry = (document, debit, credit, datedOn) => {
  const { currency, invoice_amount: net, number, taxes = [] } = document;
  if (document === OLDER) return [entryOf(debit, credit, {}, number, null, datedOn, true)];
  if (document.document === 'statement') return [];
  const own = of(document.document === 'invoice' ? BILLED : CREDIT, document);
  const amounts = [
    [net, debit, credit],
    ...taxes.map(({ country, category, rate, tax }) => {
      const payable = account(TAX, [country, category, rate].filter(Boolean).join(':'));
      return debit === own ? [tax, own, payable] : [tax, payable, own];
    }),
  ];
  return amounts
    .filter(([amount]) => amount !== '0')
    .map(([amount, to, from]) => {
      const sides = amount.startsWith('-') ? [from, to] : [to, from];
      return entryOf(...sides, { currency, amount: amount.replace('-', '') }, number, null, datedOn);
    });
};
const OF_DOCUMENTS = [BILLED, ADJUSTMENTS, OPENING, UNBILLED, CREDIT, OWED, TAX];

/**
 * The entries of each fact: its name, its table, the control accounts of debit and of credit, and how they follow. `join`
 * gives the fact of a table with this number. This is the table "Posting rules" in docs/pack-format.md, line by line.
 */
const posting = (fact, table, debits, credits, entriesOf) => ({ fact, table, debits, credits, entriesOf });
const POSTINGS = [
  posting('document_issued', 'documents', OF_DOCUMENTS, OF_DOCUMENTS, (each) =>
    documentEntry(each, issuedTo(each), issuedFrom(each), each.issued_on),
  ),
  posting('document_voided', 'voids', OF_DOCUMENTS, OF_DOCUMENTS, (each, join) => {
    const document = join('documents', each.document_id);
    return documentEntry(document, issuedFrom(document), issuedTo(document), each.voided_on);
  }),
  posting('credit_applied', 'credit_applications', [CREDIT], [BILLED], (each, join) => {
    const [document, note] = [join('documents', each.invoice_id), join('documents', each.credit_note_id)];
    const money = { currency: document.currency, amount: each.amount };
    return [entryOf(of(CREDIT, document), of(BILLED, document), money, document.number, note.number, each.applied_on)];
  }),
  posting('credit_released', 'credit_releases', [BILLED], [CREDIT], (each, join) => {
    const applied = join('credit_applications', each.credit_application_id);
    const [document, note] = [join('documents', applied.invoice_id), join('documents', applied.credit_note_id)];
    const money = { currency: document.currency, amount: applied.amount };
    return [entryOf(of(BILLED, document), of(CREDIT, document), money, document.number, note.number, each.released_on)];
  }),
  posting('written_off', 'write_offs', [BAD_DEBTS], [BILLED], (each, join) => {
    const document = join('documents', each.document_id);
    const money = { currency: document.currency, amount: each.amount };
    return [entryOf(BAD_DEBTS, of(BILLED, document), money, document.number, null, each.written_off_on)];
  }),
  posting('write_off_undone', 'write_off_reversals', [BILLED], [BAD_DEBTS], (each, join) => {
    const writeOff = join('write_offs', each.write_off_id);
    const document = join('documents', writeOff.document_id);
    const money = { currency: document.currency, amount: writeOff.amount };
    return [entryOf(of(BILLED, document), BAD_DEBTS, money, document.number, null, each.reversed_on)];
  }),
  posting('payment_received', 'payments', [PROCESSOR, BANK, OPENING], [UNAPPLIED], (each) => [
    entryOf(
      each.source === 'opening' ? OPENING : moneyOf(each),
      of(UNAPPLIED, each),
      each,
      null,
      each.reference,
      each.received_on,
    ),
  ]),
  posting('payment_assigned', 'payment_assignments', [UNAPPLIED], [UNAPPLIED], (each, join) => {
    const payment = join('payments', each.payment_id);
    const money = { currency: payment.currency, amount: each.amount };
    const from = account(UNAPPLIED, each.from_partner_id);
    if (units(each.amount) <= 0n) return [];
    return [entryOf(from, of(UNAPPLIED, each), money, null, payment.reference, each.assigned_on)];
  }),
  posting('payment_applied', 'payment_applications', [UNAPPLIED], [BILLED], (each, join) => {
    const [document, payment] = [join('documents', each.document_id), join('payments', each.payment_id)];
    return [entryOf(of(UNAPPLIED, each), of(BILLED, each), each, document.number, payment.reference, each.applied_on)];
  }),
  posting('payment_unapplied', 'payment_unapplications', [BILLED], [UNAPPLIED], (each, join) => {
    const applied = join('payment_applications', each.payment_application_id);
    const [document, payment] = [join('documents', applied.document_id), join('payments', applied.payment_id)];
    const [debit, credit] = [of(BILLED, applied), of(UNAPPLIED, applied)];
    return [entryOf(debit, credit, applied, document.number, payment.reference, each.unapplied_on)];
  }),
  posting('small_difference', 'small_differences', [CHARGES], [BILLED], (each, join) => {
    const applied = join('payment_applications', each.payment_application_id);
    const [document, payment] = [join('documents', each.document_id), join('payments', applied.payment_id)];
    return [entryOf(CHARGES, of(BILLED, applied), each, document.number, payment.reference, applied.applied_on)];
  }),
  posting('small_difference_undone', 'payment_unapplications', [BILLED], [CHARGES], (each, join) => {
    const applied = join('payment_applications', each.payment_application_id);
    const small =
      join.ifAny('small_differences', each.payment_application_id) ?? (applied === OLDER ? OLDER : undefined);
    if (small === undefined) return [];
    const [document, payment] = [join('documents', small.document_id), join('payments', applied.payment_id)];
    const texts = [document.number, payment.reference, each.unapplied_on];
    return [entryOf(of(BILLED, applied), CHARGES, small, ...texts, small === OLDER)];
  }),
  posting('payment_reversed', 'payment_reversals', [UNAPPLIED], ANY, (each, join) => {
    const payment = join('payments', each.payment_id);
    const neverCame = payment.source === 'opening' && (each.kind === 'mistake' || each.kind === 'duplicate');
    const credit = each.kind === 'other' ? each.booked_to : neverCame ? OPENING : moneyOf(payment);
    return [entryOf(of(UNAPPLIED, each), credit, each, null, payment.reference, each.reversed_on)];
  }),
  posting('payment_reinstated', 'payment_reinstatements', [PROCESSOR, BANK], [UNAPPLIED], (each, join) => {
    const reversal = join('payment_reversals', each.payment_reversal_id);
    const payment = join('payments', reversal.payment_id);
    const match = join.matchOf('payment_reversal_id', each.payment_reversal_id);
    const [debit, credit] = [moneyOf(payment, match), of(UNAPPLIED, each)];
    return [entryOf(debit, credit, reversal, null, payment.reference, each.reinstated_on)];
  }),
  posting('payout_received', 'payouts', [BANK], [PROCESSOR], (each, join) => {
    const line = join('bank_lines', each.bank_line_id);
    return [entryOf(account(BANK, each.account), PROCESSOR, each, null, line.bank_reference, each.received_on)];
  }),
  posting('payout_settled', 'payout_settlements', [FEES], [PROCESSOR], (each, join) => {
    const payout = join('payouts', each.payout_id);
    const line = join('bank_lines', payout.bank_line_id);
    const money = { currency: payout.currency, amount: each.fees };
    if (units(each.fees) <= 0n) return [];
    return [entryOf(FEES, PROCESSOR, money, null, line.bank_reference, each.entry_on)];
  }),
  posting('credit_refunded', 'credit_refunds', [CREDIT], [BANK], (each, join) => {
    const document = join('documents', each.document_id);
    const [debit, credit] = [of(CREDIT, each), account(BANK, each.account)];
    return [entryOf(debit, credit, each, document.number, each.reference, each.refunded_on)];
  }),
  posting('credit_refund_returned', 'credit_refund_returns', [BANK], [CREDIT], (each, join) => {
    const refund = join('credit_refunds', each.credit_refund_id);
    const document = join('documents', refund.document_id);
    const { account: own } = join.matchOf('credit_refund_id', each.credit_refund_id) ?? refund;
    const [debit, credit] = [account(BANK, own), of(CREDIT, refund)];
    return [entryOf(debit, credit, refund, document.number, refund.reference, each.returned_on)];
  }),
  posting('refund_matched', 'refund_matches', [BANK], [BANK], (each, join) => {
    const ofCredit = each.credit_refund_id !== null;
    const reversal = ofCredit ? OLDER : join('payment_reversals', each.payment_reversal_id);
    const booked = ofCredit ? join('credit_refunds', each.credit_refund_id) : join('payments', reversal.payment_id);
    const number = ofCredit ? join('documents', booked.document_id).number : null;
    if (booked.account === each.account) return [];
    const [debit, credit] = [account(BANK, booked.account), account(BANK, each.account)];
    return [entryOf(debit, credit, each, number, booked.reference, each.paid_on, booked === OLDER)];
  }),
  posting('share_received', 'share_allocations', [PROCESSOR], [OWED], (each, join) => shareEntry(each, join, 1n)),
  posting('share_reversed', 'share_allocations', [OWED], [PROCESSOR], (each, join) => shareEntry(each, join, -1n)),
  posting('share_converted', 'share_allocations', [CONVERSION, PROCESSOR], [CONVERSION, PROCESSOR], (each, join) => {
    if (each.currency === each.settled_currency) return [];
    const { id } = join('balance_transactions', each.balance_transaction_id);
    const out = units(each.amount) > 0n ? [CONVERSION, PROCESSOR] : [PROCESSOR, CONVERSION];
    const converted = (accounts, currency, amount) => {
      const money = { currency, amount: amount.replace('-', '') };
      return amount === '0' ? [] : [entryOf(...accounts, money, null, id, each.occurred_on)];
    };
    return [
      ...converted(out, each.currency, each.amount),
      ...converted(out.toReversed(), each.settled_currency, each.settled_amount),
    ];
  }),
];

function shareEntry(each, join, sign) {
  const amount = units(each.amount);
  const rest = amount - join.paid(each.share_allocation_id);
  if (amount * sign <= 0n || rest === 0n) return [];
  const { id } = join('balance_transactions', each.balance_transaction_id);
  const accounts = sign > 0n ? [PROCESSOR, of(OWED, each)] : [of(OWED, each), PROCESSOR];
  return [{ ...entryOf(...accounts, { currency: each.currency }, null, id, each.occurred_on), amount: rest * sign }];
}

/** The column with the number of a table's facts, and the table that owns the number if it is another. */
const NUMBERED_BY = {
  ...{ documents: ['document_id'], voids: ['document_id', 'documents'], payments: ['payment_id'] },
  credit_applications: ['credit_application_id'],
  credit_releases: ['credit_application_id', 'credit_applications'],
  write_offs: ['write_off_id'],
  write_off_reversals: ['write_off_id', 'write_offs'],
  payment_assignments: ['payment_assignment_id'],
  payment_applications: ['payment_application_id'],
  payment_unapplications: ['payment_application_id', 'payment_applications'],
  small_differences: ['payment_application_id', 'payment_applications'],
  payment_reversals: ['payment_reversal_id'],
  payment_reinstatements: ['payment_reversal_id', 'payment_reversals'],
  ...{ payouts: ['payout_id'], payout_settlements: ['payout_id', 'payouts'], bank_lines: ['bank_line_id'] },
  credit_refunds: ['credit_refund_id'],
  credit_refund_returns: ['credit_refund_id', 'credit_refunds'],
  refund_matches: ['refund_match_id'],
  share_allocations: ['share_allocation_id'],
  balance_transactions: ['balance_transaction_id'],
};

/** The facts of each table by their number, and the lowest and highest numbers. */
function numberedFacts(pack) {
  const tables = new Map();
  for (const [table, [column]] of Object.entries(NUMBERED_BY)) {
    const facts = byId(pack, table, column);
    let [lowest, highest] = [Number.POSITIVE_INFINITY, 0];
    for (const id of facts.keys()) [lowest, highest] = [Math.min(lowest, Number(id)), Math.max(highest, Number(id))];
    tables.set(table, { facts, lowest, highest });
  }
  return tables;
}

function joiner(pack, tables, found) {
  const isOlder = (table, id) => !pack.fromTheStart && Number(id) < tables.get(table).lowest;
  const join = (table, id) => {
    if (id === undefined) return OLDER;
    const fact = tables.get(table).facts.get(id);
    if (fact === undefined && !isOlder(table, id)) found(`a fact names number ${id} of ${table}, which does not exist`);
    return fact ?? OLDER;
  };
  const matches = {
    credit_refund_id: byId(pack, 'refund_matches', 'credit_refund_id'),
    payment_reversal_id: byId(pack, 'refund_matches', 'payment_reversal_id'),
  };
  const paid = new Map();
  for (const { share_allocation_id: id, amount } of pack.of('share_payments')) addTo(paid, id, [units(amount)]);
  return Object.assign(join, {
    isOlder: (table, id) => isOlder(table, id) && !tables.get(table).facts.has(id),
    ifAny: (table, id) => tables.get(table).facts.get(id),
    matchOf: (column, id) => matches[column].get(id),
    paid: (id) => paid.get(id)?.[0] ?? 0n,
  });
}

const COMPARED_OF_ENTRIES = words('entry_on dated_on debit credit currency document reference');
const isEntry = (line, entry) =>
  (entry.amount === undefined || units(line.amount) === entry.amount) &&
  COMPARED_OF_ENTRIES.every((each) => entry[each] === undefined || (entry[each] ?? '') === (line[each] ?? ''));

/** Every fact has its entries in the closed books, and every entry follows from a fact. */
function checkPostings(pack, found) {
  if (pack.books.size === 0) return;
  const tables = numberedFacts(pack);
  const join = joiner(pack, tables, found);
  const first = firstOf(pack.books);
  const left = new Map([...pack.books].map(([month]) => [month, new Map()]));
  for (const [month, { lines }] of pack.books)
    for (const line of lines) groupBy(left.get(month), entryName(line)).push(line);
  for (const { fact: name, table, entriesOf } of POSTINGS)
    for (const fact of pack.of(table)) {
      const own = fact.entry_on.slice(0, 7);
      const month = first.previous === null && own < first.month ? first.month : own;
      if (!left.has(month)) continue;
      const id = fact[NUMBERED_BY[table][0]];
      const lines = left.get(month).get(`${name} ${id}`) ?? [];
      for (const entry of entriesOf(fact, join)) {
        const at = lines.findIndex((line) => isEntry(line, { ...entry, entry_on: fact.entry_on }));
        if (at >= 0) lines.splice(at, 1);
        else if (!entry.maybe)
          found(`the books of ${month} do not have the entry ${name} ${id} that follows from its fact`);
      }
    }
  let apart = 0;
  for (const [month, names] of left)
    for (const line of [...names.values()].flat())
      if (isOfAnotherPack(pack, pack.books.get(month), line, tables, join)) apart += 1;
      else found(`the entry ${entryName(line)} in the books of ${month} does not follow from a sealed fact`);
  if (apart > 0) pack.note(`${apart} entries of closed books belong to facts outside this pack: not derived`);
}
const entryName = ({ fact, fact_id: id }) => `${fact} ${id}`;

/** Whether an entry can belong to a fact that is older than the pack or was recorded after its last seal. */
function isOfAnotherPack(pack, books, line, tables, join) {
  const { table, debits, credits } = POSTINGS.find(({ fact }) => fact === line.fact) ?? {};
  if (table === undefined) return false;
  const own = tables.get(table).facts.get(line.fact_id);
  // The taxes of a document older than the pack are unknown, so the entries of its void are too.
  const untold = table === 'voids' && own !== undefined && join.isOlder('documents', own.document_id);
  if (own !== undefined && !untold) return false;
  const isOf = (controls, name) =>
    controls === ANY || controls.some((each) => name === each || name.startsWith(`${each}:`));
  if (!isOf(debits, line.debit) || !isOf(credits, line.credit) || line.debit === line.credit) return false;
  if (units(line.amount) <= 0n || !IS_NUMBER.test(line.fact_id)) return false;
  if (untold) return true;
  const [, other] = NUMBERED_BY[table];
  const isLater = books.factsTo > [...pack.records.values()].at(-1).last;
  if (isLater && (other !== undefined || Number(line.fact_id) > tables.get(table).highest)) return true;
  return join.isOlder(other ?? table, line.fact_id);
}

// === CHECKPOINTS, SIGNATURES, TIME STAMPS ============================================================================

function checkCheckpoints(pack) {
  const { manifest, checkpoints } = pack;
  let before;
  let apart = 0;
  for (const each of checkpoints) {
    const found = (problem) => pack.found('checkpoints', `checkpoint ${each.number}: ${problem}`);
    const { fact } = each;
    if (fact.seal !== each.seal) found(`its seal is ${each.seal}, not ${fact.seal}`);
    const stated = [each.number, each.facts.last, each.entries.last, each.takenAt];
    const inTable = [fact.checkpoint_number, fact.facts_to, fact.entries_to, instantOf(fact.taken_at)];
    if (stated.join() !== inTable.join()) found('its columns are not those of its record');
    if (each.installation !== `${manifest.installation} ${manifest.environment}`)
      found(`it belongs to the installation ${each.installation}`);
    checkCheckpointsChain(pack, before, each, found);
    checkTrees(each.facts.trees, each.tables, 1, found);
    if (manifest.kind === 'ledger') apart += checkRowsOfCheckpoint(pack, each, found);
    before = each;
  }
  if (manifest.kind !== 'ledger') pack.note('this kind of pack has no rows, so those of checkpoints are not compared');
  if (apart > 0) pack.note(`${apart} lines of checkpoints cover months outside this pack: not compared`);
  return `${many(checkpoints.length, 'checkpoint')}, each follows its predecessor`;
}

/** A time of a table, `2026-07-15 12:00:00.25+00`, as records have it. */
function instantOf(sealed) {
  const [, second, fraction = ''] = /^(.*?)(?:\.(\d{1,6}))?Z$/.exec(exportedTime(sealed ?? '')) ?? [];
  return second === undefined ? undefined : `${second}.${fraction.padEnd(6, '0')}Z`;
}

function checkCheckpointsChain({ fromTheStart }, before, each, found) {
  const { number, previous, record, facts, entries, takenAt } = each;
  if ((number === 1) !== (previous === null) || (previous !== null && previous.number !== number - 1))
    found('it does not follow the number before it');
  if (before === undefined ? fromTheStart && number !== 1 : number !== before.number + 1)
    found(`it comes after ${before?.number ?? 'none'}`);
  if (before !== undefined && previous?.seal !== before.seal)
    found(`it was taken after ${previous?.seal ?? 'none'}, not after ${before.seal}`);
  const sealedAfter = record.previous === null ? 'none' : `${record.previous.month} ${record.previous.seal}`;
  if (each.sealedAfter !== sealedAfter) found(`it was taken after the seal ${each.sealedAfter}, not ${sealedAfter}`);
  if (takenAt > record.sealedAt || takenAt < (before?.takenAt ?? '')) found(`it was taken at ${takenAt}`);
  const first = before?.record === record ? before.facts.last + 1 : record.first;
  if (facts.first !== first) found(`its facts begin at ${facts.first}, not at ${first}`);
  if (facts.last >= each.factId) found('its facts end after its own');
  const entry = number === 1 ? 1 : before && before.entries.last + 1;
  if (entry !== undefined && entries.first !== entry) found(`its rows begin at ${entries.first}, not at ${entry}`);
  if (each.columns.join() !== record.columns.join()) found('its columns of rows are not those of the month');
}

/** Compares a range with what its lines state; a tree of facts also has a header. */
function checkTrees(trees, stated, headers, found) {
  for (const key of keysOf(trees, stated)) {
    const [tree, line] = [trees.get(key), stated.get(key)];
    if (tree === undefined || line === undefined || tree.leaves - headers !== line.rows || tree.root() !== line.hash)
      found(`its data of ${key} is not what it states`);
  }
}

function checkRowsOfCheckpoint({ records, fromTheStart }, { rows, entries }, found) {
  const first = firstOf(records).month;
  const isKnown = ([month]) => records.has(month) || (fromTheStart && month < first);
  const known = new Map([...rows].filter(isKnown));
  checkTrees(entries.trees, known, 0, found);
  return rows.size - known.size;
}

const KEY_NAME = '[!-*,-~]{1,100}';
const ED25519 = Buffer.from('302a300506032b6570032100', 'hex');
/** The bytes, if the text is their one Base64 form and has this many. */
function base64(text, bytes) {
  const decoded = Buffer.from(text ?? '', 'base64');
  return decoded.length === bytes && decoded.toString('base64') === text ? decoded : undefined;
}
const keyIdOf = (name, key) => createHash('sha256').update(`${name}\n\x01`).update(key).digest('hex').slice(0, 8);
const vkeyOf = (name, key) => `${name}+${keyIdOf(name, key)}+${Buffer.from([1, ...key]).toString('base64')}`;
const isSigned = (content, key, signature) =>
  verify(null, Buffer.from(content), { key: Buffer.concat([ED25519, key]), format: 'der', type: 'spki' }, signature);

/** A key from the command line. */
function verifierKey(vkey) {
  const [, name, id, encoded] = whole(`(${KEY_NAME})\\+([0-9a-f]{8})\\+(.*)`).exec(vkey) ?? [];
  const bytes = base64(encoded, 33);
  const key = bytes?.subarray(1);
  if (bytes?.[0] !== 1 || keyIdOf(name, key) !== id) throw new Unusable(`'${vkey}' is not a verifier key`);
  return { name, id, key };
}

/** The lines of a .sig file, or of a note after its empty line. */
function signatureLines(place, content) {
  const lines = content.split('\n');
  if (lines.pop() !== '' || lines.length === 0 || lines.length > 16) malformed(place, 'does not have 1 to 16 lines');
  const parsed = lines.map((line) => {
    const [, name, encoded] = whole(`\u2014 (${KEY_NAME}) (.*)`).exec(line) ?? [];
    const bytes = base64(encoded, 68);
    if (bytes === undefined) malformed(place, 'a line is not a signature');
    return { line, name, id: bytes.subarray(0, 4).toString('hex'), signature: bytes.subarray(4) };
  });
  if (new Set(parsed.map(({ name, id }) => `${name} ${id}`)).size < parsed.length)
    malformed(place, 'a key has signed twice');
  return parsed;
}

/** Whether a signature is by one of these keys. One that claims to be but is not valid is a problem. */
function signedBy(keys, content, lines, found) {
  let signed = false;
  for (const { name, id, signature } of lines)
    for (const key of keys.filter((each) => each.name === name && each.id === id)) {
      if (isSigned(content, key.key, signature)) signed = true;
      else found(`the signature of ${name} is not of this text`);
    }
  return signed;
}

function checkSignatures(pack, keys) {
  const found = (problem) => pack.found('signatures', problem);
  const signed = new Map();
  for (const { kind, name, folder, record } of recordsOf(pack)) {
    const place = `${folder}/record.sig`;
    const lines = pack.names.includes(place) ? signatureLines(place, textOf(pack.folder, place)) : [];
    signed.set(`${kind} ${name}`, { place, content: record.text, seal: record.seal, lines });
  }
  for (const { number, seal, fact } of pack.checkpoints)
    signed.set(`checkpoint ${number}`, { place: `checkpoint ${number}`, content: fact.record, seal, lines: [] });
  const rows = new Set();
  const vkeys = new Set();
  for (const row of pack.of('seal_signatures')) {
    const what = `${row.kind} ${row.name}`;
    if (rows.has(what)) found(`${what} is signed by two facts`);
    rows.add(what);
    vkeys.add(checkSignatureRow(row, what, signed.get(what), found));
  }
  for (const { place, content, lines } of keys.length > 0 ? signed.values() : [])
    if (!signedBy(keys, content, lines, (problem) => found(`${place}: ${problem}`)))
      found(`${place} has no signature by a key that you gave`);
  if (keys.length === 0) pack.note('signatures were not compared with a key that you hold: give it with --key');
  if (keys.length === 0) for (const vkey of vkeys) if (vkey) pack.note(`the key of the signatures: ${vkey}`);
  return `${[...signed.values()].filter(({ lines }) => lines.length > 0).length} of ${signed.size} records are signed`;
}

/** A fact of `seal_signatures` is a signature of its record, and in the .sig beside it. Returns its key. */
function checkSignatureRow(row, what, record, found) {
  const key = base64(row.public_key, 32);
  const signature = base64(row.signature, 64);
  const isName = { month: IS_MONTH, books: IS_MONTH, checkpoint: IS_NUMBER }[row.kind]?.test(row.name);
  if (!isName || !key || !signature || !whole(KEY_NAME).test(row.key_name ?? '')) {
    found(`the signature of ${what} is malformed`);
    return undefined;
  }
  const id = keyIdOf(row.key_name, key);
  if (record !== undefined) {
    if (row.seal !== record.seal) found(`the signature of ${what} covers the seal ${row.seal}, not ${record.seal}`);
    if (!isSigned(record.content, key, signature)) found(`the signature of ${what} is not valid`);
    if (row.kind === 'checkpoint') record.lines.push({ name: row.key_name, id, signature });
    else if (
      !record.lines.some((each) => each.name === row.key_name && each.id === id && each.signature.equals(signature))
    )
      found(`${record.place} does not have the signature that was sealed`);
  }
  return vkeyOf(row.key_name, key);
}

const LONGEST_STAMP = 65_536;
function checkTimeStamps(pack) {
  const found = (problem) => pack.found('time stamps', problem);
  const stamped = new Map(pack.checkpoints.map(({ number, seal }) => [`checkpoint ${number}`, { seal }]));
  let stamps = 0;
  for (const { kind, name, folder, record } of recordsOf(pack)) {
    const place = `${folder}/record.tsr`;
    const there = pack.names.includes(place);
    stamped.set(`${kind} ${name}`, { seal: record.seal, place, there });
    if (!there) continue;
    stamps += 1;
    const size = pack.manifest.files.get(place).bytes;
    const bytes = size <= LONGEST_STAMP ? readFileSync(join(pack.folder, place)) : Buffer.of();
    if (!isSequence(bytes)) found(`${place} is not an answer of an authority`);
    if (!bytes.includes(Buffer.from(`0420${record.seal}`, 'hex'))) found(`${place} is a stamp of something else`);
  }
  const rows = new Set();
  for (const row of pack.of('seal_time_stamps')) {
    const what = `${row.kind} ${row.name}`;
    if (rows.has(what)) found(`${what} is stamped by two facts`);
    rows.add(what);
    const record = stamped.get(what);
    if (record === undefined) continue;
    if (row.seal !== record.seal) found(`the stamp of ${what} covers the seal ${row.seal}, not ${record.seal}`);
    if (row.kind === 'checkpoint') continue;
    if (!record.there || pack.manifest.files.get(record.place).sha256 !== row.response_sha256)
      found(`${record.place} is not the stamp that was sealed`);
  }
  pack.note(
    `${stamps} records have a time stamp. Only openssl proves the authority: ` +
      'openssl ts -verify -data record.txt -in record.tsr -CAfile …',
  );
  return `${stamps} stamps, each of its record`;
}

/** One DER SEQUENCE with a definite length that ends with the file. */
function isSequence(bytes) {
  if (bytes.length < 2 || bytes[0] !== 0x30) return false;
  if (bytes[1] < 0x80) return bytes.length === 2 + bytes[1];
  const digits = bytes[1] - 0x80;
  return (
    digits > 0 && digits <= 4 && bytes.length > 2 + digits && bytes.length === 2 + digits + bytes.readUIntBE(2, digits)
  );
}

// === DATA FILES ======================================================================================================

/** Reads a data file, compares rows and totals with the manifest, and passes each row to `each`. */
function readData(pack, name, each) {
  const { rows: expected, totals } = pack.manifest.files.get(name);
  const summed = SUMMED[pack.manifest.kind];
  const sums = new Map();
  let rows = 0;
  for (const { row, line } of dataRows(pack, name)) {
    rows += 1;
    if (totals !== undefined)
      addTo(
        sums,
        row.currency,
        summed.map((column) => units(row[column])),
      );
    each(row, line);
  }
  if (rows !== expected) pack.found(name, `${rows} rows where the manifest says ${expected}`);
  if (totals === undefined) return;
  for (const currency of keysOf(sums, totals))
    if (String(sums.get(currency)) !== String(totals.get(currency)))
      pack.found(name, `its ${currency} totals are not the manifest's`);
}

/** Compares a row with its sealed values by column. NULL is an empty text; undefined values are not compared. */
function compareRow(pack, name, what, row, sealed) {
  const other = [];
  for (const column in sealed)
    if (column in row && sealed[column] !== undefined && row[column] !== (sealed[column] ?? '')) other.push(column);
  if (other.length > 0) pack.found(name, `${what} is not as it was sealed in ${other.join(', ')}`);
}

/** Takes the sealed values of these columns, under their names in data files. */
const SEALED = { spotPrice: 'spot_price', partnerCut: 'partner_cut', invoiceAmount: 'invoice_amount' };
function sealedValues(columns, fact) {
  const values = {};
  for (const column of columns) {
    const value = fact[SEALED[column] ?? column];
    values[column] = typeof value === 'string' && TIMES.has(column) ? exportedTime(value) : value;
  }
  return values;
}

function unsealed(pack, count, what) {
  if (count > 0) pack.note(`${count} ${what} under no seal of this pack`);
}
const statedNow = (pack, name, columns) => pack.note(`${name}: ${columns} are as of the export and not sealed`);

/** The sealed rows of all months as they are exported, each with its bill. */
function* sealedRows(pack) {
  for (const { month, columns } of pack.records.values()) {
    const lines = linesOf(pack, `sealed/${month}/ledger_rows.tsv`);
    lines.next();
    for (const line of lines) {
      const row = { ...asObject(columns, fieldsOf(line, month)), document: undefined };
      yield {
        sealed: { ...sealedValues(DATA_COLUMNS.ledger, row), posted_month: month },
        bill: billOf({ ...row, month }),
      };
    }
  }
}

const IS_DOCUMENT = /^[A-Z]+-\d{4}-\d{6,}$/;
function compareLedger(pack, name) {
  const sealed = sealedRows(pack);
  const open = new Set(pack.manifest.months.filter(({ seal }) => seal === null).map(({ month }) => month));
  const found = (row, problem) => pack.found(name, `row ${row.entry_id} ${problem}`);
  let [later, unknown, last] = [0, 0, 0];
  readData(pack, name, (row) => {
    const { value, done } = sealed.next();
    if (done) {
      later += 1;
      if (!open.has(row.posted_month)) found(row, `is none of the sealed rows of ${row.posted_month}`);
      if (row.document !== '') found(row, `of an open month names ${row.document}`);
      if (!IS_NUMBER.test(row.entry_id) || Number(row.entry_id) <= last) found(row, 'is out of order');
      last = Number(row.entry_id);
      return;
    }
    compareRow(pack, name, `row ${value.sealed.entry_id}`, row, value.sealed);
    const expected = pack.bills.get(value.bill)?.find(({ replacedBy }) => replacedBy === undefined)?.number;
    if (row.document === expected) return;
    if (pack.numbers.has(row.document) || !IS_DOCUMENT.test(row.document))
      found(row, `names ${row.document || 'no document'}, and not ${expected}`);
    else unknown += 1;
  });
  if (!sealed.next().done) pack.found(name, 'sealed rows are missing at its end');
  unsealed(pack, later, `rows of ${name} belong to open months and are`);
  unsealed(pack, unknown, `rows of ${name} name a document that is`);
}

/** The documents of the pack's months in number order. */
function documentsInOrder({ documents, manifest: { from, to } }) {
  return [...documents.values()]
    .filter(({ month, purpose }) => month >= from && month <= to && purpose !== 'opening')
    .sort((one, other) =>
      one.series < other.series ? -1 : one.series > other.series ? 1 : one.sequence - other.sequence,
    );
}

/** The sealed values of a document. Later changes are compared only once they are sealed. */
function documentValues(pack, columns, document) {
  const numberOf = (id) => (id === null ? '' : pack.documents.get(id)?.number);
  return {
    ...sealedValues(columns, document),
    ...{ replaces: numberOf(document.replaces), credits: numberOf(document.credits), replaced_by: document.replacedBy },
    ...{ voided_on: document.void?.voided_on, void_reason: document.void?.reason },
    ...{ pdf_sha256: document.pdf, pdf: undefined, lines: undefined },
  };
}

function compareInvoices(pack, name, csv) {
  const columns = csv ? DATA_COLUMNS.invoices : JSON_COLUMNS.invoices;
  const missing = new Set(documentsInOrder(pack).map((each) => each.number));
  const later = { documents: 0, PDFs: 0, voids: 0, replacements: 0 };
  const voids = [];
  let before = ['', 0];
  readData(pack, name, (row) => {
    const { number, series, status } = row;
    const found = (problem) => pack.found(name, `${number}${problem}`);
    const sequence = Number(row.sequence);
    if (series < before[0] || (series === before[0] && !(sequence > before[1]))) found(' is out of order');
    before = [series, sequence];
    checkStanding(row, pack.numbers.get(number), found);
    if (row.purpose === 'opening') found(' was carried over and has no month');
    if (status === 'void') voids.push(voidOf(row, csv));
    const pdf = csv ? row.pdf_sha256 : (readPart(name, row.pdf, ['sha256', 'bytes'])?.[0] ?? '');
    if (!csv) readPart(name, row.email, words('status to message_id sent_at'));
    if (pdf !== '' && !(typeof pdf === 'string' && IS_HASH.test(pdf))) found(': the hash of its PDF is none');
    const document = pack.numbers.get(number);
    missing.delete(number);
    if (document === undefined) {
      later.documents += 1;
      return;
    }
    compareRow(pack, name, number, row, documentValues(pack, columns, document));
    if (document.pdf !== undefined && pdf !== document.pdf) found(' has another PDF than the sealed one');
    if (document.pdf === undefined && pdf !== '') later.PDFs += 1;
    if (document.void !== undefined && status !== 'void') found(` is void, not ${status}`);
    if (document.void === undefined && status === 'void') later.voids += 1;
    if (status !== 'void' && (row.void_reason !== '' || (csv && row.voided_on !== '')))
      found(' is not void but has a reason for a void');
    if (document.replacedBy === undefined && row.replaced_by !== '') {
      later.replacements += 1;
      if (pack.numbers.has(row.replaced_by)) found(` is not replaced by ${row.replaced_by}`);
    }
    if (!csv) compareJsonLines(pack, name, document, list(`${name}: lines`, row.lines));
  });
  pack.statedVoids = voids;
  for (const number of missing) pack.found(name, `${number} is missing`);
  for (const [what, count] of Object.entries(later)) unsealed(pack, count, `${what} of ${name} are`);
  statedNow(pack, name, 'status, credited, amount_paid, balance, and data about e-mails,');
}

const voidOf = ({ number, partner_id, month, currency, void_reason, voided_on }, csv) => ({
  ...{ number, partner_id, month, currency, reason: void_reason },
  ...(csv && { voided_on }),
});
const readPart = (name, value, keys) => (value === '' ? undefined : valuesOf(name, value, keys));

/** The amount due, the balance and the status follow from the other columns and the sealed tax. */
function checkStanding(row, document, found) {
  const tax = document?.taxes.reduce((sum, each) => sum + units(each.tax), 0n);
  const whole = tax === undefined ? undefined : units(row.invoiceAmount) + tax - units(row.credit_applied);
  // The tax of a document is unknown until it is sealed.
  const due = row.document === 'statement' ? 0n : (whole ?? units(row.amount_due));
  const left = row.status === 'void' ? 0n : due - units(row.credited) - units(row.amount_paid);
  if (units(row.amount_due) !== due) found(': amount_due does not follow');
  if (units(row.balance) !== left) found(': balance does not follow');
  if (row.status !== 'void' && row.status !== (left === 0n ? 'paid' : 'open')) found(': status does not follow');
}

const LINE_IN_JSON = ['policy_id', 'kind', 'month', 'count', ...LEDGER_SUMS];
function compareJsonLines(pack, name, { number, lines: sealed }, lines) {
  if (lines.length !== sealed.length)
    pack.found(name, `${number} has ${lines.length} lines where ${sealed.length} were sealed`);
  for (const [index, line] of sealed.slice(0, lines.length).entries()) {
    const what = `line ${line.position} of ${number}`;
    const row = asObject(LINE_IN_JSON, valuesOf(`${name}: ${what}`, lines[index], LINE_IN_JSON).map(jsonCell));
    for (const column of LEDGER_SUMS) row[column] = plainAmount(row[column], false, name);
    compareRow(pack, name, what, row, sealedValues(LINE_IN_JSON, line));
  }
}

/** Compares rows with sealed ones in the same order, and returns the number of other rows. */
function compareInOrder(pack, name, sealed, { isLater, eachRow = () => {}, alsoCompare = () => {} }) {
  let [next, later] = [0, 0];
  readData(pack, name, (row, line) => {
    const expected = sealed[next];
    eachRow(row);
    if (isLater(row, expected)) later += 1;
    else if (expected === undefined) pack.found(name, `${Object.values(row).slice(0, 2).join(' ')} was not sealed`);
    else {
      next += 1;
      compareRow(pack, name, expected.what, row, expected.values);
      alsoCompare(expected, line);
    }
  });
  for (const { what } of sealed.slice(next)) pack.found(name, `${what} is missing`);
  return later;
}

function compareInvoiceLines(pack, name) {
  const columns = DATA_COLUMNS['invoice-lines'];
  const sealed = documentsInOrder(pack).flatMap(({ number, currency, lines }) =>
    lines.map((line) => ({
      what: `line ${line.position} of ${number}`,
      values: { ...sealedValues(columns, line), number, currency },
    })),
  );
  const later = compareInOrder(pack, name, sealed, { isLater: ({ number }) => !pack.numbers.has(number) });
  unsealed(pack, later, `lines of ${name} belong to documents`);
}

/** Whether the last month of the pack is open, so that unsealed data can follow. */
function endsOpen({ manifest: { months, to } }) {
  return months.at(-1).seal === null || months.at(-1).month < to;
}

const BEFORE_DETAILS = ', "details" : ';
function compareEvents(pack, name, csv) {
  const open = endsOpen(pack);
  const sealed = pack.of('audit_events').map((event) => ({
    ...{ what: `event ${event.event_id}`, details: event.details },
    values: { ...sealedValues(EVENT, event), ...(!csv && { details: undefined }) },
  }));
  const alsoCompare = ({ what, details }, line) => {
    if (csv) return;
    // In JSON Lines the details are the sealed text itself, not encoded again.
    const at = line.indexOf(BEFORE_DETAILS);
    if (at < 0 || !line.startsWith(`${details}, "claimed_by" : `, at + BEFORE_DETAILS.length))
      pack.found(name, `${what} is not as it was sealed in details`);
  };
  const isLater = (_, expected) => expected === undefined && open;
  const later = compareInOrder(pack, name, sealed, { isLater, alsoCompare });
  unsealed(pack, later, `events of ${name} are`);
}

const isDated = ({ entry_on }, { from, to }) => entry_on.slice(0, 7) >= from && entry_on.slice(0, 7) <= to;

/** Compares rows, which ascend by a numeric key, with sealed ones. Returns the number of other rows. */
function compareByKey(pack, name, what, key, sealed, eachRow = () => {}) {
  const missing = new Set([...sealed].filter(([, { required }]) => required).map(([id]) => id));
  let later = 0;
  let before = key.map(() => 0);
  readData(pack, name, (row) => {
    const numbers = key.map((column) => Number(row[column]));
    const id = key.map((column) => row[column]).join(' ');
    const at = numbers.findIndex((number, index) => number !== before[index]);
    if (at < 0 || !(numbers[at] > before[at])) pack.found(name, `${what} ${id} is out of order`);
    before = numbers;
    eachRow(row);
    missing.delete(id);
    const expected = sealed.get(id);
    if (expected === undefined) later += 1;
    else compareRow(pack, name, `${what} ${id}`, row, expected.values);
  });
  for (const id of missing) pack.found(name, `${what} ${id} is missing`);
  return later;
}

function comparePayments(pack, name) {
  const sealed = new Map();
  for (const payment of pack.of('payments')) {
    // A payment can be assigned later, so partner_id is as of the export.
    const values = { ...sealedValues(PAYMENT, payment), partner_id: undefined };
    sealed.set(payment.payment_id, { values, required: isDated(payment, pack.manifest) });
  }
  const later = compareByKey(pack, name, 'payment', ['payment_id'], sealed);
  unsealed(pack, later, `payments of ${name} are`);
  statedNow(pack, name, 'partner_id, applied, reversed, unapplied, status');
}

/** The rows are the void documents of invoices.F, in its order. */
function compareVoids(pack, name) {
  let [at, later] = [0, 0];
  const stated = pack.statedVoids;
  readData(pack, name, (row) => {
    if (stated !== undefined && stated[at] === undefined) pack.found(name, `${row.number} is not void in the invoices`);
    else if (stated !== undefined) compareRow(pack, name, `the void of ${row.number}`, row, stated[at]);
    at += 1;
    const document = pack.numbers.get(row.number);
    if (document?.void === undefined) later += 1;
    else {
      const values = { ...sealedValues(DATA_COLUMNS.voids, document.void), number: document.number };
      compareRow(pack, name, `the void of ${row.number}`, row, values);
    }
  });
  for (const { number } of stated?.slice(at) ?? []) pack.found(name, `the void of ${number} is missing`);
  unsealed(pack, later, `voids of ${name} are`);
}

function compareWriteOffs(pack, name) {
  const writeOffs = byId(pack, 'write_offs', 'write_off_id');
  const sealed = new Map();
  const add = (fact, writeOff, move) => {
    const document = pack.documents.get(writeOff?.document_id);
    const amount = writeOff && (move === 'reversed' ? negated(writeOff.amount) : writeOff.amount);
    const values = {
      ...sealedValues(DATA_COLUMNS['write-offs'], fact),
      ...{ fact_id: String(fact.fact), move, document: document?.number, amount },
      ...{ partner_id: document?.partner_id, currency: document?.currency },
      dated_on: move === 'reversed' ? fact.reversed_on : fact.written_off_on,
    };
    sealed.set(values.fact_id, { values, required: isDated(fact, pack.manifest) });
  };
  for (const fact of writeOffs.values()) add(fact, fact, 'written_off');
  for (const fact of pack.of('write_off_reversals')) add(fact, writeOffs.get(fact.write_off_id), 'reversed');
  const later = compareByKey(pack, name, 'write-off of fact', ['fact_id'], sealed);
  unsealed(pack, later, `rows of ${name} are`);
}

/** The items of openings, in the order of recording, and whether each is still open. */
function compareOpenings(pack, name) {
  const carried = (fact, values) => ({
    ...{ fact: fact.fact, what: values.number },
    values: {
      ...{ fact_id: String(fact.fact), opening_id: fact.opening_id, cut_over_on: fact.entry_on },
      ...{ partner_id: fact.partner_id, currency: fact.currency, ...values },
    },
  });
  const sealed = [
    ...[...pack.documents.values()]
      .filter((each) => each.opening_id !== null)
      .map((each) =>
        carried(each, {
          ...{ kind: each.document === 'invoice' ? 'invoice' : 'credit', number: each.number },
          ...{ date: each.issued_on, due_on: each.due_on },
          ...{ original_amount: each.original_amount, amount: each.invoice_amount },
        }),
      ),
    ...pack
      .of('payments')
      .filter((each) => each.opening_id !== null)
      .map((each) =>
        carried(each, {
          ...{ kind: 'cash', number: each.opening_number, date: each.received_on, due_on: null },
          ...{ original_amount: each.amount, amount: each.amount },
        }),
      ),
  ].sort((one, other) => one.fact - other.fact);
  const eachRow = ({ kind, number, status, balance }) => {
    if (!['open', 'settled', 'reversed'].includes(status) || (status === 'open') !== units(balance) > 0n)
      pack.found(name, `${number} is not ${status} with ${balance} open`);
    if (kind !== 'cash' && pack.numbers.get(number)?.void !== undefined && status !== 'reversed')
      pack.found(name, `${number} is reversed, not ${status}`);
  };
  const open = endsOpen(pack);
  const isLater = (_, expected) => expected === undefined && open;
  unsealed(pack, compareInOrder(pack, name, sealed, { isLater, eachRow }), `items of ${name} are`);
  statedNow(pack, name, 'status and balance');
}

function compareBankLines(pack, name) {
  const columns = DATA_COLUMNS['bank-lines'];
  const lines = byId(pack, 'bank_lines', 'bank_line_id');
  const outcomes = byId(pack, 'bank_line_outcomes', 'bank_line_id');
  const statements = byId(pack, 'bank_statements', 'bank_statement_id');
  const files = byId(pack, 'bank_files', 'bank_file_id');
  const { from, to } = pack.manifest;
  const sealed = new Map();
  const ofStatement = new Map();
  for (const each of pack.of('bank_statement_lines')) {
    const line = lines.get(each.bank_line_id);
    const statement = statements.get(each.bank_statement_id);
    const file = files.get(statement?.bank_file_id);
    const values = {
      ...sealedValues(columns, {
        ...outcomes.get(each.bank_line_id),
        ...line,
        ...each,
        recorded_at: file?.recorded_at,
      }),
      ...{ statement: statement && (statement.reference ?? ''), file: file?.name, file_sha256: file?.sha256 },
    };
    const month = line?.bank_booked_on.slice(0, 7);
    sealed.set(`${each.bank_statement_id} ${each.position}`, { values, required: month >= from && month <= to });
    groupBy(ofStatement, each.bank_statement_id).push(line);
  }
  const later = compareByKey(pack, name, 'line', ['bank_statement_id', 'position'], sealed);
  for (const statement of statements.values())
    checkStatement(statement, ofStatement.get(statement.bank_statement_id) ?? [], (problem) =>
      pack.found(name, `statement ${statement.bank_statement_id} ${problem}`),
    );
  unsealed(pack, later, `rows of ${name} are`);
}

/** A statement has the stated number of lines, and they add up to its totals. */
function checkStatement(statement, lines, found) {
  if (String(lines.length) !== statement.lines) found(`has ${lines.length} lines but states ${statement.lines}`);
  const totals = words('opening closing credits debits').map((each) => statement[each]);
  if (totals.some((each) => each !== null && !IS_AMOUNT.test(each))) found('has totals that are not amounts');
  else {
    const [opening, closing, credits, debits] = totals.map((each) => (each === null ? undefined : units(each)));
    if (opening !== undefined && closing !== undefined && opening + credits - debits !== closing)
      found('does not lead from its opening to its closing balance');
    if (lines.includes(undefined)) return;
    const sum = (isCredit) =>
      lines
        .filter(({ direction }) => (direction === 'credit') === isCredit)
        .reduce((all, { amount }) => all + units(amount), 0n);
    if (sum(true) !== credits || sum(false) !== debits) found('is not the sum of its lines');
  }
}

/** Partner and field of a change; a policy's field is `policies.`, its id, and one of its columns. */
const POLICY_COLUMNS = DATA_COLUMNS.policies.slice(2);
const POLICY_FIELD = whole(`policies\\.(.+)\\.(${POLICY_COLUMNS.join('|').replaceAll('.', '\\.')})`);

/** The last values that the changes of partner-changes.F give, by file and row, then column. */
function lastChanges(pack, format) {
  const last = { partners: new Map(), policies: new Map() };
  const under = (rows, key) => rows.get(key) ?? rows.set(key, new Map()).get(key);
  try {
    for (const { row } of dataRows(pack, `partner-changes.${format}`)) {
      const [, policy, column] = POLICY_FIELD.exec(row.field) ?? [];
      if (policy === undefined) under(last.partners, row.partner_id).set(row.field, row.new);
      else under(last.policies, `${row.partner_id}\t${policy}`).set(column, row.new);
    }
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    return undefined;
  }
  for (const [key, values] of last.policies)
    if ([...values.values()].every((value) => value === '')) last.policies.delete(key);
  return last;
}

/** Partners or policies as of the export. If the pack has all changes, these follow from them. */
function comparePresent(pack, name, csv) {
  const [kind] = name.split('.');
  const key = kind === 'partners' ? ['partner_id'] : ['partner_id', 'policy_id'];
  const last = lastChanges(pack, csv ? 'csv' : 'jsonl')?.[kind];
  const closed = pack.manifest.months.some(({ month, seal }) => month === pack.manifest.to && seal !== null);
  const replays = pack.fromTheStart && !closed && last !== undefined;
  const left = new Set(last?.keys());
  let [before, changed] = [[], 0];
  readData(pack, name, (row) => {
    const own = key.map((column) => row[column]);
    const id = own.join('\t');
    if (!isAfter(own, before)) pack.found(name, `${own.join(' ')} is out of order`);
    before = own;
    const values = last?.get(id);
    left.delete(id);
    if (values === undefined && replays) pack.found(name, `${own.join(' ')} is in no change`);
    for (const column of DATA_COLUMNS[kind].slice(key.length)) {
      const value = values?.get(column);
      if ((value ?? '') === row[column] || values === undefined) continue;
      if (replays) pack.found(name, `${own.join(' ')}: ${column} is not what the last change gives`);
      else if (value !== undefined) changed += 1;
    }
  });
  if (replays) for (const id of left) pack.found(name, `${id.replace('\t', ' ')} is missing`);
  if (changed > 0) pack.note(`${name}: ${changed} values have changed since the last change in this pack`);
  statedNow(pack, name, 'its values');
}
const isAfter = (own, before) => {
  const at = own.findIndex((each, index) => each !== before[index]);
  return before.length === 0 || (at >= 0 && compareBytes(own[at], before[at]) > 0);
};
const compareBytes = (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other));

function comparePartnerChanges(pack, name, csv) {
  const sealed = pack.of('audit_events').flatMap((event) => {
    if (event.action !== 'partner.create' && event.action !== 'partner.update') return [];
    const { changes = [], import_event_id = null } = jsonOrEmpty(event.details);
    const common = { ...sealedValues(EVENT, event), details: undefined, partner_id: event.subject };
    return list(name, changes).map((each) => ({
      what: `the change of ${each?.field} by event ${event.event_id}`,
      values: {
        ...{ ...common, import_event_id: valueText(import_event_id, true), field: valueText(each?.field, true) },
        ...{ old: valueText(each?.old, csv), new: valueText(each?.new, csv) },
      },
    }));
  });
  const last = new Map();
  const columns = new Set(DATA_COLUMNS.partners);
  const eachRow = (row) => {
    const key = `${row.partner_id}\t${row.field}`;
    const what = `the change of ${row.field} of ${row.partner_id} by event ${row.event_id}`;
    if (!columns.has(row.field) && !POLICY_FIELD.test(row.field)) pack.found(name, `${what} has an unknown field`);
    const before = last.get(key) ?? (pack.fromTheStart ? '' : row.old);
    if (row.old !== before) pack.found(name, `${what} does not begin with the previous value`);
    last.set(key, row.new);
  };
  const open = endsOpen(pack);
  const isLater = (_, expected) => expected === undefined && open;
  unsealed(pack, compareInOrder(pack, name, sealed, { isLater, eachRow }), `changes of ${name} are`);
}

function jsonOrEmpty(json) {
  try {
    return JSON.parse(json) ?? {};
  } catch {
    return {};
  }
}

/** The moves of payments that the sealed facts give: id, move, id of the document, currency, amount, day, why, fact. */
function* paymentMoves(pack) {
  const applications = byId(pack, 'payment_applications', 'payment_application_id');
  const differences = byId(pack, 'small_differences', 'payment_application_id');
  const payments = byId(pack, 'payments', 'payment_id');
  for (const each of applications.values()) {
    const why = jsonOrEmpty(each.evidence).why ?? '';
    yield [each.payment_id, 'applied', each.document_id, each.currency, each.amount, each.applied_on, why, each];
  }
  for (const each of differences.values()) {
    const of = applications.get(each.payment_application_id);
    const money = [each.document_id, each.currency, each.amount];
    if (of) yield [of.payment_id, 'bank_charges', ...money, of.applied_on, 'a difference too small to pursue', each];
  }
  for (const each of pack.of('payment_unapplications')) {
    const of = applications.get(each.payment_application_id);
    const small = differences.get(each.payment_application_id);
    const why = each.payment_reversal_id === null ? 'unapplied by a user' : 'payment reversed';
    const undone = ({ document_id, currency, amount }) => [document_id, currency, negated(amount), each.unapplied_on];
    if (of) yield [of.payment_id, 'unapplied', ...undone(of), why, each];
    if (of && small) yield [of.payment_id, 'bank_charges_reversed', ...undone(small), why, each];
  }
  for (const each of pack.of('payment_reversals')) {
    const why = [each.code, each.reason].filter((part) => part !== null).join(': ');
    yield [each.payment_id, each.kind, null, each.currency, negated(each.amount), each.reversed_on, why, each];
  }
  for (const each of pack.of('payment_assignments')) {
    const currency = payments.get(each.payment_id)?.currency;
    const why = `from ${each.from_partner_id ?? 'an unknown payer'} to ${each.partner_id}`;
    yield [each.payment_id, 'assigned', null, currency, each.amount, each.assigned_on, why, each];
  }
}

/** The same for credit. The id is that of the credit note. */
function* creditMoves(pack) {
  const actions = byId(pack, 'audit_events', 'event_id');
  const action = ({ event_id }) => actions.get(event_id)?.action;
  const applications = byId(pack, 'credit_applications', 'credit_application_id');
  const refunds = byId(pack, 'credit_refunds', 'credit_refund_id');
  const currency = (id) => pack.documents.get(id)?.currency;
  for (const each of applications.values()) {
    const of = [each.credit_note_id, 'applied', each.invoice_id, currency(each.credit_note_id), each.amount];
    yield [...of, each.applied_on, action(each), each];
  }
  for (const each of pack.of('credit_releases')) {
    const of = applications.get(each.credit_application_id);
    if (of === undefined) continue;
    const what = [of.credit_note_id, 'released', of.invoice_id, currency(of.credit_note_id), negated(of.amount)];
    yield [...what, each.released_on, action(each), each];
  }
  for (const each of refunds.values())
    yield [each.document_id, 'refunded', null, each.currency, each.amount, each.refunded_on, each.reference, each];
  for (const each of pack.of('credit_refund_returns')) {
    const of = refunds.get(each.credit_refund_id);
    if (of === undefined) continue;
    const what = [of.document_id, 'refund_returned', null, of.currency, negated(of.amount)];
    yield [...what, each.returned_on, each.reason, each];
  }
}

/** Compares moves with those that the sealed facts give, in any order. Facts older than the pack are not compared. */
function compareMoves(pack, name, moves) {
  const numberOf = (document) => (document === null ? '' : pack.documents.get(document)?.number);
  const expected = new Bag();
  for (const [id, move, document, currency, amount, datedOn, why, fact] of moves) {
    if (!isDated(fact, pack.manifest)) continue;
    const of = name.startsWith('credit-moves') ? numberOf(id) : id;
    const when = [fact.entry_on, why === null ? '' : why, exportedTime(fact.recorded_at)];
    const values = [of, move, numberOf(document), currency, amount, datedOn, ...when];
    if (!values.includes(undefined)) expected.add(values.join('\t'));
  }
  let later = 0;
  readData(pack, name, (row) => {
    if (!expected.take(Object.values(row).join('\t'))) later += 1;
  });
  for (const key of expected.counts.keys())
    pack.found(name, `it does not have the sealed move ${key.replaceAll('\t', ' ')}`);
  unsealed(pack, later, `rows of ${name} are`);
}

function compareOpening(pack, name) {
  let rows = 0;
  readData(pack, name, ({ account, currency, amount }) => {
    const key = `${account}\t${currency}`;
    rows += 1;
    if (pack.opening.has(key)) pack.found(name, `${account} in ${currency} occurs twice`);
    pack.opening.set(key, [units(amount)]);
  });
  if (![...pack.books.keys()].some((month) => month >= pack.manifest.from)) unsealed(pack, rows, `rows of ${name} are`);
}

const OF_LEDGER_ROWS = new Set(words('quote_accepted requote_accepted reversal'));
const POSTED = words('entry_on dated_on fact fact_id account currency amount document reference');
const postingOf = (row) => POSTED.map((column) => row[column] ?? '').join('\t');

function compareJournal(pack, name) {
  const { from, to } = pack.manifest;
  const expected = new Bag();
  for (const { lines } of pack.books.values())
    for (const entry of lines) {
      if (entry.entry_on.slice(0, 7) < from) continue;
      expected.add(postingOf({ ...entry, account: entry.debit }));
      expected.add(postingOf({ ...entry, account: entry.credit, amount: negated(entry.amount) }));
    }
  const months = new Map([...pack.books.keys()].map((month) => [month, new Map()]));
  let later = 0;
  readData(pack, name, (row) => {
    const { fact, fact_id: id, entry_on: entryOn, account, currency, amount } = row;
    const month = entryOn.slice(0, 7);
    if (!IS_DAY.test(entryOn) || month < from || month > to) pack.found(name, `${fact} ${id} is dated ${entryOn}`);
    if (!months.has(month)) {
      later += 1;
      return;
    }
    addTo(months.get(month), `${account}\t${currency}`, [units(amount)]);
    if (!OF_LEDGER_ROWS.has(fact) && !expected.take(postingOf(row)))
      pack.found(name, `${fact} ${id} does not post ${amount} ${currency} to ${account} as it was sealed`);
  });
  for (const key of expected.counts.keys())
    pack.found(name, `it does not have the posting ${key.replaceAll('\t', ' ')}`);
  compareBalances(pack, name, months);
  unsealed(pack, later, `rows of ${name} belong to months with open books and are`);
  statedNow(pack, name, 'partner_id and policy_id');
}

/** Opening balances and postings up to the end of a month are its sealed balances. */
function compareBalances(pack, name, months) {
  const sums = new Map(pack.opening);
  for (const [month, { balancesNow }] of pack.books) {
    for (const [key, [amount]] of months.get(month)) sums.set(key, [(sums.get(key)?.[0] ?? 0n) + amount]);
    for (const key of keysOf(sums, balancesNow))
      if ((sums.get(key)?.[0] ?? 0n) !== (balancesNow.get(key)?.amount ?? 0n))
        pack.found(name, `${key.replace('\t', ' in ')} at the end of ${month} is not the balance that was sealed`);
  }
}

/** A journal's external id. */
const externalIdOf = ({ month, part, seal }, currency) => `${month}-${part}-${currency}-${seal.slice(0, 6)}`;

/** The journals of the pack's months exported to the general ledger: a row for each file. */
function compareGlExports(pack, name) {
  const { from, to } = pack.manifest;
  const exports = byId(pack, 'gl_exports', 'gl_export_id');
  const sealed = new Map();
  for (const file of pack.of('gl_export_files')) {
    const of = exports.get(file.gl_export_id);
    const values = { ...sealedValues(DATA_COLUMNS['gl-exports'], { ...of, ...file }), file: file.name };
    sealed.set(`${file.gl_export_id} ${file.position}`, { values, required: of?.month >= from && of?.month <= to });
  }
  const parts = new Map();
  const eachRow = (row) => {
    const { gl_export_id: id, month, format, part, books_closed: closed } = row;
    const found = (problem) => pack.found(name, `part ${part} of ${month} for ${format} ${problem}`);
    if (!pack.glExports.has(id)) {
      const before = parts.get(`${month} ${format}`) ?? 0;
      if (part !== String(before + 1)) found(`comes after part ${before}`);
      parts.set(`${month} ${format}`, before + 1);
      if (month < from || month > to) found('is not a month of the pack');
      if (row.seal !== (closed === 'true' ? pack.books : pack.records).get(month)?.seal)
        found(`does not name the seal of the ${closed === 'true' ? 'books' : 'month'}`);
      pack.glExports.set(id, { ...row, files: 0, lines: 0, sums: new Map() });
    }
    const own = pack.glExports.get(id);
    own.files += 1;
    if (row.position !== String(own.files)) found('does not have all its files');
    for (const column of words('month format part kind seal books_closed recorded_at event_id'))
      if (row[column] !== own[column]) found(`has two values of ${column}`);
  };
  const later = compareByKey(pack, name, 'file', ['gl_export_id', 'position'], sealed, eachRow);
  unsealed(pack, later, `rows of ${name} are`);
}

/** Their lines. Each journal balances, and all parts from closed books add up to the month's movements. */
function compareGlLines(pack, name) {
  const { from, to } = pack.manifest;
  const exports = byId(pack, 'gl_exports', 'gl_export_id');
  const sealed = new Map();
  for (const line of pack.of('gl_export_lines')) {
    const of = exports.get(line.gl_export_id);
    const values = sealedValues(DATA_COLUMNS['gl-lines'], { ...of, ...line });
    if (of !== undefined) values.external_id = externalIdOf(of, line.currency);
    sealed.set(`${line.gl_export_id} ${line.line}`, { values, required: of?.month >= from && of?.month <= to });
  }
  const eachRow = (row) => {
    const of = pack.glExports.get(row.gl_export_id);
    const found = (problem) => pack.found(name, `line ${row.line} of export ${row.gl_export_id} ${problem}`);
    if (of === undefined) {
      found('belongs to no exported journal');
      return;
    }
    of.lines += 1;
    if (row.line !== String(of.lines)) found('comes after another line');
    for (const column of words('month format part')) if (row[column] !== of[column]) found(`has another ${column}`);
    if (row.external_id !== externalIdOf(of, row.currency)) found('has another external_id');
    addTo(of.sums, `${row.account}\t${row.currency}`, [units(row.amount)]);
  };
  const later = compareByKey(pack, name, 'line', ['gl_export_id', 'line'], sealed, eachRow);
  unsealed(pack, later, `lines of ${name} are`);
  checkGlSums(pack, (problem) => pack.found(name, problem));
}

function checkGlSums(pack, found) {
  const handOffs = new Map();
  for (const { month, format, part, books_closed: closed, lines, sums } of pack.glExports.values()) {
    const what = `part ${part} of ${month} for ${format}`;
    if (lines === 0) found(`${what} has no line`);
    const byCurrency = new Map();
    for (const [key, amounts] of sums) addTo(byCurrency, key.split('\t')[1], amounts);
    for (const [currency, [sum]] of byCurrency) if (sum !== 0n) found(`${what} does not balance in ${currency}`);
    const handOff = handOffs.get(`${month} ${format}`) ?? { month, format, sums: new Map() };
    for (const [key, amounts] of sums) addTo(handOff.sums, key, amounts);
    handOffs.set(`${month} ${format}`, { ...handOff, closed });
  }
  for (const { month, format, closed, sums } of handOffs.values()) {
    const books = pack.books.get(month);
    // Exports of open books cannot be compared: they show the books at that time.
    if (closed !== 'true' || books === undefined) continue;
    const before = balancesBefore(pack, books);
    for (const key of keysOf(sums, books.balancesNow, before)) {
      const moved = (books.balancesNow.get(key)?.amount ?? 0n) - (before.get(key) ?? 0n);
      if ((sums.get(key)?.[0] ?? 0n) !== moved)
        found(
          `${key.replace('\t', ' in ')}: the export of ${month} for ${format} differs from the movement of its books`,
        );
    }
  }
}

/** The opening balances of a month's books: none for the first, whose journal includes everything earlier. */
function balancesBefore({ books, opening }, { previous }) {
  if (previous === null) return new Map();
  const before = books.get(previous.month);
  if (before === undefined) return new Map([...opening].map(([key, [amount]]) => [key, amount]));
  return new Map([...before.balancesNow].map(([key, { amount }]) => [key, amount]));
}

const COMPARED = {
  ledger: compareLedger,
  invoices: compareInvoices,
  'invoice-lines': compareInvoiceLines,
  events: compareEvents,
  payments: comparePayments,
  'payment-moves': (pack, name) => compareMoves(pack, name, paymentMoves(pack)),
  'credit-moves': (pack, name) => compareMoves(pack, name, creditMoves(pack)),
  voids: compareVoids,
  'write-offs': compareWriteOffs,
  openings: compareOpenings,
  'bank-lines': compareBankLines,
  partners: comparePresent,
  policies: comparePresent,
  'partner-changes': comparePartnerChanges,
  'opening-balances': compareOpening,
  journal: compareJournal,
  'gl-exports': compareGlExports,
  'gl-lines': compareGlLines,
};

function checkData(pack) {
  for (const name of pack.manifest.data) {
    const [kind, format] = name.split('.');
    if (!CSV_OR_JSON.includes(format)) {
      print(`note  ${name} is not compared: check it with its own program`);
      continue;
    }
    check(pack.findings, name, () => {
      COMPARED[kind](pack, name, format === 'csv');
      return `${many(pack.manifest.files.get(name).rows, 'row')} as sealed and as in the manifest`;
    });
  }
  check(pack.findings, 'dictionary.csv', () => checkDictionary(pack, 'dictionary.csv'));
}

const TYPES = new Set(words('text integer decimal amount date month instant boolean list object json'));
const INSIDE = {
  ...{ lines: LINE_IN_JSON, pdf: ['sha256', 'bytes'] },
  email: words('status to message_id sent_at'),
};
/** The dictionary names every column of the data files. Its meanings are for people. */
function checkDictionary(pack, name) {
  const expected = pack.manifest.data.filter(isTable).flatMap((file) => {
    const columns = columnsOfFile(file);
    const named = columns.flatMap((each) =>
      file === 'invoices.jsonl' && Object.hasOwn(INSIDE, each)
        ? [each, ...INSIDE[each].map((inside) => `${each}.${inside}`)]
        : [each],
    );
    return named.map((column) => ({ what: `${column} of ${file}`, values: { file, column } }));
  });
  compareInOrder(pack, name, expected, {
    isLater: () => false,
    eachRow: ({ file, column, type, meaning }) => {
      if (!TYPES.has(type) || meaning === '') pack.found(name, `${column} of ${file} has no known type, or no meaning`);
    },
  });
  pack.note('the meanings in dictionary.csv are for people and are not compared');
  return `${expected.length} columns`;
}

// === THE ORDER OF CHECKS =============================================================================================

/** Parses a pack. Each part is read only after the parts it depends on hold. */
function readPack(folder, step) {
  const pack = new Pack(folder);
  const { findings, counts } = pack;
  step(findings, 'layout', () => {
    pack.names = scan(pack);
    return `${pack.names.length} files`;
  });
  step(findings, 'manifest', () => {
    pack.manifest = readManifest(pack);
    const { kind, from, to, installation, environment } = pack.manifest;
    return `${kind}, ${from} to ${to}, ${installation} ${environment}`;
  });
  step(findings, 'records', () => {
    readRecords(pack);
    return `${many(pack.records.size, 'seal')} of months, ${pack.books.size} of books`;
  });
  if (pack.records.size === 0) throw new Unusable('this pack has no seal, so there is nothing to check');
  pack.fromTheStart = firstOf(pack.records).previous === null;
  step(findings, 'files', () => {
    checkFiles(pack);
    return `${pack.manifest.files.size} files as in the manifest`;
  });
  step(findings, 'tables', () => {
    readTables(pack);
    return `${many(counts.facts, 'fact')}, ${many(counts.rows, 'row')}`;
  });
  return pack;
}

function checkPack(folder, options) {
  const pack = readPack(folder, check);
  const { manifest, findings, counts } = pack;
  check(findings, 'seals', () => checkSeals(pack));
  const has = (ending, table) => pack.names.some((name) => name.endsWith(ending)) || pack.of(table).length > 0;
  if (options.keys.length > 0 || has('.sig', 'seal_signatures'))
    check(findings, 'signatures', () => checkSignatures(pack, options.keys));
  if (has('.tsr', 'seal_time_stamps')) check(findings, 'time stamps', () => checkTimeStamps(pack));
  if (manifest.kind === 'ledger')
    check(findings, 'rows', () => `${many(counts.rows, 'row')}: each adds up, totals as sealed`);
  if (pack.checkpoints.length + findings.of('checkpoints').count > 0)
    check(findings, 'checkpoints', () => checkCheckpoints(pack));
  check(findings, 'documents', () => checkDocuments(pack));
  check(findings, 'books', () => checkBooks(pack));
  if (pack.of('approval_decisions').length > 0 || pack.of('audit_events').some(isAlone))
    check(findings, 'approvals', () => checkApprovals(pack));
  noteOnePerson(pack);
  print('note  README.txt is for people and is not compared');
  if (pack.names.some((name) => name.endsWith('.parquet')))
    print('note  .parquet files are compared only with the manifest');
  for (const { month, seal } of manifest.months) if (seal === null) print(`note  ${month} is open: it is not sealed`);
  const last = manifest.months.at(-1).month;
  if (last < manifest.to) print(`note  nothing after ${last} is in this pack`);
  checkData(pack);
  if (options.previous !== undefined) check(findings, 'previous', () => checkPrevious(pack, options.previous));
  const sealed = {
    seal: sealsOf([...pack.records.values()]),
    'books-seal': sealsOf([...pack.books.values()]),
    checkpoint: sealsOf(pack.checkpoints, 'number'),
  };
  const isOpen = (name) => IS_MONTH.test(name) && name >= manifest.from && name <= manifest.to;
  checkHeld(findings, sealed, options, `this pack (${manifest.from} to ${manifest.to})`, isOpen);
  for (const [month, { seal }] of pack.records) print(`seal  ${month}  ${seal}`);
  for (const [month, { seal }] of pack.books) print(`books ${month}  ${seal}`);
  for (const { number, seal } of pack.checkpoints) print(`checkpoint ${number}  ${seal}`);
  return pack;
}

/** Runs a step of reading the earlier pack: its first problem belongs to `previous`. */
function stepOfEarlier(findings, name, work) {
  work();
  if (findings.of(name).count > 0) malformed(`the earlier pack: ${name}`, findings.of(name).first[0]);
}

/** The seals of a kind of record in a pack by name, including the one before the first. */
function sealsOf(records, name = 'month') {
  const [first] = records;
  return new Map([
    ...(first?.previous ? [[String(first.previous[name]), first.previous.seal]] : []),
    ...records.map((each) => [String(each[name]), each.seal]),
  ]);
}

/** Checks that a pack continues an earlier one. */
function checkPrevious(pack, folder) {
  const found = (problem) => pack.found('previous', problem);
  const earlier = readPack(folder, stepOfEarlier);
  const { from, to, installation, environment } = pack.manifest;
  if (earlier.manifest.installation !== installation || earlier.manifest.environment !== environment)
    found(`${folder} belongs to the installation ${earlier.manifest.installation} ${earlier.manifest.environment}`);
  let joined = false;
  for (const kind of ['records', 'books']) {
    const of = kind === 'books' ? 'the books of ' : '';
    const now = sealsOf([...pack[kind].values()]);
    for (const [month, { seal }] of earlier[kind]) {
      const own = now.get(month);
      if (own === undefined && month >= from && month <= to) found(`${of}${month} had ${seal}, and is not sealed now`);
      if (own !== undefined && own !== seal) found(`${of}${month} had ${seal}, and has ${own}`);
      if (own !== undefined && kind === 'records') joined = true;
    }
  }
  const first = firstOf(pack.records);
  if (!joined)
    found(`${first.month} was sealed after ${first.previous?.month ?? 'none'}, and that is not in ${folder}`);
  const before = earlier.records.get(first.previous?.month);
  if (before !== undefined && first.first !== before.last + 1)
    found(`facts begin at ${first.first}, and end at ${before.last} in ${folder}`);
  if (before !== undefined) checkNumbersContinue(pack, earlier, first.month, found);
  checkCheckpointsContinue(pack, earlier, found);
  return `${many(earlier.records.size, 'month')} of ${folder}`;
}

function checkCheckpointsContinue({ checkpoints }, earlier, found) {
  if (checkpoints.length === 0 || earlier.checkpoints.length === 0) return;
  const now = sealsOf(checkpoints, 'number');
  for (const { number, seal } of earlier.checkpoints)
    if ((now.get(String(number)) ?? seal) !== seal)
      found(`checkpoint ${number} had ${seal}, and has ${now.get(String(number))}`);
  const { number, previous } = checkpoints[0];
  const known = earlier.checkpoints.some((each) => each.number === previous?.number);
  if (previous !== null && !known && earlier.checkpoints[0].number <= previous.number)
    found(`checkpoint ${number} was taken after ${previous.number}, and that is not in the earlier pack`);
}

/** In each series, numbers begin after the last one that was sealed before this pack's first month. */
function checkNumbersContinue(pack, earlier, month, found) {
  const highest = new Map();
  const numbered = (each) =>
    ['documents', 'skipped_numbers'].flatMap((table) =>
      each.of(table).map(({ series, sequence, first_sequence = sequence, last_sequence = sequence, sealed_in }) => {
        return { series, first: Number(first_sequence), last: Number(last_sequence), sealed_in };
      }),
    );
  for (const { series, last, sealed_in } of numbered(earlier))
    if (sealed_in < month) highest.set(series, Math.max(highest.get(series) ?? 0, last));
  const lowest = new Map();
  for (const { series, first } of numbered(pack))
    lowest.set(series, Math.min(lowest.get(series) ?? Number.POSITIVE_INFINITY, first));
  for (const [series, first] of lowest) {
    const known = highest.get(series);
    if (known === undefined && !earlier.fromTheStart) continue;
    if (first !== (known ?? 0) + 1) found(`${series} begins at ${first}, after ${known ?? 0} in the earlier pack`);
  }
}

/** The kinds of held seals: option, label, name, and how to read the record. */
const HELD = [
  { option: 'seal', of: '', example: '2026-07', isName: IS_MONTH, read: readSealRecord },
  { option: 'books-seal', of: 'the books of ', example: '2026-07', isName: IS_MONTH, read: readBooksRecord },
  { option: 'checkpoint', of: 'checkpoint ', example: '12', isName: IS_NUMBER, read: readCheckpoint },
];

/** Seals that were given on the command line: a name and a hash, or a signed note in a file. */
function heldSeals(values, keys, witnesses) {
  const held = HELD.flatMap((kind) => (values[kind.option] ?? []).map((given) => ({ kind, given })));
  return held.map(({ kind, given }) => {
    if (existsSync(given) && statSync(given).isFile()) {
      if (keys.length + witnesses.length === 0)
        throw new Unusable(`${given} is a signed note: give the key that signed it with --witness or --key`);
      return { kind, note: given };
    }
    const [, name, seal] = /^([^=]*)=(.*)$/.exec(given) ?? [];
    if (name === undefined || !kind.isName.test(name))
      throw new Unusable(
        `'${given}' does not name a month and a seal (--${kind.option} ${kind.example}=5f0c…), and is not a file`,
      );
    if (!IS_HASH.test(seal.toLowerCase()))
      throw new Unusable(
        `'${seal}' is not a whole seal: it has 64 digits from 0 to f, not the 16 in an e-mail's subject`,
      );
    return { kind, name, seal: seal.toLowerCase() };
  });
}

/** The seal of a signed note that came by e-mail: a witness has signed its text, or a key if no witness is given. */
function sealOfNote(path, { read }, { keys, witnesses }) {
  const content = textOf('', path).replaceAll('\r\n', '\n').replace(/\n*$/, '\n');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note has no other control characters than LF
  if (/[\0-\x09\x0b-\x1f]/.test(content)) malformed(path, 'has control characters');
  const end = content.lastIndexOf('\n\n');
  if (end < 0) malformed(path, 'is not a signed note: it has no empty line');
  const noted = content.slice(0, end + 1);
  const record = read(path, noted);
  const lines = signatureLines(path, content.slice(end + 2));
  const refuse = (problem) => malformed(path, problem);
  const byWitness = signedBy(witnesses, noted, lines, refuse);
  const byKey = signedBy(keys, noted, lines, refuse);
  if (!(witnesses.length > 0 ? byWitness : byKey)) malformed(path, 'is not signed by a key that you gave');
  return { name: String(record.month ?? record.number), seal: record.seal };
}

/** Compares held seals with those of `now`. A missing one fails if its month is open; otherwise it cannot be compared. */
function checkHeld(findings, now, options, where, isOpen) {
  const { held } = options;
  if (held.length === 0) return;
  const found = (problem) => findings.add('held seals', problem);
  const apart = [];
  check(findings, 'held seals', () => {
    for (const { kind, note, ...given } of held) {
      const { name, seal } = note === undefined ? given : sealOfNote(note, kind, options);
      const own = now[kind.option].get(name);
      const what = `${kind.of}${name}`;
      if (own !== undefined && own !== seal)
        found(`${what} has ${own}, but you gave ${seal}: check your copy. If it matches, ${what} was sealed again`);
      else if (own === undefined && isOpen(name)) found(`${what} was sealed but is open in ${where}`);
      else if (own === undefined) apart.push(what);
    }
    return `${held.length - apart.length} compared`;
  });
  if (apart.length > 0 && failed.length === 0)
    unusable(`${apart.join(', ')}: ${where} does not contain it. Request one that does`);
}

// === PROOFS ==========================================================================================================

/** The root to which a path leads from a leaf (RFC 9162, 2.1.3.2); undefined if it cannot be a path of that leaf. */
function rootOf(leaf, index, size, path) {
  let [at, last, root] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (last === 0) return undefined;
    const right = at % 2 === 1 || at === last;
    root = right ? nodeHash(sibling, root) : nodeHash(root, sibling);
    if (right) while (at % 2 === 0 && at !== 0) [at, last] = [at / 2, Math.floor(last / 2)];
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return last === 0 ? hexOf(root) : undefined;
}

/** Whether a line is the leaf at this index of a tree with this root. */
function isUnder(place, line, index, leaves, path, root) {
  const siblings = list(place, path).map((each) => Buffer.from(text(place, each, HASH), 'hex').toString('latin1'));
  if (rootOf(leafHash(line), index, leaves, siblings) !== root) malformed(place, 'does not lead to the sealed root');
}

const SUBJECT = `(row|payment|event) (${NUMBER})|(document) ([A-Z]+-\\d{4}-\\d{6,})`;

function readProof(path) {
  const proof = jsonOf(textOf('', path), 'proof');
  const [format, version, subject, records, facts] = valuesOf(
    'proof',
    proof,
    words('format version subject records facts'),
  );
  if (format !== 'reckoner-proof' || version !== 2) malformed('proof', 'is not of version 2');
  text('subject', subject, SUBJECT);
  const sealed = readRecordsOfProof(records);
  const read = list('facts', facts).map((fact, index) => readFactOfProof(fact, sealed, `fact ${index + 1}`));
  const numbers = new Set();
  for (const [index, { month, table, leaf, columns, columnsPath, values }] of read.entries()) {
    const before = read[index - 1];
    const place = `fact ${index + 1}`;
    const same = before?.month === month && before.table === table;
    if (
      before &&
      (before.month > month || (before.month === month && before.table > table) || (same && before.leaf >= leaf))
    )
      malformed(place, 'is out of order');
    if (same && (before.columns !== columns || String(before.columnsPath) !== String(columnsPath)))
      malformed(place, 'has columns other than those of the previous fact');
    if (table === 'ledger_rows') continue;
    if (numbers.has(values.fact_id) || (same && Number(before.values.fact_id) >= Number(values.fact_id)))
      malformed(place, 'its fact_id does not ascend');
    numbers.add(values.fact_id);
  }
  for (const month of sealed.keys()) if (!read.some((fact) => fact.month === month)) malformed(month, 'has no fact');
  const [, kind = 'document', name = subject.slice('document '.length)] = whole(SUBJECT).exec(subject);
  BELONGS[kind](name, read, sealed);
  return { subject, facts: read, records: sealed };
}

function readRecordsOfProof(records) {
  const sealed = new Map();
  let before;
  for (const each of list('records', records)) {
    const [month, seal, content] = valuesOf('records', each, words('month seal record'));
    if (typeof content !== 'string') malformed('records', 'a record is not a text');
    const record = readSealRecord(`the record of ${text('records', month, MONTH)}`, content);
    const place = `the record of ${month}`;
    if (record.month !== month || record.seal !== seal) malformed(place, `it is for ${record.month}, ${record.seal}`);
    if (before !== undefined) {
      const follows = record.previous && sealed.get(record.previous.month);
      if (before.month >= month || record.first <= before.last) malformed(place, 'is out of order');
      if (record.installation !== before.installation) malformed(place, 'belongs to another installation');
      if (record.previous === null || (follows && (follows !== before || follows.seal !== record.previous.seal)))
        malformed(place, 'does not follow the record before it');
    }
    sealed.set(month, record);
    before = record;
  }
  if (sealed.size === 0) malformed('records', 'are missing');
  return sealed;
}

const FACT_KEYS = words('month table columns columns_path line index leaves path');
function readFactOfProof(fact, sealed, place) {
  const [month, table, columns, columnsPath, line, index, leaves, path] = valuesOf(place, fact, FACT_KEYS);
  const record = sealed.get(month) ?? malformed(place, 'has a month without a record');
  for (const each of [columns, line])
    if (typeof each !== 'string' || /[\n\r]/.test(each)) malformed(place, 'its columns or its line are not one line');
  const names = columnsOf(columns, place);
  const fields = fieldsOf(line, place);
  if (fields.length !== names.length) malformed(place, `does not have ${names.length} fields`);
  const values = asObject(names, fields);
  const read = { month, table, columns, columnsPath, leaf: number(place, index), names, values };
  const isRow = table === 'ledger_rows';
  const sealedTable = isRow ? { rows: record.rows, hash: record.root } : record.tables.get(table);
  if (sealedTable === undefined) malformed(place, `has the table ${table}, which the record does not have`);
  if (number(place, leaves) !== sealedTable.rows + (isRow ? 0 : 1) || index >= leaves)
    malformed(place, 'belongs to a tree of another size');
  if (isRow) {
    if (columns !== record.columns.join('\t') || columnsPath !== null) malformed(place, 'has other columns of rows');
  } else {
    isUnder(`${place}: columns_path`, columns, 0, leaves, columnsPath, sealedTable.hash);
    const id = Number(values.fact_id);
    if (
      index < 1 ||
      names[0] !== 'fact_id' ||
      !IS_NUMBER.test(values.fact_id ?? '') ||
      id < record.first ||
      id > record.last
    )
      malformed(place, 'is not a fact of its record');
  }
  isUnder(`${place}: path`, line, index, leaves, path, sealedTable.hash);
  return read;
}

const taken = (values, columns) => interpreter('proof', Object.keys(values), columns)(Object.values(values), 1);

/** The facts of each kind of subject; no others are allowed. */
const BELONGS = {
  row(id, facts, sealed) {
    const [{ table, month, values }] = facts;
    if (facts.length !== 1 || table !== 'ledger_rows' || values.entry_id !== id)
      malformed('facts', `are not row ${id}`);
    const row = taken(values, ROW);
    const [spotPrice, partnerCut, invoiceAmount] = SUMS.map((each) => units(row[each]));
    if (spotPrice !== partnerCut + invoiceAmount) malformed('facts', `row ${id} does not add up`);
    if (sealed.get(month).previous === null ? row.posted_month > month : row.posted_month !== month)
      malformed('facts', `row ${id} was posted to ${row.posted_month}`);
  },
  event(id, facts) {
    if (facts.length !== 1 || facts[0].table !== 'audit_events' || facts[0].values.event_id !== id)
      malformed('facts', `are not event ${id}`);
  },
  payment(id, facts) {
    const belongs = ({ table, values }) =>
      table !== 'audit_events' && table !== 'ledger_rows' && values.payment_id === id;
    if (facts.filter(({ table }) => table === 'payments').length !== 1 || !facts.every(belongs))
      malformed('facts', `are not those of payment ${id}`);
  },
  document(number, facts) {
    const of = (table) => facts.filter((each) => each.table === table);
    const [document, ...others] = of('documents');
    if (document === undefined || others.length > 0 || document.values.number !== number)
      malformed('facts', `are not document ${number}`);
    const header = taken(document.values, words(INTERPRETED.documents));
    if (number !== numberGiven(header)) malformed(number, 'does not match its series and sequence');
    for (const { table, month, values } of facts) {
      const known = ['documents', 'document_lines', 'document_pdfs', 'document_e_invoices', 'voids'].includes(table);
      if (!known || values.document_id !== header.document_id || month < document.month)
        malformed('facts', `one of ${table} does not belong to ${number}`);
      if (table === 'document_lines' && month !== document.month) malformed('facts', 'a line belongs to another month');
    }
    for (const [table, what] of Object.entries({
      document_pdfs: 'PDFs',
      document_e_invoices: 'e-invoices',
      voids: 'voids',
    }))
      if (of(table).length > 1) malformed('facts', `${number} has two ${what}`);
    checkLinesOfProof(number, header, of('document_lines'));
  },
};

/** All lines of a document are there: they add up to it. */
function checkLinesOfProof(number, header, facts) {
  if (header.purpose === 'adjustment' || header.purpose === 'opening') {
    if (facts.length > 0) malformed('facts', `${number} has no lines`);
    return;
  }
  const sums = [0n, 0n, 0n, 0n];
  for (const [index, { values }] of facts.entries()) {
    const line = taken(values, words(INTERPRETED.document_lines));
    if (line.position !== String(index + 1) || line.count === '0') malformed('facts', `line ${index + 1} is missing`);
    for (const [at, amount] of [...SUMS.map((each) => units(line[each])), BigInt(line.count)].entries())
      sums[at] += amount;
  }
  const counted = header.purpose === 'missing_shares' ? header.enrollments : header.entries;
  if (facts.length === 0 || String(sums) !== String([...SUMS.map((each) => units(header[each])), counted]))
    malformed('facts', `${number} is not the sum of its lines`);
}

function checkProof(path, options) {
  const findings = new Findings();
  let proof;
  check(findings, 'proof', () => {
    proof = readProof(path);
    return `${proof.subject}: ${many(proof.facts.length, 'fact')} under ${many(proof.records.size, 'seal')}`;
  });
  for (const { month, table, names, values } of proof.facts) {
    print(`${table} of ${month}`);
    for (const name of names) if (values[name] !== null) print(`      ${name} = ${values[name]}`);
  }
  print('note  it shows that this was recorded, not that it was never undone later');
  const known = [...proof.records.values()].flatMap(({ previous }) => (previous ? [previous] : []));
  const months = [...known.filter(({ month }) => !proof.records.has(month)), ...proof.records.values()];
  checkHeld(findings, { seal: sealsOf(months) }, options, 'this proof', () => false);
  for (const [month, { seal }] of proof.records) print(`seal  ${month}  ${seal}`);
}

// === THE COMMAND =====================================================================================================

/** Signs the record of a month: adds your key's signature to those it has. */
function countersign(pack, { month, key, name, out }) {
  const record = pack.records.get(month) ?? unusable(`${month} is not sealed in this pack`);
  const place = `sealed/${month}/record.sig`;
  const lines = pack.names.includes(place) ? textOf(pack.folder, place) : '';
  const { key: own, vkey } = ownKey(key, name);
  const signature = sign(null, Buffer.from(record.text), readFileSync(key, 'utf8'));
  const bytes = Buffer.concat([Buffer.from(keyIdOf(name, own), 'hex'), signature]);
  writeFileSync(out, `${record.text}\n${lines}\u2014 ${name} ${bytes.toString('base64')}\n`, { flag: 'wx' });
  print(`Signed the record of ${month} in ${out}. Your key: ${vkey}`);
}

/** The public half of an Ed25519 key in a PEM file. */
function ownKey(path, name) {
  if (!whole(KEY_NAME).test(name ?? '')) unusable('name the key with --name: no spaces and no +');
  const key = createPublicKey(readFileSync(path, 'utf8'));
  if (key.asymmetricKeyType !== 'ed25519') unusable(`${path} is not an Ed25519 key`);
  const bytes = key.export({ type: 'spki', format: 'der' }).subarray(-32);
  return { key: bytes, vkey: vkeyOf(name, bytes) };
}

function unusable(text) {
  throw new Unusable(text);
}

const TEXT = { type: 'string' };
const TEXTS = { type: 'string', multiple: true };
const OPTIONS = {
  ...{ previous: TEXT, seal: TEXTS, 'books-seal': TEXTS, checkpoint: TEXTS, key: TEXTS, witness: TEXTS },
  ...{ countersign: TEXT, 'private-key': TEXT, 'public-key': TEXT, name: TEXT, out: TEXT },
};

function run() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS });
  if (values['public-key'] !== undefined && positionals.length === 0) {
    print(ownKey(values['public-key'], values.name).vkey);
    return false;
  }
  const keys = (values.key ?? []).map(verifierKey);
  const witnesses = (values.witness ?? []).map(verifierKey);
  const options = { previous: values.previous, keys, witnesses, held: heldSeals(values, keys, witnesses) };
  const signing = { month: values.countersign, key: values['private-key'], name: values.name, out: values.out };
  if (signing.month !== undefined && Object.values(signing).includes(undefined))
    unusable('--countersign needs --private-key, --name and --out');
  const [place] = positionals;
  if (positionals.length !== 1) unusable('name one pack (a folder) or one proof (a .json file)');
  if (statSync(place).isDirectory()) {
    const pack = checkPack(place, options);
    if (signing.month !== undefined && failed.length === 0) countersign(pack, signing);
  } else if (place.endsWith('.zip'))
    unusable(`${place} is a .zip: unzip it into an empty folder, and name that folder`);
  else if (!place.endsWith('.json') || !statSync(place).isFile())
    unusable(`${place} is neither a folder nor a .json file`);
  else if (options.previous ?? values['books-seal'] ?? values.checkpoint ?? values.countersign)
    unusable('a proof can be compared only with --seal');
  else checkProof(place, options);
  return true;
}

let checked = true;
try {
  checked = run();
  process.exitCode = failed.length === 0 ? 0 : 1;
} catch (error) {
  if (error instanceof Refused) process.exitCode = 1;
  else {
    process.exitCode = failed.length === 0 ? 2 : 1;
    console.error(printable(`Cannot check: ${error.message}`));
  }
}
if (checked && process.exitCode === 0) print('All checks hold.');
if (process.exitCode === 1) print(`${total} ${total === 1 ? 'problem' : 'problems'}: ${failed.join(', ')}.`);
