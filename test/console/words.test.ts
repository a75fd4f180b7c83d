/** What the command line says, as the console says it. */
import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { describe, expect, test } from 'vitest';
import { namesOf } from '../../src/acts/command.ts';
import { ACTS } from '../../src/acts/registry.ts';
import type { Seer } from '../../src/console/act-link.tsx';
import { labelsOf } from '../../src/console/labels.ts';
import { Words } from '../../src/console/words.tsx';
import { type Refusal, refuse } from '../../src/errors/refusals.ts';
import { fieldName } from '../../src/field-names.ts';
import type { Role } from '../../src/people/roles.ts';

const actOf = (name: string) => {
  const act = ACTS.get(name);
  if (act === undefined) throw new Error(`there is no act ${name}`);
  return act;
};

const userOf = (...roles: Role[]): Seer => ({ roles: roles.map((role) => ({ role, partner_id: null })) });
const said = (text: string, user: Seer = userOf('finance')): string => render(h(Words, { user, children: text }));

describe('a field in a refusal', () => {
  const wrong = (argument: string, value: string, reason: string) =>
    refuse('argument_invalid', { argument: fieldName(argument), value, reason });
  const cases: [act: string, refusal: Refusal, command: string, form: string][] = [
    [
      'payment.apply',
      wrong('fee', '5.00', `goes without ${fieldName('amount')}`),
      "--fee '5.00' goes without --amount.",
      "“Bank fee” '5.00' goes without “Amount”.",
    ],
    [
      'payment.apply',
      wrong('creditNotes', 'CN-1', `goes with one ${fieldName('numbers')} only`),
      "--credit 'CN-1' goes with one --invoice only.",
      "“Credit note” 'CN-1' goes with one “Invoice” only.",
    ],
    [
      'payment.reverse',
      wrong('duplicateOf', '', `requires ${fieldName('kind', 'duplicate')}`),
      "--duplicate-of '' requires --as duplicate.",
      "“Duplicate of” '' requires “As: duplicate”.",
    ],
    [
      'payment.assign',
      wrong('paymentId', 'x', 'is not a number such as 12'),
      "id 'x' is not a number such as 12.",
      "“Payment” 'x' is not a number such as 12.",
    ],
    [
      'books.close',
      refuse('usage', { reason: `${fieldName('without', 'ACCOUNT')} and ${fieldName('reason', 'R')} go together` }),
      "--without ACCOUNT and --reason R go together. Run 'reckoner --help' for the commands.",
      "“Without” and “Reason” go together. Run 'reckoner --help' for the commands.",
    ],
    [
      'invoice.void',
      wrong('rejects', 'x', 'is no field of it'),
      "--rejects 'x' is no field of it.",
      "--rejects 'x' is no field of it.",
    ],
  ];

  test.each(cases)('of %s: %s', (name, refusal, command, form) => {
    expect(refusal.named(namesOf(actOf(name))).message).toBe(command);
    expect(refusal.named(labelsOf(actOf(name))).message).toBe(form);
  });

  test('is an option in its facts too', () => {
    const { facts, message } = wrong('receivedOn', 'x', 'is not a date');
    expect(facts['argument']).toBe('--received-on');
    expect(message).toBe("--received-on 'x' is not a date.");
  });
});

describe('a command is the act that it does', () => {
  const closing = "Close it with 'reckoner dispute close INV-2026-000003 --reason REASON'.";
  const title = 'End the dispute of an invoice';

  test('as a link with what is known, to whoever may do it', () => {
    const href = '/console/acts/dispute.close?number=INV-2026-000003';
    expect(said(closing)).toBe(`Close it with <a href="${href}">${title}</a>.`);
  });

  test('in words alone to whoever may not', () => {
    expect(said(closing, userOf('viewer'))).toBe(`Close it with “${title}”.`);
  });

  test.each([
    ['close 2026-10 --without p-1 --without p-2', 'month.close?month=2026-10&amp;without=p-1&amp;without=p-2'],
    ['close 2026-10 --allow-empty', 'month.close?month=2026-10&amp;allowEmpty=yes'],
    ['invoice write-off INV-2026-000003 --undo --reason R', 'invoice.write_off_undone?number=INV-2026-000003'],
    ['payment assign 7 --partner PARTNER', 'payment.assign?paymentId=7'],
    [
      'payment apply 7 --invoice INV-1 --invoice INV-2',
      'payment.apply?paymentId=7&amp;numbers=INV-1&amp;numbers=INV-2',
    ],
    ['payment import FILE', 'payment.import'],
    ['email dismiss 12 --reason REASON', 'email.dismiss?emailId=12'],
  ])('%s', (command, address) => {
    expect(said(`'reckoner ${command}' does it`)).toContain(`<a href="/console/acts/${address}">`);
  });

  test('of an administrator too', () => {
    const address = '/console/acts/user.role?login=lee%40issuer.example&amp;grant=administrator';
    const command = "'reckoner user role lee@issuer.example --grant administrator'";
    expect(said(command, userOf('administrator'))).toContain(`<a href="${address}">`);
  });

  test.each(['seal show 2026-07', 'close 2026-10 --dry-run', 'user show EMAIL'])(
    '%s, which is none, stays a command',
    (command) => {
      expect(said(`'reckoner ${command}' does it`)).toBe(`<code>reckoner ${command}</code> does it`);
    },
  );

  test('or the screen that it reads', () => {
    const listed = "'reckoner invoice list --status open' shows open invoices.";
    expect(said(listed)).toBe('<a href="/console/invoices">Invoices</a> shows open invoices.');
  });

  test('or its name alone to whoever may not open it', () => {
    const listed = "'reckoner user list' shows all users.";
    expect(said(listed)).toBe('<a href="/console/settings/users">Users</a> shows all users.');
    const narrowed: Seer = { roles: [{ role: 'finance', partner_id: 'p-1' }] };
    expect(said(listed, narrowed)).toBe('“Users” shows all users.');
    expect(said("'reckoner work list' shows what is.", narrowed)).toBe(
      '<a href="/console/queue">Work queue</a> shows what is.',
    );
  });

  test.each([
    refuse('work_item_unknown', { item: 'dispute:INV-2026-000003' }),
    refuse('user_unknown', { login: 'lee@issuer.example', acting: false }),
    refuse('month_not_closed', { month: '2026-07' }),
    refuse('client_unknown', { client_id: 'c-1' }),
  ])('in a refusal of a page: $code', ({ message }) => {
    expect(message).toContain('reckoner');
    expect(said(message)).not.toContain('reckoner');
  });

  test('in a refusal of the catalogue', () => {
    const { message } = refuse('document_written_off', {
      number: 'INV-2026-000003',
      written_off: '75.00 USD',
      act: 'voided',
    });
    expect(message).toContain('reckoner');
    expect(said(message)).not.toContain('reckoner');
  });
});

test("a document's number stays on one line", () => {
  expect(said('INV-2026-000002 and CN-2026-000001')).toBe(
    '<span class="number">INV-2026-000002</span> and <span class="number">CN-2026-000001</span>',
  );
});
