/** Every action says what a form and an approval need to know of it, and every command that changes something does an action. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Action } from '../../src/actions/action.ts';
import { fieldsOf, inputOfForm } from '../../src/actions/fields.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import { paymentApply } from '../../src/actions/payment/apply.ts';
import { APPROVABLE_ACTIONS } from '../../src/actions/registry.ts';
import { readInput } from '../../src/actions/run.ts';
import { COMMANDS } from '../../src/cli/program.ts';

const SRC = join(import.meta.dirname, '../../src');

/** The files of a folder of src, with what stands in them. */
const filesOf = (folder: string): { path: string; text: string }[] =>
  readdirSync(join(SRC, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(SRC, folder, path), 'utf8') }));

/** `file handler`: commands that are neither `doing(action)` nor `reading` or `readingNow`. */
const OTHER_COMMANDS: Readonly<Record<string, string>> = {
  // These do actions, and something beside them.
  'books.ts closeBooks': 'a dry run lists everything that keeps the books from closing, where the action is refused',
  'checkpoint.ts addCosignature': 'records what a witness signed: nothing is decided',
  'close.ts output': 'month.close, or with --compare only compares what it would issue',
  'credit.ts refund': 'credit.refund, or credit.refund_returned with --returned',
  'deliver.ts deliver': 'delivery.retry; what it delivers was decided by other actions',
  'export-gl.ts output': 'gl.export, and then writes its files',
  'invoice/link.ts invoiceLink': 'invoice.link_rotate or invoice.link_revoke, or reads',
  'invoice/write-off.ts writeOff': 'invoice.write_off, or invoice.write_off_undone with --undo',
  'reconcile.ts output': 'processor.reverse_month and shares.bill, and then a report',
  'remind.ts remind': 'reminder.record, as a list for spreadsheets too',
  'approval.ts approve': 'the action of the request',
  // These change something and are no actions.
  'approval.ts reject': 'decides on an action',
  'approval.ts withdraw': 'decides on an action',
  'backup.ts backup': 'writes a file, as the owner of the database',
  'drill.ts output': 'records a job run: the copy is rolled back',
  'export.ts output': 'writes files, and the event of an export',
  'init.ts output': 'there is no database yet',
  'ledger.ts importFiles': 'ledger.import, with files of any size as a stream and the rejected rows in another',
  'migrate.ts migrate': 'changes the database itself, as its owner',
  'processor/poll.ts processorPoll': 'reads the processor as the job does: nothing is decided',
  'purge.ts purgeDue': 'deletes what nobody needs, as the job does: nothing is decided',
  'restore.ts restore': 'makes the database, as its owner',
  'resume.ts resume':
    'a preview ends pauses by itself, so nothing would be shown; after a restore it asks for numbers first',
  'serve.ts serve': 'serves until it is stopped',
  'witness.ts witness': 'signs as a witness, without our database',
  'verify.ts output': 'reads, and with --packs without our database',
  // These read, from the primary server.
  'approval.ts show': 'reads',
  'doctor.ts doctor': 'reads',
  'invoice/pdf.ts invoiceEInvoice': 'reads',
  'invoice/pdf.ts invoicePdf': 'reads',
};

describe('every command', () => {
  const handlers = filesOf('cli/commands').flatMap(({ path, text }) =>
    [...text.matchAll(/\.action\(\s*action\(\s*(?:acting\()?\(?(\w+)/g)].map(([, handler]) => ({ path, handler })),
  );
  const named = new Set<unknown>();
  beforeAll(async () => {
    const parts = await Promise.all(Object.values(COMMANDS).flatMap(([, load]) => load()));
    for (const part of parts) if (typeof part === 'string') named.add(part);
  });

  test('that changes something does an action, or says here why not', () => {
    expect(handlers.length + named.size).toBeGreaterThan(70);
    const others = handlers.filter(({ handler }) => !['doing', 'reading', 'readingNow'].includes(handler ?? ''));
    expect(others.map(({ path, handler }) => `${path} ${handler}`).sort()).toEqual(Object.keys(OTHER_COMMANDS).sort());
  });

  test('has an action, and every action that is described is in the registry', async () => {
    const commands = filesOf('cli').map(({ text }) => text);
    const described = new Map<string, unknown>();
    for (const { path, text } of filesOf('actions')) {
      const module = (await import(join(SRC, 'actions', path))) as Record<string, unknown>;
      for (const [, name] of text.matchAll(
        /^export const (\w+) = (?:defineAction|linkAction|onEach|onEmails|onLines)\(/gm,
      )) {
        described.set(name as string, module[name as string]);
      }
    }
    expect(described.size).toBeGreaterThan(40);
    expect(new Set(described.values())).toEqual(new Set(ACTIONS.values()));
    // A command is made of the action that program.ts loads by its name, or it is written by hand.
    const unused = [...described].filter(
      ([name, action]) => !named.has((action as Action).name) && !commands.some((text) => text.includes(name)),
    );
    expect(unused.map(([name]) => name)).toEqual([]);
  });
});

describe('every action', () => {
  test('describes each field of its input in words', () => {
    const fields = [...ACTIONS.values()].flatMap(({ input }) => fieldsOf(input));
    expect(fields.length).toBeGreaterThan(20);
    for (const { label, help } of fields) {
      expect(label).toMatch(/^[A-Z]/);
      expect(help).toMatch(/^[A-Z0-9].*\.$/);
    }
  });

  test('has a name of noun and verb that no other has, and a title', () => {
    for (const [name, { name: own, title }] of ACTIONS) {
      expect(own).toBe(name);
      expect(name).toMatch(/^[a-z_]+\.[a-z_]+$/);
      expect(title).toMatch(/^[A-Z]/);
    }
  });
});

test('the actions that a rule can name are those that only persons do, but for the month and the books', () => {
  const without = {
    'checkpoint.take': 'the jobs take one each day',
    'ledger.pause': 'must not wait',
    'delivery.retry': 'what is delivered was decided by other actions',
    'reminder.record': 'the jobs remind each day',
    'email.bounces': 'reads reports',
    'payment.events': 'the server does it',
    'processor.import': 'the jobs read the accounts',
    'user.sign_out': 'must not wait',
    'partner.change': 'the rule of partner.import applies to it',
    'work.assign': 'says who does something, and does nothing',
  };
  const names = [...ACTIONS.keys()].filter((name) => !(name in without));
  expect([...APPROVABLE_ACTIONS].sort()).toEqual(names.sort());
});

describe('a form', () => {
  test('leaves out what is empty, and reads numbers, flags and several values', () => {
    const form = new URLSearchParams('paymentId=12&numbers=INV-1&numbers=INV-2&numbers=&amount=');
    expect(inputOfForm(paymentApply.input, form)).toEqual({ paymentId: 12, numbers: ['INV-1', 'INV-2'] });
    const flagged = new URLSearchParams('number=INV-1&reason=wrong+price&onLatestDate=yes&unknown=1');
    expect(inputOfForm(invoiceVoid.input, flagged)).toEqual({
      number: ['INV-1'],
      reason: 'wrong price',
      onLatestDate: true,
    });
  });

  test('takes an amount as pages print it, with groups of three digits, and leaves other amounts to be refused', () => {
    const amountOf = (amount: string) => inputOfForm(paymentApply.input, new URLSearchParams({ amount }))['amount'];
    expect(['1,200', '9,560.32', '1,234,567.8', '1200.00'].map(amountOf)).toEqual([
      '1200',
      '9560.32',
      '1234567.8',
      '1200.00',
    ]);
    for (const other of ['1,20', '12,00', '1.200,00', '1,2000', ',200', '1200,00']) expect(amountOf(other)).toBe(other);
  });

  test('is refused by the name of the field that cannot be read', () => {
    expect(() => readInput(invoiceVoid, { number: 'INV-1', reason: ' ' })).toThrow(
      "--reason ' ' must be one line of 1 to 500 characters.",
    );
    expect(() => readInput(invoiceVoid, { reason: 'wrong price' })).toThrow("number '' is missing.");
    expect(() => readInput(paymentApply, { paymentId: 'twelve', numbers: ['INV-1'] })).toThrow(
      "id 'twelve' is not a number",
    );
  });
});
