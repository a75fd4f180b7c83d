/**
 * Builds small packs of a log, for tests of the verifiers: lines, their tree, checkpoints, proofs and data files. The
 * trees are those of RFC 9162 as its text defines them, and share nothing with the product.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const sha256 = (...parts: (Buffer | string)[]): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();
const leafHash = (line: string | Buffer): Buffer => sha256('\0', line);
const nodeHash = (left: Buffer, right: Buffer): Buffer => sha256('\x01', left, right);

/** The largest power of two below `size`. */
const split = (size: number): number => 2 ** Math.ceil(Math.log2(size) - 1);

/** The root over leaf hashes (RFC 9162, 2.1.1). */
export function rootOf(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 0) return sha256('');
  if (leaves.length === 1) return leaves[0] as Buffer;
  const left = split(leaves.length);
  return nodeHash(rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)));
}

/** The full subtrees of a tree from left to right. */
export function edgeOf(leaves: readonly Buffer[]): Buffer[] {
  if (leaves.length === 0) return [];
  const left = 2 ** Math.floor(Math.log2(leaves.length));
  return [rootOf(leaves.slice(0, left)), ...edgeOf(leaves.slice(left))];
}

/** The consistency proof from the first `old` leaves to all of them (2.1.4.1). */
export function proofOf(old: number, leaves: readonly Buffer[], isWhole = true): Buffer[] {
  if (old === leaves.length) return isWhole ? [] : [rootOf(leaves)];
  const left = split(leaves.length);
  const [first, second] = [leaves.slice(0, left), leaves.slice(left)];
  return old <= left
    ? [...proofOf(old, first, isWhole), rootOf(second)]
    : [...proofOf(old - left, second, false), rootOf(first)];
}

const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A key that signs notes: of the log, or of a witness that states a time. */
export class Signer {
  readonly name: string;
  readonly vkey: string;
  readonly public: Buffer;
  private readonly id: Buffer;
  private readonly key: KeyObject;
  private readonly time: number | undefined;

  constructor(name: string, seed: string, time?: number) {
    this.name = name;
    this.time = time;
    this.key = createPrivateKey({ key: Buffer.concat([PKCS8, sha256(seed)]), format: 'der', type: 'pkcs8' });
    this.public = createPublicKey(this.key).export({ format: 'der', type: 'spki' }).subarray(-32);
    const content = Buffer.concat([Buffer.of(time === undefined ? 1 : 4), this.public]);
    this.id = sha256(`${name}\n`, content).subarray(0, 4);
    this.vkey = `${name}+${this.id.toString('hex')}+${content.toString('base64')}`;
  }

  sign(text: string): Buffer {
    return sign(null, Buffer.from(text), this.key);
  }

  /** The signature line under a note. */
  line(body: string): string {
    const stated = Buffer.alloc(8);
    stated.writeBigUInt64BE(BigInt(this.time ?? 0));
    const signature =
      this.time === undefined
        ? this.sign(body)
        : Buffer.concat([stated, this.sign(`cosignature/v1\ntime ${this.time}\n${body}`)]);
    return `— ${this.name} ${Buffer.concat([this.id, signature]).toString('base64')}\n`;
  }
}

export const ORIGIN = 'ledger.example/0123456789ab';
export const LOG_KEY = new Signer(ORIGIN, 'the key of the log');
export const WITNESS = new Signer('witness.example', 'the key of a witness', 1_790_000_000);

export const CHECKS = `-- The rules of these tests.
-- CURRENCIES 0 JPY
-- CURRENCIES 2 CHF EUR USD
-- CURRENCIES 3 KWD
-- CURRENCIES 4 CLF
-- FORM ledger_rows kind partner_id quote_id currency accepted_at:time spot_price:amount invoice_amount:amount posted_month arrangement event_id:int
-- FORM audit_events event_id:int occurred_at:time action details:map note?
-- FORM document_taxes document_id:int currency rate:rate reduced:flag taxable:amount tax:amount
-- FORM payments payment_id:int currency amount:amount settled_currency? settled_amount?:amount@settled_currency received_on:day confidence?:number payload?:hex reference
-- FORM closed_months month previous? entries:int
-- FORM month_partners month partner_id currency arrangement entries:int root
-- FORM log_keys key_name public_key previous? signature? reason event_id:int
-- FORM log_continues origin follows lost_size:int lost_root kept_size:int reason
-- PREPARE
CREATE TABLE per_quote AS
SELECT partner_id, quote_id, count(*) AS n, min(log_no) AS log_no FROM ledger_rows GROUP BY partner_id, quote_id;
CREATE INDEX per_quote_by ON per_quote (quote_id);

-- CHECKS

-- sold_once: A quote is sold once.
-- columns at sales:int
SELECT quote_id, n FROM per_quote WHERE n > 1 ORDER BY log_no;

-- event_known: A row names an event
-- of this log.
-- whole
SELECT r.log_no, r.event_id FROM ledger_rows r LEFT JOIN audit_events e ON e.event_id = r.event_id
WHERE e.event_id IS NULL ORDER BY r.log_no;

-- tax_is_rounded: Tax is the rate of what is taxable, rounded half up.
-- columns at currency taxable:amount tax:amount
SELECT document_id, currency, taxable, tax FROM document_taxes
WHERE 2 * (tax * 1000000 - taxable * rate) NOT BETWEEN -999999 AND 1000000;

-- named_values: The values of an event are those of its map.
SELECT m.log_no, m.path, m.value FROM map_values m WHERE m.path = 'rows' AND m.value <> '3';

-- VIEW ledger: The rows of the months of the pack.
-- columns kind entry_id:int quote_id currency accepted_at:time spotPrice:amount posted_month late:flag
SELECT kind, log_no, quote_id, currency, accepted_at, spot_price, posted_month, 0 FROM ledger_rows, pack
WHERE posted_month BETWEEN from_month AND to_month ORDER BY log_no;

-- VIEW payments: The payments of the log so far.
-- columns payment_id:int currency amount:amount settled_currency settled_amount:amount@settled_currency received_on:day reference
SELECT payment_id, currency, amount, settled_currency, settled_amount, received_on, reference FROM payments
ORDER BY log_no;

-- VIEW taxes: The taxes.
-- whole
-- columns document_id:int currency rate:rate tax:amount
SELECT document_id, currency, rate, tax FROM document_taxes ORDER BY log_no
`;

/** The lines of an honest log: July and August, each closed, and a day of September. */
export const LINES: readonly string[] = (() => {
  const rows: { line: string; key: string }[] = [];
  let number = 0;
  const next = (kind: string, ...columns: (string | number)[]) => {
    number += 2;
    return [kind, number, ...columns].join('\t');
  };
  const row = (partner: string, quote: string, price: string, month: string, currency = 'EUR') => {
    const at = `${month}-15T12:00:00.123456Z`;
    const line = next(
      'ledger_rows',
      'quote_accepted',
      partner,
      quote,
      currency,
      at,
      price,
      price,
      month,
      'invoicing',
      1,
    );
    rows.push({ line, key: [month, partner, currency, 'invoicing'].join('\t') });
    return line;
  };
  const close = (month: string, previous: string) => {
    const own = rows.filter(({ key }) => key.startsWith(month));
    return [
      next('closed_months', month, previous, own.length),
      ...[...new Set(own.map(({ key }) => key))].map((key) => {
        const leaves = own.filter((each) => each.key === key).map(({ line }) => leafHash(line));
        return next('month_partners', key, leaves.length, rootOf(leaves).toString('base64'));
      }),
    ];
  };
  const event = (id: number, details: string, note = '\\N') =>
    next('audit_events', id, '2026-07-01T00:00:00.000000Z', 'ledger.import', details, note);
  const key = LOG_KEY.public.toString('base64');
  return [
    event(1, 'file=July 50%25 %26 more&rows:3&totals.0.EUR:12.5&totals.1:null&z%2Ey=a=b:c', 'a\\tb\\\\c\\nd\\re'),
    next('log_keys', ORIGIN, key, '\\N', '\\N', 'the first key', 1),
    row('p-1', 'q-1', '61.52', '2026-07'),
    row('p-2', 'q-2', '-0.5', '2026-07'),
    row('p-1', 'q-3', '7', '2026-07', 'JPY'),
    next('payments', 1, 'EUR', '12.3', '\\N', '\\N', '2026-07-31', '0.975', '00ff', '=1+1'),
    next('payments', 2, 'KWD', '0.125', 'USD', '0.41', '2024-02-29', '\\N', '\\N', 'a, "b" ü\\n😀'),
    next('document_taxes', 1, 'EUR', '19', 'false', '61.02', '11.59'),
    next('document_taxes', 2, 'EUR', '7.7', 'true', '-10', '-0.77'),
    ...close('2026-07', '\\N'),
    event(2, ':null'),
    row('p-1', 'q-4', '100000000000000.01', '2026-08'),
    row('p-2', 'q-5', '2.5', '2026-08'),
    row('p-2', 'q-6', '3', '2026-08'),
    ...close('2026-08', '2026-07'),
    event(3, '='),
    row('p-3', 'q-7', '1', '2026-09'),
  ];
})();

export interface PackPlan {
  readonly lines: readonly string[];
  readonly first: number;
  readonly size: number;
  readonly months: readonly [from: string, to: string];
  readonly checkpoints: readonly number[];
  readonly data: readonly string[];
  /** Of the checkpoint of a size. */
  readonly originOf: (size: number) => string;
  readonly signersOf: (size: number) => readonly Signer[];
  /** Adds to or replaces the files before the manifest is written. */
  readonly change?: (files: Map<string, Buffer>) => void;
  /** Adds to or replaces them afterwards. */
  readonly tamper?: (files: Map<string, Buffer>) => void;
}

/** The size of the log after the close of a month. */
export const sizeAfter = (month: string, lines = LINES): number =>
  lines.findLastIndex((line) => line.startsWith('month_partners') && line.split('\t')[2] === month) + 1;

export function plan(changes: Partial<PackPlan> = {}): PackPlan {
  const lines = changes.lines ?? LINES;
  const size = changes.size ?? lines.length;
  return {
    lines,
    first: 0,
    size,
    months: ['2026-07', '2026-09'],
    checkpoints: [...new Set([sizeAfter('2026-07', lines), sizeAfter('2026-08', lines), size])].filter(
      (at) => at <= size,
    ),
    data: ['ledger.csv', 'payments.jsonl', 'taxes.csv'],
    originOf: () => ORIGIN,
    signersOf: () => [LOG_KEY],
    ...changes,
  };
}

export function noteOf(
  lines: readonly string[],
  size: number,
  origin = ORIGIN,
  signers: readonly Signer[] = [LOG_KEY],
) {
  const body = `${origin}\n${size}\n${rootOf(lines.slice(0, size).map(leafHash)).toString('base64')}\n`;
  return `${body}\n${signers.map((signer) => signer.line(body)).join('')}`;
}

const hashLines = (hashes: readonly Buffer[]): string => hashes.map((hash) => `${hash.toString('base64')}\n`).join('');

const LEDGER = `kind,entry_id,quote_id,currency,accepted_at,spotPrice,posted_month,late
quote_accepted,6,q-1,EUR,2026-07-15T12:00:00.123456Z,61.52,2026-07,false
quote_accepted,8,q-2,EUR,2026-07-15T12:00:00.123456Z,-0.50,2026-07,false
quote_accepted,10,q-3,JPY,2026-07-15T12:00:00.123456Z,7,2026-07,false
quote_accepted,30,q-4,EUR,2026-08-15T12:00:00.123456Z,100000000000000.01,2026-08,false
quote_accepted,32,q-5,EUR,2026-08-15T12:00:00.123456Z,2.50,2026-08,false
quote_accepted,34,q-6,EUR,2026-08-15T12:00:00.123456Z,3.00,2026-08,false
quote_accepted,44,q-7,EUR,2026-09-15T12:00:00.123456Z,1.00,2026-09,false
`;
const PAYMENT = '{"payment_id" : 1, "currency" : "EUR", "amount" : "12.30", "settled_currency" : null, ';
const DATA: Readonly<Record<string, (plan: PackPlan) => { text: string; facts?: object }>> = {
  'ledger.csv': ({ months: [from, to] }) => {
    const [head = '', ...rows] = LEDGER.split('\n').slice(0, -1);
    const own = rows.filter((row) => from <= (row.split(',')[6] ?? '') && (row.split(',')[6] ?? '') <= to);
    const euro = { '2026-07': '61.02', '2026-08': '100000000000005.51', '2026-09': '100000000000067.53' };
    const totals = { EUR: { spotPrice: from === to ? euro[from as '2026-07'] : euro['2026-09'] } };
    return { text: `${[head, ...own].join('\n')}\n`, facts: { rows: own.length, totals } };
  },
  'payments.jsonl': () => ({
    text: `${PAYMENT}"settled_amount" : null, "received_on" : "2026-07-31", "reference" : "=1+1"}
{"payment_id" : 2, "currency" : "KWD", "amount" : "0.125", "settled_currency" : "USD", "settled_amount" : "0.41", "received_on" : "2024-02-29", "reference" : "a, \\"b\\" ü\\n😀"}
`,
  }),
  'payments.csv': () => ({
    text: `payment_id,currency,amount,settled_currency,settled_amount,received_on,reference
1,EUR,12.30,,,2026-07-31,'=1+1
2,KWD,0.125,USD,0.41,2024-02-29,"a, ""b"" ü
😀"
`,
  }),
  'taxes.csv': () => ({ text: 'document_id,currency,rate,tax\n1,EUR,19,11.59\n2,EUR,7.7,-0.77\n', facts: { rows: 2 } }),
};

/** The files of a pack, as changed. */
export function filesOf(plan: PackPlan): Map<string, Buffer> {
  const { lines, first, size, checkpoints, originOf, signersOf } = plan;
  const hashes = lines.slice(0, first).map(leafHash);
  const files = new Map<string, Buffer>();
  const facts = new Map<string, object>();
  const put = (name: string, text: string) => files.set(name, Buffer.from(text));
  put('README.txt', 'A pack.\n');
  put('vkey', `${(signersOf(size)[0] ?? LOG_KEY).vkey}\n`);
  put('checks.sql', CHECKS);
  put(
    'log.tsv',
    lines
      .slice(first, size)
      .map((line) => `${line}\n`)
      .join(''),
  );
  facts.set('log.tsv', { rows: size - first });
  for (const at of new Set([...checkpoints, ...(first > 0 ? [first] : [])])) {
    if (at >= first) put(`checkpoints/${at}`, noteOf(lines, at, originOf(at), signersOf(at)));
    else put(`consistency/${at}`, hashLines(proofOf(at, hashes)));
  }
  if (first > 0) put('edge', `${first}\n${hashLines(edgeOf(hashes))}`);
  for (const name of plan.data) {
    const data = DATA[name]?.(plan);
    if (data === undefined) continue;
    put(name, data.text);
    facts.set(name, data.facts ?? {});
  }
  plan.change?.(files);
  const manifest = {
    format: 'reckoner-pack',
    version: 2,
    kind: 'ledger',
    data_format: 'csv',
    from: plan.months[0],
    to: plan.months[1],
    origin: originOf(size),
    first,
    size,
    created_at: '2026-10-01T08:00:00.000Z',
    program: '1.0.0',
    files: [...files].map(([name, content]) => {
      return { name, bytes: content.length, sha256: sha256(content).toString('hex'), ...facts.get(name) };
    }),
  };
  if (!files.has('manifest.json')) put('manifest.json', `${JSON.stringify(manifest, null, 2)}\n`);
  plan.tamper?.(files);
  return files;
}

/** Writes a pack as a folder. */
export function writePack(folder: string, pack: PackPlan): string {
  for (const [name, content] of filesOf(pack)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}
