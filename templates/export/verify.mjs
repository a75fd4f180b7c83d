#!/usr/bin/env node
/**
 * Checks a pack exported by Reckoner. It needs Node 20 or later and nothing else. README.txt describes the same checks with
 * sha256sum and a spreadsheet.
 *
 *   node verify.mjs [PACK]                    check the pack in that folder (default: this file's folder)
 *     --previous PACK                         … and that it continues an earlier pack
 *     --seal 2026-07=5f0c…                    … and that a month has the seal that you received
 *     --books-seal 2026-07=9b41…              … and that its books have the seal that you received
 *   node verify.mjs PROOF.json [--seal …]     check that one row is under the seal of its month
 *
 * Exit status: 0 all checks passed, 1 a check failed, 2 the pack cannot be checked.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const sha256 = (content) => createHash('sha256').update(content).digest();
const hex = (buffer) => buffer.toString('hex');

// --- Output --------------------------------------------------------------------------------------------------------

let failures = 0;
const failed = new Set();
function check(name, problems, looked) {
  failures += problems.length;
  if (problems.length > 0) failed.add(name);
  console.log(`${problems.length === 0 ? 'ok  ' : 'FAIL'}  ${name.padEnd(24)} ${looked}`);
  for (const problem of problems.slice(0, 20)) console.log(`      ${problem}`);
  if (problems.length > 20) console.log(`      … and ${problems.length - 20} more`);
}
const note = (text) => console.log(`note  ${text}`);

// --- Reading -------------------------------------------------------------------------------------------------------

/** The lines of a file as buffers, one batch per chunk. Only LF ends a line. */
async function* lineBatches(path) {
  let rest = Buffer.alloc(0);
  for await (const piece of createReadStream(path, { highWaterMark: 1 << 18 })) {
    const content = rest.length > 0 ? Buffer.concat([rest, piece]) : piece;
    const lines = [];
    let from = 0;
    for (let at = content.indexOf(10); at >= 0; at = content.indexOf(10, from)) {
      lines.push(content.subarray(from, at));
      from = at + 1;
    }
    rest = content.subarray(from);
    yield lines;
  }
  if (rest.length > 0) yield [rest];
}

const ESCAPES = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };
/** A field of the canonical form: \N is null, a backslash escapes the next character. */
const field = (text) => (text === '\\N' ? null : text.replace(/\\(.)/g, (_, c) => ESCAPES[c] ?? c));

/** The rows of a .tsv file as objects. The first line names the columns. */
async function* tsvRows(path) {
  let names;
  for await (const lines of lineBatches(path)) {
    for (const line of lines) {
      const fields = line.toString().split('\t');
      if (names === undefined) names = fields;
      else yield Object.fromEntries(names.map((name, index) => [name, field(fields[index] ?? '')]));
    }
  }
}

const CELL = /("(?:[^"]|"")*"|[^,]*)(,|$)/gy;
/** The rows of an exported .csv or .jsonl as objects. In CSV, a leading apostrophe is removed (see README.txt). */
async function* dataRows(path) {
  let names;
  let open = '';
  for await (const lines of lineBatches(path)) {
    for (const line of lines) {
      if (path.endsWith('.jsonl')) {
        yield JSON.parse(line.toString());
        continue;
      }
      open += (open === '' ? '' : '\n') + line.toString();
      if (open.split('"').length % 2 === 0) continue; // A quoted cell continues on the next line.
      const cells = [];
      for (const [, cell, end] of open.replace(/\r$/, '').matchAll(CELL)) {
        cells.push((cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell).replace(/^'/, ''));
        if (end === '') break;
      }
      open = '';
      if (names === undefined) names = cells;
      else yield Object.fromEntries(names.map((name, index) => [name, cells[index] ?? '']));
    }
  }
}

/** A decimal as an integer of ten-thousandths: no currency has more decimals. */
function amount(text) {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,4}))?$/.exec(text ?? '') ?? [];
  if (whole === undefined) throw new Error(`'${text}' is not an amount`);
  return BigInt(sign + whole + fraction.padEnd(4, '0'));
}
const AMOUNTS = ['spot_price', 'partner_cut', 'invoice_amount'];
const FIELDS = { spot_price: 'spotPrice', partner_cut: 'partnerCut', invoice_amount: 'invoiceAmount' };

function addTo(sums, key, values) {
  const before = sums.get(key);
  sums.set(key, before ? before.map((sum, index) => sum + values[index]) : values);
}

// --- Seals ---------------------------------------------------------------------------------------------------------

/** The lines of a record, split after the first word. */
function readRecord(text) {
  const record = { text, seal: hex(sha256(text)), tables: new Map(), sums: new Map(), balances: new Map() };
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [word, ...rest] = line.split(' ');
    if (word === 'facts_of') record.tables.set(rest[0], { rows: Number(rest[1]), sha256: rest[2] });
    else if (word === 'balance') record.balances.set(`${rest[0]} ${rest[1]}`, amount(rest[2]));
    else if (word === 'total') record.sums.set(rest[0], rest.slice(1).map(amount));
    else if (word in record) throw new Error(`a record has the line '${word}' twice`);
    else record[word] = rest.join(' ');
  }
  return record;
}

/** The root of a Merkle tree (RFC 9162, 2.1.1) from the hashes of its leaves in order. */
function merkleTree() {
  const subtrees = [];
  const join = (left, right) => ({
    hash: sha256(Buffer.concat([Buffer.of(1), left.hash, right.hash])),
    leaves: left.leaves + right.leaves,
  });
  return {
    add(line) {
      let tree = { hash: sha256(Buffer.concat([Buffer.of(0), line])), leaves: 1 };
      while (subtrees.at(-1)?.leaves === tree.leaves) tree = join(subtrees.pop(), tree);
      subtrees.push(tree);
    },
    root: () => (subtrees.length === 0 ? sha256('') : subtrees.reduceRight((right, left) => join(left, right)).hash),
  };
}

/** Whether a path leads from a leaf to a root (RFC 9162, 2.1.3.2). */
function pathLeadsTo(root, leaf, index, size, path) {
  let [fn, sn, hash] = [index, size - 1, leaf];
  if (fn > sn) return false;
  for (const sibling of path) {
    if (sn === 0) return false;
    if (fn % 2 === 1 || fn === sn) {
      hash = sha256(Buffer.concat([Buffer.of(1), sibling, hash]));
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else {
      hash = sha256(Buffer.concat([Buffer.of(1), hash, sibling]));
    }
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return sn === 0 && hash.equals(root);
}

const pairs = (given) => (given ?? []).map((each) => each.split('='));
const sealsByMonth = (records) => new Map([...records].map(([month, { seal }]) => [month, seal]));

function checkHeldSeals(held, seals, name = 'seals that you hold') {
  const problems = held.flatMap(([month, seal]) => {
    const found = seals.get(month);
    if (found === undefined) return [`${month} is not sealed in what was checked`];
    return found === seal ? [] : [`${month} has ${found} and you hold ${seal}: it was rewritten since`];
  });
  if (held.length > 0) check(name, problems, `${held.length} compared`);
}

function checkProof(path, held) {
  const proof = JSON.parse(readFileSync(path, 'utf8'));
  if (proof.format !== 'reckoner-proof') throw new Error(`${path} is not a proof`);
  const record = readRecord(proof.record);
  const leaf = sha256(Buffer.concat([Buffer.of(0), Buffer.from(proof.line)]));
  const siblings = proof.path.map((each) => Buffer.from(each, 'hex'));
  const root = Buffer.from(record.rows_root, 'hex');
  const problems = [];
  if (record.seal !== proof.seal) problems.push(`its record hashes to ${record.seal}, not to ${proof.seal}`);
  if (Number(record.rows) !== proof.rows) problems.push(`the month has ${record.rows} rows, not ${proof.rows}`);
  if (proof.line.split('\t')[0] !== String(proof.entry_id)) problems.push('the line is of another row');
  if (!pathLeadsTo(root, leaf, proof.index, proof.rows, siblings)) problems.push('the path does not lead to the root');
  check('row under its seal', problems, `row ${proof.entry_id} of ${record.month}, seal ${record.seal}`);
  checkHeldSeals(held, new Map([[record.month, record.seal]]));
}

// --- A pack --------------------------------------------------------------------------------------------------------

const readManifest = (pack) => JSON.parse(readFileSync(join(pack, 'manifest.json'), 'utf8'));
const recordPath = (pack, month) => join(pack, 'sealed', month, 'record.txt');

async function checkFiles(pack, manifest) {
  const problems = [];
  const listed = new Set(manifest.files.map(({ name }) => name));
  for (const { name, bytes, sha256: expected } of manifest.files) {
    const path = join(pack, name);
    if (!existsSync(path)) problems.push(`${name} is missing`);
    else {
      const hash = createHash('sha256');
      for await (const piece of createReadStream(path)) hash.update(piece);
      if (statSync(path).size !== bytes || hex(hash.digest()) !== expected) problems.push(`${name} was changed`);
    }
  }
  for (const entry of readdirSync(pack, { recursive: true, withFileTypes: true })) {
    const name = relative(pack, join(entry.parentPath ?? entry.path, entry.name))
      .split(sep)
      .join('/');
    if (entry.isFile() && name !== 'manifest.json' && !listed.has(name))
      problems.push(`${name} is not in the manifest`);
  }
  check('files', problems, `${manifest.files.length} files against manifest.json`);
}

/** Checks the seal records against the manifest, each other and the evidence. Returns them with the evidence. */
async function checkSeals(pack, manifest) {
  const problems = [];
  const evidence = {
    records: new Map(),
    documents: new Map(),
    lines: new Map(),
    events: new Map(),
    payments: new Map(),
    groups: new Map(),
    // Of closed books: the number and entry date of every sealed fact, and the rows' postings by month and account.
    dated: [],
    postings: new Map(),
    books: new Map(),
    opening: new Map(),
  };
  const rowProblems = [];
  let [before, facts, rows] = [undefined, 0, 0];
  for (const { month, seal } of manifest.months) {
    if (seal === null) {
      note(`${month} is open: nothing of it is sealed yet`);
      continue;
    }
    const record = readRecord(readFileSync(recordPath(pack, month), 'utf8'));
    evidence.records.set(month, record);
    if (record.seal !== seal) problems.push(`the record of ${month} hashes to ${record.seal}, not to ${seal}`);
    if (record.month !== month) problems.push(`the record of ${month} is of ${record.month}`);
    if (before && record.previous !== `${before.month} ${before.seal}`) {
      problems.push(`${month} was sealed after ${record.previous}, not after ${before.month} ${before.seal}`);
    }
    before = record;
    const folder = join(pack, 'sealed', month);
    for (const [table, expected] of record.tables) {
      const path = join(folder, `${table}.tsv`);
      if (!existsSync(path)) {
        problems.push(`${month}: the ${expected.rows} ${table} are missing`);
        continue;
      }
      const content = readFileSync(path);
      if (hex(sha256(content)) !== expected.sha256)
        problems.push(`${month}: the ${table} are not those that were sealed`);
      let found = 0;
      for await (const row of tsvRows(path)) {
        found += 1;
        if (table === 'documents') evidence.documents.set(row.document_id, row);
        if (table === 'document_lines')
          evidence.lines.set(row.document_id, [...(evidence.lines.get(row.document_id) ?? []), row]);
        if (table === 'audit_events') evidence.events.set(row.event_id, row);
        if (row.entry_on) evidence.dated.push({ table, fact_id: Number(row.fact_id), entry_on: row.entry_on });
        if (table === 'payments') evidence.payments.set(row.payment_id, row);
      }
      if (found !== expected.rows) problems.push(`${month}: ${found} ${table} where ${expected.rows} were sealed`);
      facts += found;
    }
    if (existsSync(join(folder, 'ledger_rows.tsv')))
      rows += await checkRows(folder, record, evidence, problems, rowProblems);
  }
  check('seals', problems, `${evidence.records.size} months, ${facts} facts, ${rows} rows under them`);
  if (rows > 0) check('rows', rowProblems, `${rows} rows: spotPrice = partnerCut + invoiceAmount, totals as sealed`);
  return evidence;
}

/** Checks a month's rows: root and totals. Returns their sums by document line. */
async function checkRows(folder, record, evidence, problems, rowProblems) {
  const tree = merkleTree();
  const totals = new Map();
  let [names, rows] = [undefined, 0];
  for await (const lines of lineBatches(join(folder, 'ledger_rows.tsv'))) {
    for (const line of lines) {
      const fields = line.toString().split('\t');
      if (names === undefined) {
        names = Object.fromEntries(fields.map((name, index) => [name, index]));
        continue;
      }
      tree.add(line);
      rows += 1;
      const of = (name) => fields[names[name]];
      const amounts = AMOUNTS.map((name) => amount(of(name)));
      if (amounts[0] !== amounts[1] + amounts[2]) rowProblems.push(`row ${of('entry_id')} does not add up`);
      addTo(totals, of('currency'), amounts);
      for (const [account, value] of postingsOf(of, amounts))
        addTo(evidence.postings, [record.month, account, of('currency')].join('\t'), [value]);
      const bill = [record.month, of('partner_id'), of('currency'), of('arrangement')].join('\t');
      addTo(evidence.groups, [bill, of('policy_id'), of('kind'), of('month')].join('\t'), [...amounts, 1n]);
    }
  }
  const { month } = record;
  if (hex(tree.root()) !== record.rows_root) problems.push(`${month}: the rows are not those that were sealed`);
  if (rows !== Number(record.rows)) problems.push(`${month}: ${rows} rows where ${record.rows} were sealed`);
  for (const currency of new Set([...totals.keys(), ...record.sums.keys()])) {
    if (String(totals.get(currency)) !== String(record.sums.get(currency))) {
      rowProblems.push(`${month}: the rows in ${currency} do not add up to the total that was sealed`);
    }
  }
  return rows;
}

/** The postings of a row: what the partner owes, what it keeps, and the sale. */
function postingsOf(of, [spotPrice, partnerCut, invoiceAmount]) {
  const owed = of('arrangement') === 'invoicing' ? 'unbilled' : 'processor';
  return [
    [`assets:receivable:${owed}:${of('partner_id')}`, invoiceAmount],
    [`expenses:partner-cut:${of('partner_id')}`, partnerCut],
    [`income:sales:${of('policy_id')}`, -spotPrice],
  ];
}
/** The accounts that rows are posted to: without the rows, their balances cannot be added up. */
const OF_ROWS = /^(assets:receivable:(unbilled|processor)|expenses:partner-cut|income:sales)(:|$)/;

// --- Closed books --------------------------------------------------------------------------------------------------

/**
 * The books of each month: their record, the entries dated in it and the balances at its end. The balances are those of
 * the month before, the entries and the rows, and no fact was dated in the month after its books had closed.
 */
async function checkBooks(pack, manifest, evidence) {
  const problems = [];
  let [before, entries, balances] = [undefined, 0, 0];
  for (const { month, books_seal: seal } of manifest.months) {
    if (!seal) {
      note(`the books of ${month} are open: what is dated in it can still change`);
      continue;
    }
    const folder = join(pack, 'books', month);
    const record = readRecord(readFileSync(join(folder, 'record.txt'), 'utf8'));
    if (record.seal !== seal)
      problems.push(`the record of the books of ${month} hashes to ${record.seal}, not to ${seal}`);
    if (record.month !== month) problems.push(`the record of the books of ${month} is of ${record.month}`);
    const previous = before ? `${before.month} ${before.seal}` : record.previous;
    if (record.previous !== previous)
      problems.push(`the books of ${month} closed after ${record.previous}, not ${previous}`);
    const [sealedMonth, sealedAs] = record.sealed_after.split(' ');
    const sealed = evidence.records.get(sealedMonth);
    if (sealed && sealed.seal !== sealedAs) problems.push(`the books of ${month} name another seal of ${sealedMonth}`);
    const books = { ...record, accounts: new Map(), moved: new Map() };
    for (const name of ['entries', 'accounts']) {
      const [rows, hash] = record[name].split(' ');
      const path = join(folder, `${name}.tsv`);
      if (hex(sha256(readFileSync(path))) !== hash)
        problems.push(`the ${name} of ${month} are not those that were sealed`);
      let found = 0;
      for await (const row of tsvRows(path)) {
        found += 1;
        if (name === 'entries') {
          const own = row.entry_on.slice(0, 7);
          if (own > month || (before && own <= before.month))
            problems.push(`${row.fact} ${row.fact_id} is not dated in ${month}`);
          addTo(books.moved, `${row.debit}\t${row.currency}`, [amount(row.amount)]);
          addTo(books.moved, `${row.credit}\t${row.currency}`, [-amount(row.amount)]);
        } else
          books.accounts.set(`${row.account}\t${row.currency}`, { control: row.control, amount: amount(row.amount) });
      }
      if (found !== Number(rows)) problems.push(`${month}: ${found} ${name} where ${rows} were sealed`);
      if (name === 'entries') entries += found;
      else balances += found;
    }
    checkTrialBalance(books, problems);
    if (before || record.previous === 'none') checkRollForward(before, books, evidence, problems);
    else note(`the balances of ${month} are not added up: the books before it are not in this pack`);
    for (const fact of evidence.dated) {
      if (fact.fact_id > Number(record.facts_to) && fact.entry_on.slice(0, 7) <= month)
        problems.push(
          `fact ${fact.fact_id} of ${fact.table} is dated ${fact.entry_on}, and was recorded after the books had closed`,
        );
    }
    evidence.books.set(month, books);
    before = books;
  }
  if (evidence.books.size > 0)
    check('books', problems, `${evidence.books.size} months, ${entries} entries, ${balances} balances`);
}

/** The lines "balance" of the record are the balances of the accounts by control account, and they add up to zero. */
function checkTrialBalance({ month, accounts, balances }, problems) {
  const found = new Map();
  const sums = new Map();
  for (const [key, { control, amount: value }] of accounts) {
    const currency = key.split('\t')[1];
    addTo(found, `${control} ${currency}`, [value]);
    addTo(sums, currency, [value]);
  }
  for (const name of new Set([...found.keys(), ...balances.keys()])) {
    if ((found.get(name)?.[0] ?? 0n) !== (balances.get(name) ?? 0n))
      problems.push(`${month}: the accounts of ${name} do not add up to the balance that was sealed`);
  }
  for (const [currency, [sum]] of sums)
    if (sum !== 0n) problems.push(`${month}: debits and credits in ${currency} differ`);
}

/** The balances at the end of a month are those of the month before, its entries and its rows. */
function checkRollForward(before, { month, accounts, moved }, { postings, groups }, problems) {
  const found = new Map(moved);
  for (const [key, { amount: value }] of before?.accounts ?? []) addTo(found, key, [value]);
  for (const [key, values] of postings) {
    const [own, ...account] = key.split('\t');
    if (own === month) addTo(found, account.join('\t'), values);
  }
  for (const key of new Set([...found.keys(), ...accounts.keys()])) {
    if (groups.size === 0 && OF_ROWS.test(key)) continue;
    const [expected, sum] = [accounts.get(key)?.amount ?? 0n, found.get(key)?.[0] ?? 0n];
    if (expected !== sum) problems.push(`${month}: ${key.replace('\t', ' in ')} does not follow from the month before`);
  }
}

/** Checks the sealed documents: headers sum their lines, lines sum their rows, and numbers have no gaps. */
function checkDocuments({ documents, lines, groups, records }) {
  const problems = [];
  const billed = new Set();
  const sequences = new Map();
  for (const [id, document] of documents) {
    const { number, series, sequence, purpose, month, partner_id, currency, arrangement } = document;
    if (number !== `${series}-${sequence.padStart(6, '0')}`)
      problems.push(`${number} is number ${sequence} of ${series}`);
    sequences.set(series, [...(sequences.get(series) ?? []), Number(sequence)]);
    const header = AMOUNTS.map((name) => amount(document[name]));
    if (header[0] !== header[1] + header[2] && purpose === 'month') problems.push(`${number} does not add up`);
    if (purpose !== 'month') continue;
    const own = lines.get(id) ?? [];
    const sums = own.map((line) => AMOUNTS.map((name) => amount(line[name])));
    const total = sums.reduce((sum, line) => sum.map((each, index) => each + line[index]), [0n, 0n, 0n]);
    if (String(total) !== String(header)) problems.push(`the lines of ${number} do not add up to its totals`);
    if (!records.has(month) || groups.size === 0) continue;
    const sign = document.document === 'credit_note' ? -1n : 1n;
    for (const [index, line] of own.entries()) {
      const key = [month, partner_id, currency, arrangement, line.policy_id, line.kind, line.month].join('\t');
      billed.add(key);
      const expected = [...sums[index].map((sum) => sign * sum), BigInt(line.count)];
      if (String(groups.get(key)) !== String(expected))
        problems.push(`line ${line.position} of ${number} is not the sum of its rows`);
    }
  }
  for (const key of groups.keys()) {
    const [month, partner] = key.split('\t');
    const { sealed_at, closed_at } = records.get(month);
    // The first seal also covers the documents of months closed before it.
    if (!billed.has(key) && sealed_at === closed_at) problems.push(`rows of ${partner} in ${month} are on no document`);
  }
  const fromTheStart = [...records.values()].some(({ previous }) => previous === 'none');
  for (const [series, numbers] of sequences) {
    numbers.sort((one, other) => one - other);
    let next = fromTheStart ? 1 : numbers[0];
    for (const number of numbers) {
      if (number > next)
        problems.push(`${series}: ${number === next + 1 ? `${next} is` : `${next} to ${number - 1} are`} missing`);
      if (number < next) problems.push(`${series}: ${number} was given twice`);
      next = number + 1;
    }
  }
  check('documents and numbers', problems, `${documents.size} documents, ${sequences.size} series`);
}

/**
 * Compares the exported tables with the sealed facts. `row` adds problems and returns whether a seal of this pack covers
 * the row; `end` lists sealed rows that are missing. Balances and states (open, paid, sent) are as of the export and are
 * not sealed; they follow from the sealed facts.
 */
const COMPARED = {
  ledger(pack, evidence) {
    const sealed = sealedRows(pack, evidence);
    const byNumber = documentsByNumber(evidence);
    return {
      async row(row, problems) {
        const { value, done } = await sealed.next();
        if (!done) compareRow(value, row, problems);
        else if (evidence.records.has(row.posted_month))
          problems.push(`row ${row.entry_id} is none of the sealed rows of ${row.posted_month}`);
        if (!row.document) return true;
        const document = byNumber.get(row.document);
        if (document && ['partner_id', 'currency'].some((each) => document[each] !== row[each]))
          problems.push(`row ${row.entry_id} names ${row.document}, which is for others`);
        if (document && document.month !== row.posted_month)
          problems.push(`row ${row.entry_id} names ${row.document}, which is for another month`);
        return document !== undefined;
      },
      async end(problems) {
        if (!(await sealed.next()).done) problems.push('sealed rows are missing at its end');
      },
    };
  },
  invoices(_pack, evidence) {
    const byNumber = documentsByNumber(evidence);
    const missing = sealedDocuments(evidence);
    return {
      row(row, problems) {
        const document = byNumber.get(row.number);
        if (document === undefined) return false;
        missing.delete(row.number);
        const amounts = [...AMOUNTS, 'credit_applied'];
        const texts = ['document', 'purpose', 'partner_id', 'month', 'currency', 'issued_on', 'due_on', 'enrollments'];
        // Columns that only the table has; in JSON a document has its lines instead.
        if (row.lines === undefined) texts.push('partner_name', 'arrangement', 'reason');
        else compareLines(row, evidence.lines.get(document.document_id) ?? [], problems);
        compare(row.number, document, row, { amounts, texts }, problems);
        return true;
      },
      end: (problems) => problems.push(...[...missing].map((number) => `${number} is missing`)),
    };
  },
  'invoice-lines'(_pack, evidence) {
    const byNumber = documentsByNumber(evidence);
    const missing = new Set();
    const linesOf = (number) => evidence.lines.get(byNumber.get(number)?.document_id) ?? [];
    for (const number of sealedDocuments(evidence))
      for (const line of linesOf(number)) missing.add(`line ${line.position} of ${number}`);
    return {
      row(row, problems) {
        if (!byNumber.has(row.number)) return false;
        const name = `line ${row.position} of ${row.number}`;
        const line = linesOf(row.number).find(({ position }) => position === String(row.position));
        if (line === undefined) {
          problems.push(`${name} was not sealed`);
          return true;
        }
        missing.delete(name);
        const texts = ['policy_id', 'policy_name', 'kind', 'month', 'count'];
        compare(name, line, row, { amounts: AMOUNTS, texts }, problems);
        return true;
      },
      end: (problems) => problems.push(...[...missing].map((name) => `${name} is missing`)),
    };
  },
  events(_pack, evidence) {
    const missing = new Set(evidence.events.keys());
    return {
      row(row, problems) {
        const id = String(row.event_id);
        const event = evidence.events.get(id);
        if (event === undefined) return false;
        missing.delete(id);
        const texts = ['occurred_at', 'action', 'subject', 'claimed_by', 'os_user', 'host', 'via'];
        compare(`event ${id}`, event, row, { amounts: [], texts }, problems);
        return true;
      },
      end: (problems) => problems.push(...[...missing].map((id) => `event ${id} is missing`)),
    };
  },
  payments(_pack, evidence) {
    const covers = ({ entry_on }) => evidence.records.has(entry_on.slice(0, 7));
    const missing = new Set([...evidence.payments.values()].filter(covers).map(({ payment_id }) => payment_id));
    return {
      row(row, problems) {
        const id = String(row.payment_id);
        const payment = evidence.payments.get(id);
        if (payment === undefined) return false;
        missing.delete(id);
        const texts = [
          'received_on',
          'entry_on',
          'currency',
          'method',
          'reference',
          'payer_name',
          'source',
          'identity',
        ];
        // A payment may be assigned to its partner later, by a fact of its own.
        if (payment.partner_id) texts.push('partner_id');
        compare(`payment ${id}`, payment, row, { amounts: ['amount'], texts }, problems);
        return true;
      },
      end: (problems) => problems.push(...[...missing].map((id) => `payment ${id} is missing`)),
    };
  },
  'opening-balances'(_pack, evidence, manifest) {
    const known = [...evidence.books.keys()].some((month) => month >= manifest.from);
    return {
      row({ account, currency, amount: text }) {
        addTo(evidence.opening, `${account}\t${currency}`, [amount(text)]);
        return known;
      },
      end: () => {},
    };
  },
  journal(_pack, evidence) {
    const months = new Map();
    return {
      row({ entry_on, account, currency, amount: text }) {
        const month = entry_on.slice(0, 7);
        if (!evidence.books.has(month)) return false;
        if (!months.has(month)) months.set(month, new Map());
        addTo(months.get(month), `${account}\t${currency}`, [amount(text)]);
        return true;
      },
      end(problems) {
        const sums = new Map(evidence.opening);
        for (const [month, { accounts }] of evidence.books) {
          for (const [key, values] of months.get(month) ?? []) addTo(sums, key, values);
          for (const key of new Set([...sums.keys(), ...accounts.keys()])) {
            if ((sums.get(key)?.[0] ?? 0n) !== (accounts.get(key)?.amount ?? 0n))
              problems.push(`${key.replace('\t', ' in ')} at the end of ${month} is not the balance that was sealed`);
          }
        }
      },
    };
  },
};

const documentsByNumber = ({ documents }) => new Map([...documents.values()].map((row) => [row.number, row]));

/** The numbers of the sealed documents of the pack's months; an export contains all of them. */
const sealedDocuments = ({ documents, records }) =>
  new Set([...documents.values()].filter(({ month }) => records.has(month)).map(({ number }) => number));

function compareLines({ number, lines }, sealed, problems) {
  if (lines.length !== sealed.length)
    problems.push(`${number} has ${lines.length} lines where ${sealed.length} were sealed`);
  const texts = ['policy_id', 'kind', 'month', 'count'];
  const inOrder = [...sealed].sort((one, other) => one.position - other.position).slice(0, lines.length);
  for (const [index, line] of inOrder.entries())
    compare(`line ${line.position} of ${number}`, line, lines[index], { amounts: AMOUNTS, texts }, problems);
}

/** A value to compare; times are compared as instants. */
function read(value) {
  const text = String(value ?? '');
  const [, day, time, fraction = ''] =
    /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|[+]00)$/.exec(text) ?? [];
  return day === undefined ? text : `${day}T${time}.${fraction.padEnd(6, '0')}Z`;
}

function compare(name, sealed, row, { amounts, texts }, problems) {
  const other = [
    ...amounts.filter((each) => amount(row[FIELDS[each] ?? each]) !== amount(sealed[each])),
    ...texts.filter((each) => read(row[each]) !== read(sealed[each])),
  ];
  if (other.length > 0) problems.push(`${name} is not as it was sealed in ${other.join(', ')}`);
}

async function checkData(pack, manifest, evidence) {
  for (const { name, rows: expectedRows, totals: expectedTotals } of manifest.files) {
    const [, kind] = /^([a-z-]+)\.(?:csv|jsonl|ledger|beancount)$/.exec(name) ?? [];
    if (kind === undefined) continue;
    if (!Object.hasOwn(COMPARED, kind) || !/[.](csv|jsonl)$/.test(name)) {
      note(`${name} is not compared with what is sealed: it is only what manifest.json says that it is`);
      continue;
    }
    const problems = [];
    const totals = new Map();
    const columns = expectedTotals ? [...new Set(Object.values(expectedTotals).flatMap(Object.keys))] : [];
    const compared = COMPARED[kind](pack, evidence, manifest);
    let [rows, unknown] = [0, 0];
    for await (const row of dataRows(join(pack, name))) {
      rows += 1;
      if (expectedTotals)
        addTo(
          totals,
          row.currency,
          columns.map((column) => amount(row[column])),
        );
      if (!(await compared.row(row, problems))) unknown += 1;
    }
    await compared.end(problems);
    if (rows !== expectedRows) problems.push(`${rows} rows where the manifest says ${expectedRows}`);
    for (const [currency, sums] of Object.entries(expectedTotals ?? {})) {
      const expected = columns.map((column) => amount(sums[column]));
      if (String(totals.get(currency)) !== String(expected))
        problems.push(`its ${currency} totals are not the manifest's`);
    }
    check(name, problems, `${rows} rows against what was sealed and the manifest's totals`);
    if (unknown > 0) note(`${unknown} rows of ${name} are, or name a document, under no seal in this pack`);
  }
}

async function* sealedRows(pack, { records }) {
  for (const month of records.keys()) {
    for await (const row of tsvRows(join(pack, 'sealed', month, 'ledger_rows.tsv')))
      yield { ...row, posted_month: month };
  }
}

const SAME = ['entry_id', 'kind', 'partner_id', 'quote_id', 'requote_id', 'reversal_id', 'enrollment_id', 'policy_id'];
SAME.push('currency', 'accepted_at', 'recorded_at', 'posted_month');
function compareRow(sealed, row, problems) {
  const other = SAME.filter((name) => read(row[name]) !== read(sealed[name]));
  other.push(...AMOUNTS.filter((name) => amount(row[FIELDS[name]]) !== amount(sealed[name])));
  if (other.length > 0)
    problems.push(`row ${row.entry_id} is not sealed row ${sealed.entry_id} in ${other.join(', ')}`);
}

/** Checks that the pack continues an earlier one: the same seals for shared months, and an unbroken chain. */
function checkPrevious(pack, evidence) {
  const problems = [];
  const earlier = readManifest(pack).months.filter(({ seal }) => seal !== null);
  for (const { month, seal } of earlier) {
    const now = evidence.records.get(month);
    if (now && now.seal !== seal) problems.push(`${month} had ${seal} and has ${now.seal}: it was rewritten since`);
    if (hex(sha256(readFileSync(recordPath(pack, month)))) !== seal) problems.push(`${pack} itself was changed`);
  }
  for (const { month, books_seal: seal } of readManifest(pack).months) {
    const now = evidence.books.get(month);
    if (seal && now && now.seal !== seal) problems.push(`the books of ${month} had ${seal} and have ${now.seal}`);
  }
  const first = [...evidence.records.values()][0];
  const last = earlier.at(-1);
  const joined = earlier.some(
    ({ month, seal }) => evidence.records.has(month) || first?.previous === `${month} ${seal}`,
  );
  if (!joined)
    problems.push(
      `${first?.month} was sealed after ${first?.previous}, the earlier pack ends with ${last?.month} ${last?.seal}`,
    );
  check('chain from earlier pack', problems, `${earlier.length} months of ${pack}`);
}

// --- The command ---------------------------------------------------------------------------------------------------

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      previous: { type: 'string' },
      seal: { type: 'string', multiple: true },
      'books-seal': { type: 'string', multiple: true },
    },
  });
  const held = pairs(values.seal);
  const [place = dirname(fileURLToPath(import.meta.url))] = positionals;
  if (statSync(place).isFile()) checkProof(place, held);
  else {
    const manifest = readManifest(place);
    if (manifest.format !== 'reckoner-export' || manifest.version !== 1)
      throw new Error('this is not a version 1 export pack');
    await checkFiles(place, manifest);
    const evidence = await checkSeals(place, manifest);
    checkDocuments(evidence);
    await checkBooks(place, manifest, evidence);
    await checkData(place, manifest, evidence);
    if (values.previous !== undefined) checkPrevious(values.previous, evidence);
    checkHeldSeals(held, sealsByMonth(evidence.records));
    checkHeldSeals(pairs(values['books-seal']), sealsByMonth(evidence.books), 'books that you hold');
    for (const [month, { seal }] of evidence.records) console.log(`seal  ${month}  ${seal}`);
    for (const [month, { seal }] of evidence.books) console.log(`books ${month}  ${seal}`);
  }
  console.log(
    failures === 0
      ? 'All checks hold.'
      : `${failures} ${failures === 1 ? 'problem' : 'problems'}: ${[...failed].join(', ')}.`,
  );
  process.exitCode = failures === 0 ? 0 : 1;
} catch (error) {
  console.error(`Cannot check: ${error.message}`);
  process.exitCode = 2;
}
