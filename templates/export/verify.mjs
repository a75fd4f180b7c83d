#!/usr/bin/env node
/* Verifies packs of a Reckoner log (docs/log-format.md) as verify.py does: the same checks, texts and exit status. The
   rules need Node 22.13 or later, or the program sqlite3; all else needs Node 20.12. */
import { spawnSync } from 'node:child_process';
import { createHash, hash, verify as verifySignature } from 'node:crypto';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** What is wrong at `place`: the file and line that are being read. */
class Wrong extends Error {
  static place = '';
}
const wrong = (text) => {
  throw new Wrong(text);
};
const at = (path, line) => {
  Wrong.place = line ? `${path} line ${line}` : path;
  return path;
};
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const decode = (content) => {
  try {
    return utf8.decode(content);
  } catch {
    return wrong('not UTF-8');
  }
};
const readText = (path) => decode(fs.readFileSync(at(path)));
function* chunksOf(path) {
  const [file, chunk] = [fs.openSync(path), Buffer.alloc(1 << 20)];
  try {
    for (let read = fs.readSync(file, chunk); read > 0; read = fs.readSync(file, chunk)) yield chunk.subarray(0, read);
  } finally {
    fs.closeSync(file);
  }
}
/** The lines of a file, each with its end, after one byte that is not of the file. */
function* linesOf(path) {
  let rest = Buffer.alloc(1);
  for (const chunk of chunksOf(path)) {
    const all = Buffer.concat([rest, chunk]);
    let from = 0;
    for (let end = all.indexOf(10, 1); end >= 0; end = all.indexOf(10, end + 1)) {
      yield all.subarray(from, end + 1);
      from = end;
    }
    rest = Buffer.from(all.subarray(from));
  }
  if (rest.length > 1) yield rest;
}

// ---- Trees (RFC 9162, 2.1). A hash is a text of 32 one-byte characters: a million Buffers take as long as hashing ----
const sha256 = (content) => hash('sha256', content, 'latin1');
const pair = Buffer.alloc(65, 1);
const node = (left, right) => {
  pair.latin1Write(left, 1, 32);
  pair.latin1Write(right, 33, 32);
  return sha256(pair);
};

/** A growing tree. `edge` has the roots of its full subtrees from left to right. */
class Tree {
  constructor(size = 0, edge = []) {
    this.size = size;
    this.edge = [...edge];
  }
  add(leaf) {
    let top = leaf;
    for (let before = this.size; before % 2 === 1; before = (before - 1) / 2) top = node(this.edge.pop(), top);
    this.edge.push(top);
    this.size += 1;
  }
  root() {
    return this.size === 0 ? sha256('') : this.edge.reduceRight((right, left) => node(left, right));
  }
}

/** Whether `path` proves that the tree of `old` leaves is the beginning of the tree of `size` (2.1.4.2). Without `oldRoot`
    the proof is compared with `newRoot` only and, if `old` is a power of two, with nothing. */
function isConsistent(old, oldRoot, size, newRoot, path) {
  const isPower = Number.isInteger(Math.log2(old));
  if (isPower && oldRoot === undefined) return true;
  const [half, nodes] = [(number) => Math.floor(number / 2), isPower ? [oldRoot, ...path] : path];
  if (!(old > 0 && old < size && nodes.length > 0)) return false;
  let [fn, sn, fr, sr] = [old - 1, size - 1, nodes[0], nodes[0]];
  while (fn % 2) [fn, sn] = [half(fn), half(sn)];
  for (const step of nodes.slice(1)) {
    if (sn === 0) return false;
    if (fn % 2 || fn === sn) {
      [fr, sr] = [node(step, fr), node(step, sr)];
      while (fn && fn % 2 === 0) [fn, sn] = [half(fn), half(sn)];
    } else sr = node(sr, step);
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 && sr === newRoot && (oldRoot === undefined || oldRoot === fr);
}

// ---- Checkpoints: signed notes and cosignatures (C2SP) ---------------------------------------------------------------
const NAME = '[!-*,-~]{1,200}';
const whole = (pattern, flags = 'u') => new RegExp(`^(?:${pattern})$`, flags);
const KEY = whole(`(${NAME})\\+([0-9a-f]{8})\\+([A-Za-z0-9+/=]+)`);
const NOTE = whole(`((${NAME})\n([1-9][0-9]{0,14})\n([A-Za-z0-9+/=]+)\n)\n((?:— ${NAME} [A-Za-z0-9+/=]+\n)*)`);
const bytes = (text) => Buffer.from(text, 'latin1');
const toBase64 = (text) => bytes(text).toString('base64');
function fromBase64(text, size) {
  const content = Buffer.from(text, 'base64').toString('latin1');
  const isRight = toBase64(content) === text && (size ?? content.length) === content.length;
  return isRight ? content : wrong('malformed Base64');
}
/** A verifier key NAME+ID+BASE64: of a log (type 1), or of a witness (type 4). */
function keyOf(name, content) {
  const id = sha256(bytes(`${name}\n${content}`)).slice(0, 4);
  const text = `${name}+${bytes(id).toString('hex')}+${toBase64(content)}`;
  return { name, id, text, type: content.charCodeAt(0), public: content.slice(1) };
}
/** Reads a key, or the file that has it on its only line. */
function readKey(argument, type) {
  const text = KEY.test(argument) ? `${argument}\n` : readText(argument);
  const [, name, , content] = KEY.exec(text.slice(0, -1)) ?? [];
  const key = name === undefined ? undefined : keyOf(name, fromBase64(content));
  const isRight = key?.type === type && key.public.length === 32 && text === `${key.text}\n`;
  return isRight ? key : wrong(`not a verifier key of type ${type}`);
}
function isSigned(key, message, signature) {
  if (key.length !== 32) return false;
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes(key)]);
  return verifySignature(null, Buffer.from(message), { key: der, format: 'der', type: 'spki' }, bytes(signature));
}

/** A checkpoint and the signature lines under it. */
class Note {
  constructor(text) {
    const [, body, origin, size, root, lines] = NOTE.exec(text) ?? wrong('not a checkpoint');
    Object.assign(this, { place: Wrong.place, body, origin, size: Number(size), root: fromBase64(root, 32) });
    this.lines = lines
      .split('\n')
      .slice(0, -1)
      .map((line) => [line.split(' ')[1], fromBase64(line.split(' ')[2])]);
  }
  /** True or false, or undefined if it has no line of this key. */
  signedBy(key) {
    const found = this.lines.filter(([name, content]) => name === key.name && content.slice(0, 4) === key.id);
    if (found.length > 0) return found.every(([, content]) => this.holds(key, content.slice(4)));
  }
  holds(key, signature) {
    if (key.type === 1) return isSigned(key.public, this.body, signature);
    const time = BigInt(`0x0${bytes(signature.slice(0, 8)).toString('hex')}`);
    return isSigned(key.public, `cosignature/v1\ntime ${time}\n${this.body}`, signature.slice(8));
  }
}

// ---- Values ----------------------------------------------------------------------------------------------------------
const CURRENCIES = new Map(); // from checks.sql: the decimals of each
const LIMIT = 2n ** 62n; // sums and products of the rules stay below it, so that they are exact in every database
const NUMBER = '(?!-0$)-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?';
const TIME = whole('[0-9-]{10}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{6}Z');
const PAIR = whole(
  `((?:[^%&=:]|%25|%26|%3D|%3A|%2E)*)(?:=((?:[^%&]|%25|%26)*)|:(${NUMBER}|true|false|null|\\[\\]|\\{\\}))`,
  'su',
);
/** A reader of texts that have a form. It fails with a RangeError. */
const malformed = () => {
  throw new RangeError('malformed');
};
function fitting(pattern, convert = (text) => text) {
  const form = whole(pattern);
  return (text) => (form.test(text) ? convert(text) : malformed());
}
/** Values that were read before: most days, amounts and event numbers occur often. */
function known(read) {
  const values = new Map();
  return (text) => {
    let value = values.get(text);
    if (value !== undefined) return value;
    if (values.size > 100_000) values.clear();
    value = read(text);
    values.set(text, value);
    return value;
  };
}
/** A number if it is exact, otherwise a bigint. */
const integer = (text) => (text.length < 16 ? Number(text) : BigInt(text));
const plus = (one, other) => {
  const sum = typeof one === typeof other ? one + other : BigInt(one) + BigInt(other);
  return typeof sum === 'bigint' || sum < 2 ** 53 ? sum : BigInt(one) + BigInt(other);
};
const AMOUNTS = [0, 1, 2, 3, 4].map((digits) => {
  const decimals = digits > 0 ? `(?:\\.[0-9]{0,${digits - 1}}[1-9])?` : '';
  return known(
    fitting(`(?!-0$)-?(?:0|[1-9][0-9]{0,14})${decimals}`, (text) => {
      const [units, part = ''] = text.split('.');
      return integer(units + part.padEnd(digits, '0'));
    }),
  );
});
const readDay = known((text) => {
  const time =
    /^\d{4}-\d\d-\d\d$/.test(text) && !text.startsWith('0000') ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text) malformed();
  return time / 86_400_000;
});
const READERS = {
  int: known(fitting('0|-?[1-9][0-9]{0,17}', integer)),
  rate: AMOUNTS[4],
  number: fitting(NUMBER),
  day: readDay,
  flag: fitting('true|false', (text) => Number(text === 'true')),
  hex: fitting('(?:[0-9a-f]{2})*'),
  personal: fitting('(?:#[A-Za-z0-9+/]{43}=)?'),
  time: (text) => {
    readDay(text.slice(0, 10));
    return TIME.test(text) ? text : malformed();
  },
};
/** The pairs of path and value of a JSON value that is written flat. */
function readMap(text) {
  let last;
  return text.split('&').map((part) => {
    const [, path, quoted, bare] = PAIR.exec(part) ?? malformed();
    if (last !== undefined && Buffer.compare(Buffer.from(path), Buffer.from(last)) <= 0) malformed();
    last = path;
    return [path, quoted?.replaceAll('%26', '&').replaceAll('%25', '%') ?? (bare === 'null' ? null : bare)];
  });
}
const ESCAPES = { '\\\\': '\\', '\\t': '\t', '\\n': '\n', '\\r': '\r' };
const withoutEscapes = (text) =>
  text === '\\N' ? null : text.replace(/\\.?/gs, (code) => ESCAPES[code] ?? wrong('malformed escape'));

// ---- checks.sql: forms, rules and views ------------------------------------------------------------------------------
const TYPES = 'int|amount|rate|number|day|time|flag|hex|map|personal';
const COLUMN = whole(`([a-z][A-Za-z0-9_.]*)(\\??)!?(?::(${TYPES}))?(?:@([a-z_]+))?`);

/** How the lines of one kind of fact are written, and the table that they fill. */
class Form {
  constructor(kind, ...columns) {
    const parts = columns.map((column) => COLUMN.exec(column));
    Object.assign(this, { kind, rows: [], pairs: [], names: parts.map((part) => part[1]) });
    this.types = parts.map((part) => part[3] ?? 'text');
    this.required = parts.map((part) => part[2] === '');
    const indexes = (fits) => this.types.flatMap((type, index) => (fits(type, index) ? [index] : []));
    this.typed = indexes((type) => type in READERS);
    this.maps = indexes((type) => type === 'map');
    const currencyOf = (index) => this.names.indexOf(parts[index][4] ?? 'currency');
    this.amounts = indexes((type) => type === 'amount').map((index) => [index, currencyOf(index)]);
    this.rates = indexes((type) => type === 'rate');
    this.key = indexes((_, index) => ['partner_id', 'currency', 'arrangement', 'root'].includes(this.names[index]));
    this.month = this.names.indexOf(kind === 'ledger_rows' ? 'posted_month' : 'month');
    const affinity = (type) => (/^(int|amount|rate|day|flag)$/.test(type) ? 'INTEGER' : 'TEXT');
    const list = this.names.map((name, index) => `"${name}" ${affinity(this.types[index])}`);
    this.create = `CREATE TABLE "${kind}" (log_no INTEGER, ${list.join(', ')})`;
  }
  /** Checks and converts the fields of a line; returns the sum of its amounts without their signs. */
  read(number, fields) {
    let [total, i] = [0, 0];
    try {
      for (i of this.typed) if (fields[i] !== null) fields[i] = READERS[this.types[i]](fields[i]);
      for (i of this.maps.filter((index) => fields[index] !== null))
        for (const each of readMap(fields[i])) this.pairs.push([number, this.names[i], ...each]);
      for (const [index, currency] of this.amounts) {
        i = index;
        if (fields[i] === null) continue;
        fields[i] = (AMOUNTS[CURRENCIES.get(fields[currency])] ?? malformed)(fields[i]);
        total = plus(total, fields[i] < 0 ? -fields[i] : fields[i]);
      }
    } catch (error) {
      throw error instanceof RangeError ? new Wrong(`${this.names[i]}: malformed ${this.types[i]}`) : error;
    }
    for (const index of this.rates) {
      const rate = BigInt(fields[index] ?? 0) * (fields[index] < 0 ? -1n : 1n);
      if (2n * BigInt(total) * (rate > 1_000_000n ? rate : 1_000_000n) > LIMIT)
        wrong('amount times rate may pass 2^62');
    }
    this.rows.push([number, ...fields]);
    return total;
  }
  flush(db) {
    db?.insert(this.kind, this.rows);
    db?.insert('map_values', this.pairs);
    [this.rows, this.pairs] = [[], []];
  }
}

/** The parts of checks.sql. Blank lines separate rules and views; the comments of each come first. */
function readChecks(text) {
  const forms = [...text.matchAll(/^-- FORM (\S+) (.*)$/gm)];
  // A line under `EACH pattern` stands for its copies, for the columns of all forms that match.
  const copiesOf = (_, pattern, line) =>
    forms
      .flatMap(([, kind, columns]) =>
        [...columns.matchAll(new RegExp(pattern, 'g'))].map(([, column]) =>
          line.replaceAll('KIND', kind).replaceAll('COLUMN', column),
        ),
      )
      .join('\nUNION ALL ');
  const whole = text.replace(/^-- EACH (.*)\n([^;\n]*)/gm, copiesOf);
  const [, prepare, rest] = /\n-- PREPARE(.*?)\n-- CHECKS(.*)$/s.exec(whole);
  const checks = { forms: new Map(), prepare: `--${prepare}`, rules: [], views: new Map() };
  for (const [, digits, codes] of text.matchAll(/^-- CURRENCIES ([0-4]) (.*)$/gm))
    for (const code of codes.split(' ')) CURRENCIES.set(code, Number(digits));
  for (const [, kind, columns] of forms) checks.forms.set(kind, new Form(kind, ...columns.split(' ')));
  for (const block of rest.split(/\n\n+/)) {
    const [title = '', ...more] = [...block.matchAll(/^-- (.*)$/gm)].map(([, line]) => line);
    const query = block
      .replace(/^--.*\n?/gm, '')
      .trim()
      .replace(/;+$/, '');
    const [, view, name, sentence] = (query && /^(VIEW )?([a-z0-9_-]+):? ?(.*)$/.exec(title)) || [];
    const isColumns = (line) => line.startsWith('columns ');
    const columns = more.filter(isColumns).flatMap((line) => line.slice(8).split(' '));
    const words = more.filter((line) => line !== 'whole' && !isColumns(line));
    const form = new Form('query', ...columns);
    const part = { name, sentence: [sentence, ...words].join(' '), looksBack: more.includes('whole'), form, query };
    if (view) checks.views.set(name, part);
    else if (name) checks.rules.push(part);
  }
  return checks;
}

// ---- SQLite: of Node, or the program sqlite3 on a file ---------------------------------------------------------------
class Library {
  constructor({ DatabaseSync }, path) {
    this.db = new DatabaseSync(path);
    this.run('PRAGMA synchronous=OFF; BEGIN');
  }
  run(sql) {
    this.db.exec(sql);
  }
  insert(table, rows) {
    if (rows.length === 0) return;
    const insert = this.db.prepare(`INSERT INTO "${table}" VALUES (?${',?'.repeat(rows[0].length - 1)})`);
    for (const row of rows) insert.run(...row);
  }
  *rows(query) {
    const statement = this.db.prepare(query);
    statement.setReadBigInts(true);
    statement.setReturnArrays?.(true);
    for (const row of statement.iterate()) yield Array.isArray(row) ? row : Object.values(row);
  }
  aside(task) {
    this.run('SAVEPOINT aside');
    task();
    this.run('ROLLBACK TO aside');
  }
  close() {
    this.run('COMMIT');
  }
}
class Program {
  constructor(path) {
    this.folder = fs.mkdtempSync(`${tmpdir()}/verify-`);
    this.path = path === ':memory:' ? `${this.folder}/db` : path;
  }
  run(sql, output = 'ignore') {
    const options = { input: `PRAGMA synchronous=OFF;\n${sql}`, stdio: ['pipe', output, 'pipe'] };
    const settings = ['-batch', '-bail', '-json', '-init', '/dev/null'];
    const { status, stderr } = spawnSync('sqlite3', [...settings, this.path], options);
    if (status !== 0) throw new Error(String(stderr).split('\n')[0]);
  }
  insert(table, rows) {
    const literal = (value) => {
      if (typeof value !== 'string') return String(value ?? 'NULL');
      if (/[\r\n]/.test(value)) return `CAST(X'${Buffer.from(value).toString('hex')}' AS TEXT)`;
      return `'${value.replaceAll("'", "''")}'`;
    };
    const list = rows.map((row) => `(${row.map(literal)})`).join(',\n');
    if (rows.length > 0) this.run(`INSERT INTO "${table}" VALUES\n${list};`);
  }
  *rows(query) {
    const path = `${this.folder}/rows`;
    const file = fs.openSync(path, 'w');
    try {
      this.run(query, file);
    } finally {
      fs.closeSync(file);
    }
    for (const line of linesOf(path)) {
      const values = line.toString('utf8', 1).matchAll(/"(?:[^"\\]|\\.)*":("(?:[^"\\]|\\.)*"|[^,}]+)/g);
      yield [...values].map(([, value]) => (/^-?\d+$/.test(value) ? BigInt(value) : JSON.parse(value)));
    }
  }
  aside(task) {
    fs.copyFileSync(this.path, `${this.folder}/aside`);
    task();
    fs.copyFileSync(`${this.folder}/aside`, this.path);
  }
  close() {
    fs.rmSync(this.folder, { recursive: true });
  }
}
async function openDatabase(path) {
  try {
    return new Library(await import('node:sqlite'), path);
  } catch (error) {
    if (error.code !== 'ERR_UNKNOWN_BUILTIN_MODULE') throw error;
  }
  return spawnSync('sqlite3', ['-version']).status === 0 ? new Program(path) : undefined;
}

// ---- Packs -----------------------------------------------------------------------------------------------------------
const FILE =
  '(?:log\\.tsv|edge|vkey|checks\\.sql|README\\.txt|dictionary\\.csv|consistency/[1-9][0-9]{0,14}|' +
  'checkpoints/[1-9][0-9]{0,14}(?:\\.tsr)?|[a-z][a-z0-9-]*\\.(?:csv|jsonl|ledger|beancount))';
const [COUNT, MONTH] = ['(0|[1-9][0-9]{0,14})', '"([0-9]{4}-(?:0[1-9]|1[0-2]))"'];
const HEAD = [
  '\\{',
  '  "format": "reckoner-pack",',
  '  "version": 2,',
  '  "kind": "[a-z_\\-]+",',
  '  "data_format": "[a-z]+",',
  `  "from": ${MONTH},`,
  `  "to": ${MONTH},`,
  `  "origin": "(${NAME})",`,
  `  "first": ${COUNT},`,
  `  "size": ${COUNT},`,
  '  "created_at": "([0-9-]{10})T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\\.[0-9]{3,6}Z",',
  '  "program": "[A-Za-z0-9.+\\-]+",',
  '  "files": \\[',
].map((line) => whole(line));
const listed = (indent, item) => `\\{(?:\n${indent}${item}(?:,\n${indent}${item})*\n${indent.slice(2)})?\\}`;
const TOTALS = listed(' '.repeat(8), `"[A-Z]{3}": ${listed(' '.repeat(10), '"[A-Za-z_]+": "-?[0-9.]+"')}`);
const ENTRY = new RegExp(
  `    \\{\n      "name": "(${FILE})",\n      "bytes": ${COUNT},\n      "sha256": "([0-9a-f]{64})"` +
    `(?:,\n      "rows": ${COUNT})?(?:,\n      "totals": (${TOTALS}))?\n    \\}(?:,\n|(\n  \\]\n\\}\n$))`,
  'uy',
);

/** A folder with exactly the files of its manifest. */
class Pack {
  constructor(path) {
    this.path = at(path.replace(/\/+$/, ''));
    const [found, strange] = [[], []];
    for (const entry of fs.readdirSync(this.path, { recursive: true, withFileTypes: true })) {
      const inside = `${entry.parentPath ?? entry.path}/${entry.name}`.slice(this.path.length + 1);
      if (entry.isFile() && whole(`${FILE}|manifest\\.json`).test(inside)) found.push(inside);
      else if (!entry.isDirectory() || !['checkpoints', 'consistency'].includes(inside)) strange.push(inside);
    }
    if (strange.length > 0) wrong(`${printable(strange.sort()[0])} is not a file of a pack`);
    this.readManifest(readText(`${this.path}/manifest.json`));
    const needed = ['log.tsv', 'checks.sql', 'README.txt', 'manifest.json', `checkpoints/${this.size}`];
    if (this.first > 0) needed.push('edge', `checkpoints/${this.first}`);
    const named = ['manifest.json', ...this.files.keys()];
    for (const name of [...new Set([...found, ...named, ...needed])].sort()) {
      if (!found.includes(name)) wrong(`${at(this.path)}/${name} is missing`);
      if (!named.includes(name)) wrong(`${at(this.path)}/${name} is not in the manifest`);
    }
    for (const [name, { size, digest }] of this.files) {
      const [actual, path] = [createHash('sha256'), at(`${this.path}/${name}`)];
      let read = 0;
      for (const chunk of chunksOf(path)) {
        actual.update(chunk);
        read += chunk.length;
      }
      if (read !== size || actual.digest('hex') !== digest) wrong('not the file of the manifest');
    }
    const sizes = (folder) => found.flatMap((name) => (whole(`${folder}/[0-9]+`).test(name) ? [+name.slice(12)] : []));
    const sorted = (folder) => sizes(folder).sort((one, other) => one - other);
    this.notes = sorted('checkpoints').map((size) => this.readNote(size, found));
    this.proofs = new Map(sorted('consistency').map((size) => [size, this.readHashes(`consistency/${size}`)]));
    this.edge = found.includes('edge') ? this.readHashes('edge', String(this.first)) : [];
    const ones = this.first.toString(2).replaceAll('0', '').length;
    if (this.edge.length !== ones || (found.includes('edge') && this.first === 0)) wrong('another edge');
    this.keys = found.includes('vkey') ? [readKey(`${this.path}/vkey`, 1)] : [];
  }
  readManifest(text) {
    const [path, lines] = [`${this.path}/manifest.json`, text.split('\n')];
    const line = (form, index) => {
      at(path, index + 1);
      return (form.exec(lines[index] ?? '') ?? wrong('malformed')).slice(1);
    };
    const values = HEAD.flatMap(line);
    [this.fromMonth, this.toMonth, this.origin] = values;
    [this.first, this.size] = values.slice(3, 5).map(Number);
    at(path, 11);
    try {
      readDay(values[5]);
    } catch {
      wrong('malformed');
    }
    if (this.fromMonth > this.toMonth || this.first > this.size) wrong('ends before it begins');
    this.files = new Map();
    ENTRY.lastIndex = lines.slice(0, HEAD.length).join('\n').length + 1;
    for (let last; !last; ) {
      at(path, text.slice(0, ENTRY.lastIndex).split('\n').length);
      const entry = ENTRY.exec(text) ?? wrong('malformed, or a name twice');
      const [, name, size, digest, rows, totals = '{}'] = entry;
      const again = JSON.stringify(JSON.parse(totals), null, 2).replaceAll('\n', '\n      ');
      if (this.files.has(name) || again !== totals) wrong('malformed, or a name twice');
      this.files.set(name, { size: Number(size), digest, rows, totals: JSON.parse(totals) });
      last = entry[6];
    }
  }
  readNote(size, found) {
    const note = new Note(readText(`${this.path}/checkpoints/${size}`));
    if (note.size !== size || size < this.first || size > this.size) wrong('of another size');
    if (!found.includes(`checkpoints/${size}.tsr`)) return note;
    const stamp = fs.readFileSync(at(`${this.path}/checkpoints/${size}.tsr`));
    return stamp.includes(bytes(`\x04\x20${sha256(note.body)}`)) ? note : wrong('not a time stamp of this checkpoint');
  }
  readHashes(name, head) {
    const [lines, skipped] = [readText(`${this.path}/${name}`).split('\n'), head === undefined ? 0 : 1];
    if (lines.pop() !== '' || (skipped && lines.shift() !== head)) wrong('malformed');
    return lines.map((line, index) => {
      at(`${this.path}/${name}`, index + 1 + skipped);
      return fromBase64(line, 32);
    });
  }
}

// ---- The log ---------------------------------------------------------------------------------------------------------
/** The first month that was closed includes the rows that are posted to months before it. */
function firstClosed(packs) {
  for (const pack of packs) {
    for (const line of linesOf(`${pack.path}/log.tsv`)) {
      if (line[1] === 99 && line.latin1Slice(1, 15) === 'closed_months\t') return line.toString().split('\t')[2] ?? '';
    }
  }
  return '';
}

/** The leaf of a line, which comes with a byte for the prefix and with its end. */
function leafOf(raw) {
  const line = raw.subarray(0, -1);
  line[0] = 0;
  return sha256(line);
}

/** The leaves of all packs: their tree, and one table for each kind of fact. */
class Log {
  constructor(db, forms, packs, held) {
    Object.assign(this, { db, forms, first: packs[0].first, tree: new Tree(packs[0].first, packs[0].edge) });
    this.marks = new Map([...held, ...packs.flatMap((pack) => pack.notes)].map((note) => [note.size, undefined]));
    Object.assign(this, { number: 0, amounts: 0, partners: new Map(), roots: 0, earlierRoots: 0, otherRoots: [] });
    this.special = { closed_months: [], log_keys: [], log_continues: [] };
    this.begin = this.first > 0 ? packs[0].fromMonth : firstClosed(packs);
    for (const form of forms.values()) db?.run(form.create);
    db?.run(`CREATE TABLE map_values (log_no INTEGER, column_name TEXT, path TEXT, value TEXT);
      CREATE TABLE currencies (code TEXT, digits INTEGER);
      CREATE TABLE pack (first INTEGER, size INTEGER, from_month TEXT, to_month TEXT)`);
    db?.insert('currencies', [...CURRENCIES]);
  }
  read(pack) {
    at(pack.path);
    const [known, again] = [this.tree.size, new Tree(pack.first, pack.edge)];
    if (pack.first > known) wrong(`begins at leaf ${pack.first} instead of ${known}`);
    if (pack.first === known && this.marks.has(known)) this.marks.set(known, this.tree.root());
    const before = pack.first < known ? this.marks.get(pack.first) : this.tree.root();
    if (pack.first > 0 && again.root() !== before) wrong('edge: not of the leaves before');
    const path = `${pack.path}/log.tsv`;
    let line = 0;
    try {
      for (const raw of linesOf(path)) {
        line += 1;
        if (again.size >= known) {
          this.add(raw);
          continue;
        }
        // A leaf that the pack before has, too.
        again.add(leafOf(raw));
        if (again.size === known && again.root() !== this.tree.root()) wrong('other lines than in the pack before');
      }
    } catch (error) {
      at(path, line);
      throw error;
    }
    at(path);
    if (pack.first + line !== pack.size) wrong(`${line} lines instead of ${pack.size - pack.first}`);
    if (pack.size < known && again.root() !== this.marks.get(pack.size)) wrong('other lines than in the pack before');
    for (const form of this.forms.values()) form.flush(this.db);
    this.db?.run('DELETE FROM pack');
    this.db?.insert('pack', [[pack.first, pack.size, pack.fromMonth, pack.toMonth]]);
  }
  /** Adds a line: a byte for the prefix of its leaf, the line and its end. */
  add(raw) {
    const line = raw.subarray(0, -1);
    if (raw.at(-1) !== 10) wrong('no line end');
    if (line.length > 65_536) wrong('longer than 65535 bytes');
    const [leaf, tree, text] = [leafOf(raw), this.tree, decode(line.subarray(1))];
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for.
    if (/[\0-\x08\x0b-\x1f]/.test(text)) wrong('a control character');
    tree.add(leaf);
    if (this.marks.has(tree.size)) this.marks.set(tree.size, tree.root());
    const fields = text.split('\t');
    const kind = fields[0];
    const form = this.forms.get(kind) ?? wrong('not a kind of fact');
    if (fields.length !== form.names.length + 2)
      wrong(`${fields.length - 1} columns instead of ${form.names.length + 1}`);
    const number = /^[1-9][0-9]{0,14}$/.test(fields[1]) ? Number(fields[1]) : 0;
    if (number <= this.number) wrong('its number does not follow that of the line before');
    this.number = number;
    fields.splice(0, 2);
    if (text.includes('\\')) {
      for (let i = 0; i < fields.length; i += 1) if (fields[i].includes('\\')) fields[i] = withoutEscapes(fields[i]);
      const missing = fields.findIndex((field, i) => field === null && form.required[i]);
      if (missing >= 0) wrong(`${form.names[missing]}: NULL`);
    }
    this.amounts = plus(this.amounts, form.read(number, fields));
    if (this.amounts > LIMIT) wrong('the sum of all amounts may pass 2^62');
    if (kind in this.special) {
      this.special[kind].push([tree.size - 1, Object.fromEntries(form.names.map((name, i) => [name, fields[i]]))]);
    } else if (kind === 'ledger_rows') {
      const month = this.first === 0 && fields[form.month] < this.begin ? this.begin : fields[form.month];
      const key = `${month} ${form.key.map((i) => fields[i]).join(' ')}`;
      if (!this.partners.has(key)) this.partners.set(key, new Tree());
      this.partners.get(key).add(leaf);
    } else if (kind === 'month_partners' && fields[form.month] < this.begin) this.earlierRoots += 1;
    else if (kind === 'month_partners') {
      const [partner, currency, arrangement, root] = form.key.map((i) => fields[i]);
      const key = [fields[form.month], partner, currency, arrangement].join(' ');
      const rows = this.partners.get(key);
      this.partners.delete(key);
      this.roots += 1;
      if (rows === undefined || toBase64(rows.root()) !== root) this.otherRoots.push(key);
    }
    if (form.rows.length === 10_000) form.flush(this.db);
  }
}

// ---- What is reported ------------------------------------------------------------------------------------------------
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it replaces.
const HIDDEN = /[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu;
const printable = (value) =>
  typeof value === 'number' ? '(inexact)' : [...String(value).replace(HIDDEN, '?')].slice(0, 100).join('');
const count = { ok: 0, WRONG: 0, open: 0 };
function wrapped(text, indent) {
  const [lines, width] = [[''], 80 - indent];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== '' && [...last].length + [...word].length >= width) lines.push(word);
    else lines[lines.length - 1] += last === '' ? word : ` ${word}`;
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}
const say = (verdict, text) => {
  count[verdict] += 1;
  console.log(`${verdict.padEnd(5)} ${wrapped(text, 6)}`);
};
const check = (name, faults, text) =>
  say(faults.length > 0 ? 'WRONG' : 'ok', `${name}: ${faults.slice(0, 5).join('; ') || text}`);

function checkLog(packs, log, held, keys, witnesses) {
  const { first, special, marks } = log;
  let [size, origin, origins, faults] = [log.tree.size, packs.at(-1).origin, [], []];
  say('ok', `log: leaves ${first} to ${size - 1} of ${origin}, root ${toBase64(log.tree.root())}`);
  for (const [index, fact] of special.log_continues.toReversed()) {
    if (fact.origin !== origin || fact.kept_size !== index) faults.push(`leaf ${index} continues another log`);
    [origins, origin] = [[[index, origin], ...origins], fact.follows];
  }
  const originOf = (note) => origins.findLast(([index]) => note.size > index)?.[1] ?? origin;
  const notes = packs.flatMap((pack) => pack.notes);
  for (const note of notes) {
    if (note.root !== marks.get(note.size)) faults.push(`${note.place}: not the root of these leaves`);
    if (note.origin !== originOf(note)) faults.push(`${note.place}: of another log, ${note.origin}`);
  }
  check('checkpoints', faults, `${notes.length} checkpoints match these leaves`);
  const proofs = packs.flatMap((pack) => [...pack.proofs].map(([old, path]) => ({ pack, old, path })));
  faults = proofs
    .filter(({ pack, old, path }) => !isConsistent(old, marks.get(old), pack.first, marks.get(pack.first), path))
    .map(({ pack, old }) => `${pack.path}/consistency/${old}: not a proof`);
  check('consistency', faults, `${proofs.length} proofs lead to the first leaf of their pack`);
  let covered = checkSignatures(notes, log, keys.length > 0 ? keys : packs.at(-1).keys, witnesses);
  if (keys.length === 0 && packs.at(-1).keys.length > 0)
    say('open', 'signatures: the key is that of the pack; compare it with yours (--key)');
  for (const note of held) {
    const [verdict, text] = compareHeld(note, log, packs[0], keys, originOf(note));
    say(verdict, `held: ${note.place}: ${text}`);
    if (verdict === 'ok') covered = Math.max(covered, note.size);
  }
  const months = special.closed_months.filter(([index]) => index >= covered).map(([, fact]) => printable(fact.month));
  const close = months.length > 0 ? `, and the close of ${months.join(', ')}` : '';
  if (covered < size)
    say('open', `held: no checkpoint that you hold covers the leaves from ${Math.max(covered, first)} on${close}`);
  const earlier = `${log.earlierRoots} belong to rows before these packs`;
  check('partners', log.otherRoots, `${log.roots} roots of partners are those of their rows, ${earlier}`);
}

/** Checks the last signature, and all others that are there; returns the leaves that a witness cosigned. */
function checkSignatures(notes, log, given, witnesses) {
  const [faults, unsigned, introduced, keys, last] = [[], [], [], [...given], notes.at(-1)];
  for (const [index, fact] of log.special.log_keys) {
    const key = keyOf(fact.key_name, `\x01${fromBase64(fact.public_key)}`);
    introduced.push(key.public);
    const previous = fromBase64(fact.previous ?? '');
    const isKnown = keys.some((each) => each.public === previous);
    if (fact.signature === null) unsigned.push(...(isKnown ? [[key, fact.reason]] : []));
    else if (!isSigned(previous, `${key.text}\n`, fromBase64(fact.signature))) {
      faults.push(`leaf ${index}: the previous key did not sign this key`);
    } else if (isKnown) keys.push(key);
  }
  const signed = notes.filter((note) => keys.some((key) => note.signedBy(key)));
  for (const note of notes)
    for (const key of [...keys, ...witnesses]) {
      if (note.signedBy(key) === false) faults.push(`${note.place}: not signed by ${key.text}`);
    }
  if (!signed.includes(last)) {
    const reason = unsigned.find(([key]) => last.signedBy(key))?.[1];
    const isOther = last.lines.length > 0 && given.length > 0 && reason === undefined;
    const unknown = given.length > 0 ? 'not signed' : 'not signed by a known key';
    const lost = `signed by a key that the former one did not sign: ${printable(reason)}`;
    if (isOther) faults.push(`${last.place}: signed by other keys only`);
    else say('open', `signatures: the last checkpoint is ${reason === undefined ? unknown : lost}`);
  } else if (log.first === 0 && introduced.length > 0) {
    const isIntroduced = keys.some((key) => introduced.includes(key.public) && last.signedBy(key));
    if (!isIntroduced) say('open', 'signatures: the log does not introduce the key of the last checkpoint');
  }
  const names = keys.map((key) => key.text).join(', ') || 'no key';
  check('signatures', faults, `${signed.length} of ${notes.length} checkpoints are signed by ${names}`);
  let cosigned = 0;
  for (const key of witnesses) {
    const sizes = notes.filter((note) => note.signedBy(key)).map((note) => note.size);
    const text = `${key.name} cosigned ${sizes.length} of ${notes.length} checkpoints`;
    say(sizes.length > 0 ? 'ok' : 'open', `witness: ${text}`);
    cosigned = Math.max(cosigned, ...sizes);
  }
  return cosigned;
}

function compareHeld(note, log, pack, keys, origin) {
  if (keys.some((key) => note.signedBy(key) === false)) return ['WRONG', 'its signature is not of the key'];
  for (const [index, fact] of log.special.log_continues) {
    if (note.origin !== fact.follows || note.size <= index) continue;
    if (note.size < fact.lost_size) return ['open', 'of leaves that were lost'];
    const isLost = note.size === fact.lost_size && toBase64(note.root) === fact.lost_root;
    return isLost ? ['open', 'of leaves that were lost'] : ['WRONG', 'not of the leaves that the log says were lost'];
  }
  const path = note.size < log.first ? pack.proofs.get(note.size) : undefined;
  if (path !== undefined) {
    if (isConsistent(note.size, note.root, log.first, log.marks.get(log.first), path))
      return ['ok', `its ${note.size} leaves are a beginning of this log`];
    return ['WRONG', 'NOT A BEGINNING OF THIS LOG'];
  }
  if (note.origin !== origin) return ['WRONG', `of another log, ${note.origin}`];
  if (note.size < log.first) return ['open', 'earlier than these packs, without a proof'];
  if (note.size > log.tree.size) return ['open', 'later than these packs'];
  if (log.marks.get(note.size) !== note.root) return ['WRONG', 'NOT OF THESE LEAVES'];
  return ['ok', `its ${note.size} leaves belong to this log`];
}

// ---- Rules and data files --------------------------------------------------------------------------------------------
function decimal(value, digits) {
  const text = (value < 0 ? -value : value).toString().padStart(digits + 1, '0');
  return (value < 0 ? '-' : '') + (digits > 0 ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text);
}
function written(value, type, currency) {
  if (value === null) return null;
  if (type === 'amount') return decimal(value, CURRENCIES.get(currency) ?? malformed());
  if (type === 'rate') return decimal(value, 4).replace(/\.?0+$/, '');
  if (type === 'day') return new Date(Number(value) * 86_400_000).toISOString().slice(0, 10);
  return type === 'flag' ? Boolean(value) : value;
}
const named = (name, value) => `${toJson(name)} : ${toJson(value)}`;
const toJson = (value) => (typeof value === 'bigint' ? String(value) : JSON.stringify(value));
/** A cell of a CSV file, in which a spreadsheet finds no formula. */
function cell(value, type) {
  const text = String(value ?? '');
  const isFormula =
    type === 'text' && /^(['\t\r\n]|[ \t\r\n]*[=+@＝＋－＠-])/.test(text) && !/^-?[0-9]+(\.[0-9]+)?$/.test(text);
  const safe = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
/** Compares a data file, line by line, with the rows of the query that derives it from the log. */
function compareView(path, { names, types, amounts }, rows, isCsv, expected) {
  const [lines, sums, currencies] = [linesOf(path), new Map(), new Map(amounts)];
  let [line, total] = [0, 0];
  const next = () => lines.next().value?.subarray(1);
  const differs = (text) =>
    text.split('\n').find((part) => {
      line += 1;
      return !next()?.equals(Buffer.from(`${part}\n`));
    });
  let other = isCsv ? differs(names.join(',')) : undefined;
  for (const row of rows) {
    if (other !== undefined) break;
    const values = types.map((type, i) => written(row[i], type, row[currencies.get(i)]));
    for (const [i, currency] of amounts) {
      const key = `${row[currency]} ${names[i]}`;
      sums.set(key, (sums.get(key) ?? 0n) + (row[i] ?? 0n));
    }
    total += 1;
    const cells = isCsv
      ? values.map((value, i) => cell(value, types[i]))
      : values.map((value, i) => named(names[i], value));
    other = differs(isCsv ? cells.join(',') : `{${cells.join(', ')}}`);
  }
  if (other !== undefined) return [`line ${line}: the log has ${printable(other)}`];
  if (next() !== undefined) return [`line ${line + 1}: not in the log`];
  if (Number(expected.rows ?? total) !== total) return [`${total} rows, not ${expected.rows} as in the manifest`];
  const stated = Object.entries(expected.totals).flatMap(([code, totals]) =>
    Object.entries(totals).map((each) => [code, ...each]),
  );
  return stated
    .filter(([code, name, sum]) => decimal(sums.get(`${code} ${name}`) ?? 0n, CURRENCIES.get(code) ?? 2) !== sum)
    .map(([code, name]) => `${code} ${name}: not as in the manifest`);
}
/** Data files show the state at the end of their pack. */
function compareViews(pack, views, db) {
  for (const [name, expected] of pack.files) {
    const [stem, ending] = name.split('.');
    const [path, view] = [`${pack.path}/${name}`, views.get(stem)];
    if (!['csv', 'jsonl', 'ledger', 'beancount'].includes(ending)) continue;
    if (!db || !view || !/csv|jsonl/.test(ending) || (view.looksBack && pack.first > 0)) {
      say('open', `${path}: not compared with the log`);
      continue;
    }
    let faults;
    try {
      faults = compareView(path, view.form, db.rows(view.query), ending === 'csv', expected);
    } catch {
      faults = ['the query failed'];
    }
    check(path, faults, 'as in the log');
  }
}
/** What a rule found: where, then its columns by name, with amounts and days as people write them. */
function finding({ names, types, amounts }, row) {
  const shown = (value) => (value === null ? '-' : printable(value));
  if (names.length !== row.length) return row.map(shown).join(' ');
  const currencies = new Map(amounts);
  let values = row;
  try {
    values = types.map((type, i) => written(row[i], type, row[currencies.get(i)]));
  } catch {}
  const [place, ...others] = values.map(shown);
  if (others.every((value) => value === '-')) return place;
  return `${place}: ${others.map((value, i) => `${names[i + 1]} ${value}`).join(', ')}`;
}
function runRules(rules, first, db) {
  if (!db) return say('open', 'rules: not run, as this needs Node 22.13 or later, or the program sqlite3');
  const decided = rules.filter(({ looksBack }) => !looksBack || first === 0);
  let broken = 0;
  for (const { name, sentence, form, query } of decided) {
    let rows;
    try {
      rows = [...db.rows(`SELECT *, count(*) OVER () FROM (${query}) LIMIT 5`)];
    } catch (error) {
      rows = [[`the query failed, ${error.message}`, 1n]];
    }
    if (rows.length === 0) continue;
    broken += 1;
    say('WRONG', `${name}: ${sentence}`);
    for (const row of rows) console.log(`      - ${wrapped(finding(form, row.slice(0, -1)), 8)}`);
    const more = rows[0].at(-1) - BigInt(rows.length);
    if (more > 0n) console.log(`        and ${more} more`);
  }
  const back = rules.length - decided.length;
  if (back > 0) say('open', `rules: ${back} look back before this pack: Not decidable from this pack.`);
  say('ok', `rules: ${decided.length - broken} of ${rules.length} hold`);
}

async function verify(paths, options) {
  const text = readText(options.checks);
  const checks = readChecks(text);
  const keys = options.key.map((each) => readKey(at(each), 1));
  const witnesses = options.witness.map((each) => readKey(at(each), 4));
  const held = options.held.map((each) => new Note(readText(each).replaceAll('\r\n', '\n')));
  const packs = paths.map((path) => new Pack(path));
  for (const { path } of packs) {
    const other = `${path}/checks.sql has other rules; those of this verifier are used`;
    if (readText(`${path}/checks.sql`) !== text) console.log(`note  ${wrapped(other, 6)}`);
  }
  const db = await openDatabase(options.db);
  try {
    const log = new Log(db, checks.forms, packs, held);
    for (const pack of packs) {
      log.read(pack);
      const compare = () => {
        db?.run(checks.prepare);
        compareViews(pack, checks.views, db);
      };
      if (db && pack !== packs.at(-1)) db.aside(compare);
      else compare();
    }
    checkLog(packs, log, held, keys, witnesses);
    runRules(checks.rules, log.first, db);
  } finally {
    db?.close();
  }
}

const list = { type: 'string', multiple: true, default: [] };
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    key: list,
    held: list,
    witness: list,
    checks: { type: 'string', default: fileURLToPath(new URL('checks.sql', import.meta.url)) },
    db: { type: 'string', default: ':memory:' },
    allow: { type: 'boolean', default: false },
  },
});
try {
  await verify(positionals, values);
} catch (error) {
  if (!(error instanceof Wrong) && error.code === undefined) throw error;
  say('WRONG', `${printable(Wrong.place)}: ${error instanceof Wrong ? error.message : 'cannot be read'}`);
}
const undecided = `Nothing is wrong; ${count.open} open${values.allow ? ', allowed' : ''}.`;
console.log(count.WRONG > 0 ? `${count.WRONG} wrong.` : count.open > 0 ? undecided : 'All checks hold.');
process.exitCode = count.WRONG > 0 ? 1 : count.open > 0 && !values.allow ? 2 : 0;
