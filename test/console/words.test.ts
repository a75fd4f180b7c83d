/** What the command line says, as the console says it. */
import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { describe, expect, test } from 'vitest';
import { ACTS } from '../../src/acts/registry.ts';
import type { Seer } from '../../src/console/act-link.tsx';
import { inFields, Words } from '../../src/console/words.tsx';
import { refuse } from '../../src/errors/refusals.ts';
import type { Role } from '../../src/people/roles.ts';

const actOf = (name: string) => {
  const act = ACTS.get(name);
  if (act === undefined) throw new Error(`there is no act ${name}`);
  return act;
};

const userOf = (...roles: Role[]): Seer => ({ roles: roles.map((role) => ({ role, partner_id: null })) });
const said = (text: string, user: Seer = userOf('finance')): string => render(h(Words, { user, children: text }));

describe('an option is the field of the form', () => {
  test.each([
    ['payment.apply', '--fee goes without --amount.', '“Bank fee” goes without “Amount”.'],
    ['payment.apply', '--credit goes with one --invoice only', '“Credit note” goes with one “Invoice” only'],
    [
      'payment.reverse',
      "Record it with '--as other'; --account says where",
      'Record it with “As: other”; “Account” says where',
    ],
    ['payment.reverse', 'requires --as duplicate, and --as duplicate', 'requires “As: duplicate”, and “As: duplicate”'],
    ['invoice.credit', 'To issue another credit note, add --again.', 'To issue another credit note, add “Again”.'],
    ['books.close', 'use --without ACCOUNT --reason R, or name it', 'use “Without” and “Reason”, or name it'],
    [
      'ledger.import',
      'only the valid rows with --skip-invalid --rejects FILE.',
      'only the valid rows with “Skip invalid rows”.',
    ],
    ['ledger.import', 'record it as it is with --accept-differing', 'record it as it is with “Accept differing”'],
    ['payment.settle', 'it could be 3 and 4; choose one with --of', 'it could be 3 and 4; choose one with “Of payout”'],
    ['invoice.void', 'take --on-latest-date, which dates', 'take “Date as the latest document”, which dates'],
    ['invoice.void', 'Use --dry-run to preview.', 'Use --dry-run to preview.'],
  ])('%s: %s', (act, sentence, shown) => {
    expect(inFields(sentence, actOf(act))).toBe(shown);
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
