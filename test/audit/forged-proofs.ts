/** Forged proofs: how each is made from honest ones. Both verifiers refuse them all. */
import type { Proof, ProvedFact } from '../../src/audit/proof.ts';

/** Honest proofs: of a row; of a document with three lines, its PDF and its void; of another document; of a payment; of an event. */
export interface HonestProofs {
  readonly row: Proof;
  readonly document: Proof;
  readonly other: Proof;
  readonly payment: Proof;
  readonly event: Proof;
}

type Forge = (honest: HonestProofs) => Proof | string;

export const textOf = (proof: object): string => `${JSON.stringify(proof, null, 2)}\n`;

const change = (of: keyof HonestProofs, work: (proof: Proof) => Partial<Record<keyof Proof, unknown>>): Forge => {
  return (honest) => ({ ...honest[of], ...work(honest[of]) }) as Proof;
};
/** Changes the first fact of a table. */
const fact = (
  of: keyof HonestProofs,
  table: string,
  work: (fact: ProvedFact) => Partial<Record<keyof ProvedFact, unknown>> & Record<string, unknown>,
): Forge =>
  change(of, ({ facts }) => {
    const at = facts.findIndex((each) => each.table === table);
    if (at < 0) throw new Error(`no fact of ${table}`);
    return { facts: facts.map((each, index) => (index === at ? { ...each, ...work(each) } : each)) };
  });
const facts = (
  of: keyof HonestProofs,
  work: (facts: readonly ProvedFact[], honest: HonestProofs) => ProvedFact[],
): Forge => {
  return (honest) => ({ ...honest[of], facts: work(honest[of].facts, honest) });
};
const record = (of: keyof HonestProofs, from: string | RegExp, to: string): Forge =>
  change(of, ({ records }) => ({
    records: records.map((each) => ({ ...each, record: each.record.replace(from, to) })),
  }));
/** In the order of a proof. */
const ordered = (all: readonly ProvedFact[]): ProvedFact[] =>
  [...all].sort((one, other) => {
    const [key, next] = [`${one.month} ${one.table}`, `${other.month} ${other.table}`];
    return key === next ? one.index - other.index : key < next ? -1 : 1;
  });
const swapped = (text: string, one: string, other: string) =>
  text.replace(one, '\0').replace(other, one).replace('\0', other);

export const FORGED_PROOFS: Readonly<Record<string, Forge>> = {
  'a line that says what its seal is': change('row', ({ records }) => ({
    records: records.map((each) => ({ ...each, record: `${each.record}seal ${each.seal}\n` })),
  })),
  'another record': record('row', 'issued_on 2026-08-01', 'issued_on 2026-08-02'),
  'another row': change('row', () => ({ subject: 'row 3' })),
  'another line': fact('row', 'ledger_rows', ({ line }) => ({
    line: line.replace('1000\t300\t700', '2000\t300\t1700'),
  })),
  'another place': fact('row', 'ledger_rows', ({ index }) => ({ index: index + 1 })),
  'a place outside': fact('row', 'ledger_rows', ({ leaves }) => ({ index: leaves })),
  'a shorter path': fact('row', 'ledger_rows', ({ path }) => ({ path: path.slice(1) })),
  'a longer path': fact('row', 'ledger_rows', ({ path }) => ({ path: [...path, path[0]] })),
  'no path': fact('row', 'ledger_rows', () => ({ path: [] })),
  'another month': change('row', (proof) => ({
    records: proof.records.map((each) => ({ ...each, month: '2026-08' })),
    facts: proof.facts.map((each) => ({ ...each, month: '2026-08' })),
  })),
  'another number of leaves': fact('row', 'ledger_rows', ({ leaves }) => ({ leaves: leaves + 1 })),
  'another seal': change('row', ({ records, facts: [own] }) => ({
    records: records.map((each) => ({ ...each, seal: own?.path[0] })),
  })),
  'a key more': change('row', () => ({ audited: true }) as object),
  'a key more in a fact': fact('row', 'ledger_rows', () => ({ audited: true })),
  'a key twice': ({ row }) => textOf(row).replace('"version": 2', '"version": 3,\n  "version": 2'),
  'keys in another order': ({ row: { format, version, ...rest } }) => textOf({ version, format, ...rest }),
  'a node as a leaf': fact('row', 'ledger_rows', ({ path }) => ({ line: 'x', path: path.slice(1) })),
  'half a place': fact('row', 'ledger_rows', () => ({ index: 0.5 })),
  'half a letter': ({ row }) => textOf(row).replace('ticket-protection', '\\ud800'),
  'a version with a fraction': ({ row }) => textOf(row).replace('"version": 2', '"version": 2.0'),
  'an older version': change('row', () => ({ version: 1 })),
  'columns of rows in another order': fact('row', 'ledger_rows', ({ columns }) => ({
    columns: swapped(columns, 'spot_price', 'partner_cut'),
  })),
  'a path of columns for rows': fact('row', 'ledger_rows', ({ path }) => ({ columns_path: path })),
  'a subject that is none': change('row', () => ({ subject: 'partner p-1' })),
  'a subject without its number': change('row', () => ({ subject: 'row' })),
  'a number with a zero in front': change('row', () => ({ subject: 'row 04' })),
  'no facts': change('row', () => ({ facts: [] })),
  'no records': change('row', () => ({ records: [] })),
  'the same fact twice': facts('row', (own) => [...own, ...own]),
  'a record that nothing is under': (honest) => ({
    ...honest.row,
    records: [
      ...honest.row.records,
      ...honest.document.records.filter(({ month }) => month !== honest.row.records[0]?.month),
    ],
  }),
  'a document line left out': facts('document', (own) => {
    const last = own.filter(({ table }) => table === 'document_lines').at(-1);
    return own.filter((each) => each !== last);
  }),
  'the first document line left out': facts('document', (own) => {
    const first = own.find(({ table }) => table === 'document_lines');
    return own.filter((each) => each !== first);
  }),
  'no document lines': facts('document', (own) => own.filter(({ table }) => table !== 'document_lines')),
  'the document left out': facts('document', (own) => own.filter(({ table }) => table !== 'documents')),
  'a line of another document': facts('document', (own, { other }) =>
    ordered([...own, ...other.facts.filter(({ table }) => table === 'document_lines')]),
  ),
  'another document too': facts('document', (own, { other }) =>
    ordered([...own, ...other.facts.filter(({ table }) => table === 'documents')]),
  ),
  'the lines of another document': facts('document', (own, { other }) =>
    ordered([
      ...own.filter(({ table }) => table !== 'document_lines'),
      ...other.facts.filter(({ table }) => table === 'document_lines'),
    ]),
  ),
  'the number of another document': change('document', (proof) => ({
    subject: proof.subject.replace(/\d$/, '9'),
  })),
  'facts in another order': facts('document', (own) => [...own].reverse()),
  'records in another order': change('document', ({ records }) => ({ records: [...records].reverse() })),
  'a record left out': change('document', ({ records }) => ({ records: records.slice(0, 1) })),
  'a record twice': change('document', ({ records }) => ({ records: [...records.slice(0, 1), ...records] })),
  'a fact of another month': fact('document', 'voids', () => ({ month: '2026-07' })),
  'a fact of a table of another name': fact('document', 'voids', () => ({ table: 'credit_releases' })),
  'a fact of a table that the record has not': fact('document', 'voids', () => ({ table: 'write_backs' })),
  'names of columns exchanged': fact('document', 'documents', ({ columns }) => ({
    columns: swapped(columns, 'spot_price', 'invoice_amount'),
  })),
  'a longer header': fact('document', 'documents', ({ columns, line }) => ({
    columns: `${columns}\taudited`,
    line: `${line}\ttrue`,
  })),
  'a shorter path of columns': fact('document', 'documents', ({ columns_path }) => ({
    columns_path: (columns_path ?? []).slice(1),
  })),
  'no path of columns': fact('document', 'documents', () => ({ columns_path: null })),
  'a lower amount': fact('document', 'documents', ({ columns, line }) => {
    const at = columns.split('\t').indexOf('invoice_amount');
    const values = line.split('\t');
    return { line: values.with(at, `${Number(values[at]) - 1}`).join('\t') };
  }),
  'fewer lines of the document': fact('document', 'documents', ({ line }) => ({ line: `${line.slice(0, -1)}` })),
  'the header as a fact': fact('document', 'voids', ({ columns, columns_path }) => ({
    ...{ line: columns, index: 0, path: columns_path },
  })),
  'a hash in capitals': fact('document', 'documents', ({ path }) => ({ path: path.map((each) => each.toUpperCase()) })),
  'another payment': change('payment', () => ({ subject: 'payment 2' })),
  'a payment without its fact': facts('payment', (own) => own.filter(({ table }) => table !== 'payments')),
  'an event as the fact of a payment': (honest) => ({
    ...honest.payment,
    facts: ordered([...honest.payment.facts, ...honest.event.facts]),
  }),
  'a payment as an event': (honest) => ({ ...honest.payment, subject: honest.event.subject }),
  'an event as a document': (honest) => ({ ...honest.event, subject: honest.document.subject }),
  'another event': change('event', ({ subject }) => ({ subject: `event ${Number(subject.slice(6)) + 1}` })),
  'another action': fact('event', 'audit_events', ({ line }) => ({ line: line.replace('payment.', 'invoice.') })),
};
