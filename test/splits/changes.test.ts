/** Changes of a connected account, or of the source of its balance transactions: nothing counts twice or is lost. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { readConnectedAccounts } from '../../src/splits/accounts.sql.ts';
import { type ImportReport, importBalanceTransactions, importSettlement } from '../../src/splits/import.ts';
import { reconcileMonth } from '../../src/splits/reconcile-month.ts';
import { recordReversals } from '../../src/splits/reverse.ts';
import { openWorld, partner, quote, requote, type World } from '../support/world.ts';
import { ndjson, share, type Told } from './balance-transactions.ts';

const AT = '2026-07-15T12:00:01Z';
const HEADER = 'quote_id,transfer,payment,amount,occurred_at';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.at('2026-08-03T10:00:00Z');
});
afterAll(() => world.end());

const take = (account: string, ...balance_transactions: Told[]): Promise<ImportReport> =>
  world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved', text: ndjson(balance_transactions) }, account),
  );
const settle = (partnerId: string, ...lines: string[]): Promise<ImportReport> => {
  const text = [HEADER, ...lines.map((line) => `${line},${AT}`)].join('\n');
  return world.database.transaction((tx) => importSettlement(tx, world, { name: 'settlement.csv', text }, partnerId));
};
/** The exception of a quote in July's reconciliation; undefined where there is none. */
async function found(quoteId: string) {
  const { exceptions } = await world.database.reading((tx) =>
    reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, '2026-07' as Month),
  );
  const one = exceptions.find(({ quote_id }) => quote_id === quoteId);
  return one && { status: one.status, open: one.open };
}
const unknownOf = async (account: string) => {
  const { exceptions } = await world.database.reading((tx) =>
    reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, '2026-07' as Month),
  );
  return exceptions.filter((each) => each.status === 'unknown' && each.account === account).length;
};
const differences = async () => (await world.verify()).checks.filter((check) => check.differences.length > 0);

describe('the source of balance transactions', () => {
  type Source = 'processor' | 'settlement_file';
  const sourceIs = (id: string, balance_transactions_from: Source, arrangement_from?: string) =>
    world.partners([
      partner({
        ...{ partner_id: id, arrangement: 'connected_account', connected_account_id: `acct_${id}` },
        ...{ merchant_of_record: 'third_party', split: 'sequential', connected_account_type: 'custom' },
        ...{ balance_transactions_from, ...(arrangement_from === undefined ? {} : { arrangement_from }) },
      }),
    ]);
  /** A partner whose account has that source, and a quote with a share of 7.00. */
  async function begin(id: string, source: Source) {
    await sourceIs(id, source);
    await world.rows([quote({ partner_id: id, quote_id: `q-${id}` })]);
    return { quoteId: `q-${id}`, account: `acct_${id}` };
  }
  const idsOf = ({ source }: Told) => ({ payment: source.id, transfer: String(source['source_transfer']) });

  test('is the processor: a settlement line then only names the quote of a transfer', async () => {
    const { quoteId, account } = await begin('one', 'processor');
    const moved = share(700, AT);
    expect(await settle('one', `${quoteId},,${idsOf(moved).payment},7.00`)).toMatchObject({ recorded: 1, matched: 0 });
    expect(await found(quoteId)).toMatchObject({ status: 'missing' });
    expect(await take(account, moved)).toMatchObject({ recorded: 1, matched: 1 });
    expect([await found(quoteId), await unknownOf(account)]).toEqual([undefined, 0]);
  });

  test('is the settlement files: what the processor lists is then recorded and never counts', async () => {
    const { quoteId, account } = await begin('file', 'settlement_file');
    const moved = share(700, AT, { quote_id: quoteId });
    expect(await settle('file', `${quoteId},,${idsOf(moved).payment},7.00`)).toMatchObject({ matched: 1 });
    expect(await take(account, moved, share(300, AT))).toMatchObject({ recorded: 2, matched: 0 });
    expect([await found(quoteId), await unknownOf(account), await differences()]).toEqual([undefined, 0, []]);
  });

  test('changes freely before the account has balance transactions, though it has rows', async () => {
    const { quoteId } = await begin('fresh', 'processor');
    expect(await sourceIs('fresh', 'settlement_file')).toMatchObject({ updated: 1 });
    expect(await settle('fresh', `${quoteId},tr_fresh,,7.00`)).toMatchObject({ matched: 1 });
  });

  test('changes only from a month without balance transactions', async () => {
    const { quoteId, account } = await begin('later', 'settlement_file');
    await settle('later', `${quoteId},tr_later,,7.00`);
    const refusal = { code: 'arrangement_change', facts: { reason: expect.stringMatching(/a month has one source/) } };
    await expect(sourceIs('later', 'processor')).rejects.toMatchObject(refusal);
    await expect(sourceIs('later', 'processor', '2026-07')).rejects.toMatchObject(refusal);
    expect(await sourceIs('later', 'processor', '2026-08')).toMatchObject({ updated: 1 });

    await world.rows([quote({ partner_id: 'later', quote_id: 'q-later-2', accepted_at: '2026-07-31T12:00:00Z' })]);
    // The whole account is read: July counts by the file, August by the processor.
    const august = share(700, '2026-08-01T12:00:00Z', { quote_id: 'q-later-2' });
    expect(await take(account, share(700, AT, { quote_id: quoteId }), august)).toMatchObject({
      recorded: 2,
      matched: 1,
    });
    const text = `${HEADER}\nq-later-2,,${idsOf(august).payment},7.00,2026-08-01T12:00:00Z\n`;
    const report = await world.database.transaction((tx) =>
      importSettlement(tx, world, { name: 'august.csv', text }, 'later'),
    );
    expect(report).toMatchObject({ recorded: 1, matched: 0 });
    expect([await found(quoteId), await found('q-later-2'), await differences()]).toEqual([undefined, undefined, []]);
  });

  describe('stays what it was in months with balance transactions', () => {
    const files = { balance_transactions_from: 'settlement_file' };
    const onAccount = (id: string, account: string, more: object = {}) =>
      partner({
        ...{ partner_id: id, arrangement: 'connected_account', connected_account_id: account },
        ...{ merchant_of_record: 'third_party', split: 'sequential', connected_account_type: 'custom', ...more },
      });
    const sources = (account: string) =>
      world
        .sql<{ month: string; source: string }>(
          `SELECT month, account_source($1, month) AS source FROM unnest(ARRAY['2026-06', '2026-07', '2026-08']) AS month`,
          [account],
        )
        .then((rows) => rows.map((row) => row.source));
    const refusal = (account: string) => ({
      code: 'arrangement_change',
      facts: { reason: expect.stringMatching(`${account} .* 2026-0[78] .*a month has one source`) },
    });
    const AUGUST = '2026-08-01T12:00:00Z';
    /** A share of 7.00 in July that the partner's settlement file names, under this account. */
    async function begin(id: string, account: string) {
      await world.partners([onAccount(id, account, files)]);
      await world.rows([quote({ partner_id: id, quote_id: `q-${id}` })]);
      expect(await settle(id, `q-${id},tr_${id},,7.00`)).toMatchObject({ matched: 1 });
      expect(await sources(account)).toEqual(['settlement_file', 'settlement_file', 'settlement_file']);
    }

    test('when a second partner joins its account', async () => {
      await begin('shared-1', 'acct_shared');
      await expect(world.partners([onAccount('shared-2', 'acct_shared')])).rejects.toMatchObject(
        refusal('acct_shared'),
      );
      expect(await world.sql(`SELECT FROM partners WHERE partner_id = 'shared-2'`)).toEqual([]);
      // Before its first arrangement with the account, a partner counts as having had that one.
      await world.partners([partner({ partner_id: 'shared-2' })]);
      const joining = onAccount('shared-2', 'acct_shared', { arrangement_from: '2026-08' });
      await expect(world.partners([joining])).rejects.toMatchObject(refusal('acct_shared'));
      expect(await world.partners([{ ...joining, ...files }])).toMatchObject({ updated: 1 });
      // From a month without balance transactions, the two partners change together or one after the other.
      const next = { balance_transactions_from: 'processor', arrangement_from: '2026-08' };
      expect(await world.partners([onAccount('shared-1', 'acct_shared', next)])).toMatchObject({ updated: 1 });
      expect(await sources('acct_shared')).toEqual(['settlement_file', 'settlement_file', 'processor']);
      expect([await found('q-shared-1'), await differences()]).toEqual([undefined, []]);
    });

    test('when two partners on an account change in one file', async () => {
      await begin('pair-1', 'acct_pair');
      await world.partners([onAccount('pair-2', 'acct_pair', files)]);
      const both = (more: object) => ['pair-1', 'pair-2'].map((id) => onAccount(id, 'acct_pair', more));
      await expect(world.partners(both({}))).rejects.toMatchObject(refusal('acct_pair'));
      await expect(world.partners(both({ arrangement_from: '2026-07' }))).rejects.toMatchObject(refusal('acct_pair'));
      expect(await world.partners(both({ arrangement_from: '2026-08' }))).toMatchObject({ updated: 2 });
    });

    test('when a partner goes back to an account that it had before', async () => {
      await begin('back', 'acct_back_a');
      await world.partners([onAccount('back', 'acct_back_b', { arrangement_from: '2026-08' })]);
      expect(await settle('back', 'q-back,tr_back_2,,1.00')).toMatchObject({ matched: 1 });
      const text = `${HEADER}\nq-back,tr_back_3,,1.00,${AUGUST}\n`;
      await world.database.transaction((tx) => importSettlement(tx, world, { name: 'late.csv', text }, 'back'));
      const again = onAccount('back', 'acct_back_a', { arrangement_from: '2026-08' });
      await expect(world.partners([again])).rejects.toMatchObject(refusal('acct_back_a'));
      expect(await sources('acct_back_a')).toEqual(['settlement_file', 'settlement_file', 'settlement_file']);
      expect(await world.partners([{ ...again, arrangement_from: '2026-09' }])).toMatchObject({ updated: 1 });
      expect(await sources('acct_back_a')).toEqual(['settlement_file', 'settlement_file', 'settlement_file']);
    });

    test('when a partner goes over to invoicing and back', async () => {
      await begin('break', 'acct_break');
      await world.partners([partner({ partner_id: 'break', arrangement_from: '2026-08' })]);
      const text = `${HEADER}\nq-break,tr_break_2,,1.00,${AUGUST}\n`;
      await world.database.transaction((tx) => importSettlement(tx, world, { name: 'late.csv', text }, 'break'));
      const again = onAccount('break', 'acct_break', { arrangement_from: '2026-08' });
      await expect(world.partners([again])).rejects.toMatchObject(refusal('acct_break'));
      expect(await world.partners([{ ...again, ...files }])).toMatchObject({ updated: 1 });
      expect(await sources('acct_break')).toEqual(['settlement_file', 'settlement_file', 'settlement_file']);
    });

    test('when a planned arrangement is taken back', async () => {
      await world.partners([partner({ partner_id: 'planned' })]);
      await world.partners([onAccount('planned', 'acct_planned', { ...files, arrangement_from: '2026-08' })]);
      await take('acct_planned', share(700, AUGUST));
      const invoicing = partner({ partner_id: 'planned', arrangement_from: '2026-08' });
      await expect(world.partners([invoicing])).rejects.toMatchObject(refusal('acct_planned'));
    });
  });

  test('a line that was recorded with another amount is refused', async () => {
    const { quoteId } = await begin('changed', 'settlement_file');
    await settle('changed', `${quoteId},tr_changed,py_changed,7.00`);
    expect(await settle('changed', `${quoteId},tr_changed,py_changed,7.00`, `${quoteId},,py_more,1.00`)).toMatchObject({
      recorded: 1,
      duplicates: 1,
    });
    await expect(settle('changed', `${quoteId},tr_changed,py_changed,3.00`)).rejects.toMatchObject({
      code: 'settlement_invalid',
    });
  });

  test('several reversals of one transfer count separately', async () => {
    const { quoteId } = await begin('parts', 'settlement_file');
    const lines = ['tr_parts,py_parts,7.00', 'tr_parts,pyr_1,-2.00', 'tr_parts,pyr_2,-2.00'];
    expect(await settle('parts', ...lines.map((line) => `${quoteId},${line}`))).toMatchObject({
      recorded: 3,
      matched: 3,
    });
  });

  describe('a line that names only the transfer or the payment, and one that names both, count once', () => {
    const reversed = async (quoteId: string) => {
      const { exceptions } = await world.database.reading((tx) =>
        reconcileMonth(tx, { settings: world.settings, now: world.environment.now() }, '2026-07' as Month),
      );
      return exceptions.find(({ quote_id }) => quote_id === quoteId)?.transfers_reversed;
    };
    const FORMS = { transfer: 'tr_$,,7.00', payment: ',py_$,7.00', both: 'tr_$,py_$,7.00' };

    test.each([
      ['transfer', 'both'],
      ['both', 'transfer'],
      ['payment', 'both'],
      ['both', 'payment'],
    ] as const)('first the %s, then the %s', async (first, second) => {
      const id = `form-${first}-${second}`;
      const { quoteId } = await begin(id, 'settlement_file');
      const line = (form: keyof typeof FORMS) => `${quoteId},${FORMS[form].replaceAll('$', id)}`;
      expect(await settle(id, line(first))).toMatchObject({ recorded: 1, matched: 1 });
      expect(await settle(id, line(second))).toMatchObject({ recorded: 1, matched: 0 });
      expect(await settle(id, line(first), line(second))).toMatchObject({ recorded: 0, duplicates: 2 });
      expect([await found(quoteId), await differences()]).toEqual([undefined, []]);
    });

    test('in one file', async () => {
      const { quoteId } = await begin('form-one', 'settlement_file');
      const report = await settle('form-one', `${quoteId},tr_form_one,,7.00`, `${quoteId},tr_form_one,py_1,7.00`);
      expect(report).toMatchObject({ recorded: 2, matched: 1 });
      expect(await found(quoteId)).toBeUndefined();
    });

    test('in an account that the processor reports', async () => {
      const { quoteId, account } = await begin('form-read', 'processor');
      const moved = share(700, AT);
      const { transfer, payment } = idsOf(moved);
      await settle('form-read', `${quoteId},${transfer},,7.00`, `${quoteId},${transfer},${payment},7.00`);
      expect(await take(account, moved)).toMatchObject({ matched: 1 });
      expect(await found(quoteId)).toBeUndefined();
    });

    test('and with another amount the file is refused', async () => {
      const { quoteId } = await begin('form-amount', 'settlement_file');
      await settle('form-amount', `${quoteId},tr_form_amount,,7.00`);
      await expect(settle('form-amount', `${quoteId},tr_form_amount,py_amount,3.00`)).rejects.toMatchObject({
        code: 'settlement_invalid',
        facts: { problems: [{ path: 'line 2', reason: expect.stringMatching(/recorded with 7 USD/) }] },
      });
      expect(await found(quoteId)).toBeUndefined();
    });

    test('but of two equal reversals of one transfer, both count', async () => {
      const { quoteId } = await begin('form-back', 'settlement_file');
      await settle('form-back', `${quoteId},tr_fb,py_fb,7.00`, `${quoteId},trr_fb,,-2.00`);
      expect(await reversed(quoteId)).toBe('2.00');
      expect(await settle('form-back', `${quoteId},trr_fb,pyr_fb1,-2.00`)).toMatchObject({ matched: 0 });
      expect(await reversed(quoteId)).toBe('2.00');
      expect(await settle('form-back', `${quoteId},trr_fb,pyr_fb2,-2.00`)).toMatchObject({ matched: 1 });
      expect([await reversed(quoteId), await differences()]).toEqual(['4.00', []]);
    });

    test('and the refunded price counts from either', async () => {
      const { quoteId } = await begin('form-price', 'settlement_file');
      await settle('form-price', `${quoteId},tr_fp,py_fp,7.00`, `${quoteId},trr_fp,,-2.00`);
      const text = `quote_id,transfer,payment,amount,refunded\n${quoteId},trr_fp,pyr_fp,-2.00,3.00\n`;
      await world.database.transaction((tx) => importSettlement(tx, world, { name: 'price.csv', text }, 'form-price'));
      const { recorded } = await world.database.transaction((tx) => recordReversals(tx, world, '2026-07' as Month));
      expect(recorded.filter((each) => each.quote_id === quoteId)).toMatchObject([
        { spotPrice: '-3.00', partnerCut: '-1.00', invoiceAmount: '-2.00' },
      ]);
    });
  });

  test('lines of files imported while the processor was the source are recorded once the files are the source', async () => {
    const { quoteId } = await begin('unread', 'processor');
    const line = `${quoteId},tr_unread,py_unread,7.00`;
    expect(await settle('unread', line)).toMatchObject({ recorded: 1, matched: 0 });
    expect(await found(quoteId)).toMatchObject({ status: 'missing' });
    expect(await sourceIs('unread', 'settlement_file')).toMatchObject({ updated: 1 });
    expect(await settle('unread', line)).toMatchObject({ recorded: 0, duplicates: 1, matched: 1 });
    expect(await settle('unread', line)).toMatchObject({ recorded: 0, duplicates: 1, matched: 0 });
    expect(await found(quoteId)).toBeUndefined();
  });
});

describe('another connected account', () => {
  const connected = (id: string, account: string, from?: string) =>
    partner({
      ...{ partner_id: id, arrangement: 'connected_account', connected_account_id: account },
      ...{ merchant_of_record: 'platform', split: 'real_time' },
      ...(from === undefined ? {} : { arrangement_from: from }),
    });
  const kept = (id: string) =>
    world.sql(
      `SELECT from_month, connected_account_id AS account FROM partner_arrangements WHERE partner_id = $1 ORDER BY 1`,
      [id],
    );
  const refused = (reason: RegExp) => ({
    code: 'arrangement_change',
    facts: { partner_id: expect.any(String) as string, reason: expect.stringMatching(reason) as string },
  });

  test('does not replace an account with rows, nor begin in a month with rows', async () => {
    await world.partners([connected('d', 'acct_d1')]);
    await world.rows([quote({ partner_id: 'd', quote_id: 'q-d1' }), quote({ partner_id: 'd', quote_id: 'q-d2' })]);
    await take('acct_d1', share(700, AT, { quote_id: 'q-d1' }));
    await expect(world.partners([connected('d', 'acct_d2')])).rejects.toMatchObject(
      refused(
        /acct_d2 cannot replace acct_d1, because the partner has ledger rows up to 2026-07\. Set "arrangement_from"/,
      ),
    );
    await expect(world.partners([connected('d', 'acct_d2', '2026-07')])).rejects.toMatchObject(
      refused(/2026-07 is not after 2026-07, which has ledger rows/),
    );
    expect(await kept('d')).toEqual([{ from_month: '0001-01', account: 'acct_d1' }]);
  });

  test('follows from a month without rows, and later money on the old one is matched', async () => {
    expect(await world.partners([connected('d', 'acct_d2', '2026-09')])).toMatchObject({ updated: 1 });
    expect(await world.partners([connected('d', 'acct_d2', '2026-09')])).toMatchObject({ unchanged: 1 });
    expect(await kept('d')).toEqual([
      { from_month: '0001-01', account: 'acct_d1' },
      { from_month: '2026-09', account: 'acct_d2' },
    ]);
    expect(await take('acct_d1', share(700, AT, { quote_id: 'q-d2' }))).toMatchObject({ matched: 1 });
    expect([await found('q-d1'), await found('q-d2'), await differences()]).toEqual([undefined, undefined, []]);
    const read = (await world.database.reading((tx) => readConnectedAccounts(tx))).map(({ account }) => account);
    expect(read).toEqual(expect.arrayContaining(['acct_d1', 'acct_d2']));
  });

  test('that is planned and not used can be replaced', async () => {
    await world.partners([connected('d', 'acct_d3', '2026-09')]);
    expect((await kept('d')).at(-1)).toEqual({ from_month: '2026-09', account: 'acct_d3' });
  });

  test('is not used for a file imported before it begins', async () => {
    const now = { ...connected('f', 'acct_f1'), balance_transactions_from: 'settlement_file' };
    await world.partners([now]);
    await world.rows([quote({ partner_id: 'f', quote_id: 'q-f' })]);
    await world.partners([{ ...now, connected_account_id: 'acct_f2', arrangement_from: '2026-09' }]);
    expect(await settle('f', 'q-f,tr_f,,7.00')).toMatchObject({ matched: 1 });
    expect(await world.sql(`SELECT account FROM balance_transactions WHERE transfer = 'tr_f'`)).toEqual([
      { account: 'acct_f1' },
    ]);
  });

  const accountOf = (transfer: string) =>
    world.sql(`SELECT account FROM balance_transactions WHERE transfer = $1`, [transfer]);

  test('leaves late lines about earlier quotes to the old one', async () => {
    const old = { ...connected('g', 'acct_g1'), balance_transactions_from: 'settlement_file' };
    await world.partners([old]);
    await world.rows([quote({ partner_id: 'g', quote_id: 'q-g' })]);
    await world.partners([{ ...old, connected_account_id: 'acct_g2', arrangement_from: '2026-08' }]);
    await world.rows([quote({ partner_id: 'g', quote_id: 'q-g2', accepted_at: '2026-08-02T12:00:00Z' })]);
    expect(await settle('g', 'q-g,tr_g,,7.00', 'q-g2,tr_g2,,7.00', 'q-nobody,tr_g3,,7.00')).toMatchObject({
      matched: 2,
    });
    expect(await accountOf('tr_g')).toEqual([{ account: 'acct_g1' }]);
    expect(await accountOf('tr_g2')).toEqual([{ account: 'acct_g2' }]);
    // A line of an unknown quote belongs to the account of its own month.
    expect(await accountOf('tr_g3')).toEqual([{ account: 'acct_g1' }]);
    expect([await found('q-g'), await differences()]).toEqual([undefined, []]);
  });

  test('keeps its own source: a late line counts for the account of the files and not for the one that is read', async () => {
    const old = { ...connected('h', 'acct_h1'), balance_transactions_from: 'settlement_file' };
    await world.partners([old]);
    await world.rows([quote({ partner_id: 'h', quote_id: 'q-h' })]);
    await world.partners([{ ...connected('h', 'acct_h2'), arrangement_from: '2026-08' }]);
    expect(await settle('h', 'q-h,tr_h,,7.00')).toMatchObject({ recorded: 1, matched: 1 });
    expect(await accountOf('tr_h')).toEqual([{ account: 'acct_h1' }]);
    await world.partners([connected('i', 'acct_i1')]);
    await world.rows([quote({ partner_id: 'i', quote_id: 'q-i' })]);
    await world.partners([{ ...old, partner_id: 'i', connected_account_id: 'acct_i2', arrangement_from: '2026-08' }]);
    expect(await settle('i', 'q-i,tr_i,,7.00')).toMatchObject({ recorded: 1, matched: 0 });
    expect(await accountOf('tr_i')).toEqual([]);
  });

  test('gets the share of a later requote, and the old one the share of its quote', async () => {
    const old = { ...connected('j', 'acct_j1'), balance_transactions_from: 'settlement_file' };
    const first = quote({ partner_id: 'j', quote_id: 'q-j' });
    await world.partners([old]);
    await world.rows([first]);
    await world.partners([{ ...old, connected_account_id: 'acct_j2', arrangement_from: '2026-08' }]);
    await world.rows([requote(first, { accepted_at: '2026-08-02T12:00:00Z', requote_id: 'rq-j' })]);
    const text = 'quote_id,requote_id,transfer,payment,amount\nq-j,,tr_j1,,7.00\nq-j,rq-j,tr_j2,,3.00\n';
    await world.database.transaction((tx) => importSettlement(tx, world, { name: 'j.csv', text }, 'j'));
    expect(await accountOf('tr_j2')).toEqual([{ account: 'acct_j2' }]);
  });

  test('does not count balance transactions twice that were imported for the wrong account', async () => {
    await world.partners([connected('k', 'acct_k1')]);
    await world.rows([quote({ partner_id: 'k', quote_id: 'q-k' })]);
    await world.partners([connected('k', 'acct_k2', '2026-08')]);
    const moved = share(700, AT, { quote_id: 'q-k' });
    expect(await take('acct_k2', moved)).toMatchObject({ matched: 1 });
    expect(await take('acct_k1', moved)).toMatchObject({ recorded: 1, matched: 0 });
    const elsewhere = { status: 'other_account', open: '0.00' };
    expect([await found('q-k'), await unknownOf('acct_k1'), await differences()]).toEqual([elsewhere, 0, []]);
  });

  test('does not replace an account with balance transactions', async () => {
    await world.partners([connected('m', 'acct_m1')]);
    await take('acct_m1', share(700, '2026-06-01T12:00:00Z', { quote_id: 'q-of-nobody' }));
    await expect(world.partners([connected('m', 'acct_m2')])).rejects.toMatchObject(
      refused(/acct_m2 cannot replace acct_m1, because acct_m1 already has balance transactions/),
    );
    expect(await world.partners([connected('m', 'acct_m2', '2026-08')])).toMatchObject({ updated: 1 });
  });

  test('replaces an unused account', async () => {
    await world.partners([connected('u', 'acct_u1')]);
    expect(await world.partners([connected('u', 'acct_u2')])).toMatchObject({ updated: 1 });
    expect(await kept('u')).toEqual([{ from_month: '0001-01', account: 'acct_u2' }]);
  });
});
