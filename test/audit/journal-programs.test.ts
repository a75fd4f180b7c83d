/** Journals on which hledger, ledger or beancount would stumble: the smallest of each kind. */
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { openBooks } from '../payments/books.ts';
import { JOURNAL_PROGRAMS, judgeJournal, runProgram } from '../support/journal-programs.ts';
import { needs } from '../support/tools.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';
import { month, textJournals } from './books.ts';

/** One sale and its full reversal in one month: what a new partner does to try it out. */
async function netZero(): Promise<World> {
  const world = await openWorld();
  await world.partners([partner()]);
  const amounts = { spotPrice: '12.50', partnerCut: '3.75', invoiceAmount: '8.75' };
  const back = { spotPrice: '-12.50', partnerCut: '-3.75', invoiceAmount: '-8.75' };
  const sale = quote(amounts);
  await world.rows([sale, reversal(sale, back)]);
  await world.close();
  return world;
}

/** Cash of a payer whom nobody knows, beside a partner's, and money that is booked to an account and to one below it. */
async function ofUnknownPayers(): Promise<World> {
  const books = await openBooks();
  const lines = ['61.10', '5.00', '7.00'].map(
    (amount, at) => `2026-10-14,${amount},USD,1,B-${at},thanks,Somebody Else,\n`,
  );
  await books.bankText(
    'strangers.csv',
    `date,amount,currency,account,bank_reference,text,payer,payer_account\n${lines.join('')}`,
  );
  await books.record({ amount: '100.00', partnerId: 'p-1', receivedOn: '2026-10-14' });
  const unknown = (await books.payments()).filter(({ partner_id }) => partner_id === null);
  await books.reverse({ paymentId: unknown[1]?.payment_id as number, kind: 'other', account: 'income:interest' });
  await books.reverse({ paymentId: unknown[2]?.payment_id as number, kind: 'other', account: 'income:interest:usd' });
  books.at('2026-11-02T15:00:00Z');
  await books.close();
  return books;
}

describe.each([
  ['rows of a month that add up to zero', '2026-07', netZero],
  ['unapplied cash of an unknown payer beside a partner', '2026-10', ofUnknownPayers],
] as const)('%s', (_name, of, open) => {
  let world: World;
  let journals: Map<string, string>;
  beforeAll(async () => {
    world = await open();
    journals = await textJournals(world, month('2026-07'), month(of), join(world.home, 'journal'));
  }, 120_000);
  afterAll(() => world.end());

  test.for(JOURNAL_PROGRAMS)('$program accepts the journal', (judge, context) => {
    needs(judge.program, context);
    expect(judgeJournal(judge, journals.get(judge.format) as string)).toBe('');
  });

  test.for([...new Set(JOURNAL_PROGRAMS.map(({ format }) => format))])(
    'verify.py accepts the %s pack',
    (format, context) => {
      needs('python3', context);
      const program = join(packageRoot, 'templates/export/verify.py');
      expect(runProgram('python3', [program, dirname(journals.get(format) as string), '--allow'])).toMatchObject({
        status: 0,
      });
    },
  );
});
