/**
 * How the balance of an account can be paid: with today's bank details, or on the payment pages of its open invoices.
 */
import { Instructions, instructionsFor, sameInstructions } from '#config/instructions';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { readPrinted } from './account-statement.sql.ts';
import { CurrencyAccount } from './account-statement.ts';
import { OpenItem } from './open-items.sql.ts';

export type AccountPayment = Readonly<{
  currency: string;
  instructions: Instructions | null;
  changed: boolean;
}>;

export type HowToPay = Readonly<{
  accounts: readonly AccountPayment[];
  links: ReadonlyMap<string, string>;
}>;

export async function readHowToPay(
  tx: Transaction,
  settings: Pick<Settings, 'instructions'>,
  {
    accounts,
  }: {
    readonly accounts: readonly (Pick<CurrencyAccount, 'currency' | 'closing'> &
      Readonly<{ open_items: readonly Pick<OpenItem, 'document' | 'document_id'>[] }>)[];
  },
): Promise<HowToPay> {
  const owing = accounts.filter(({ closing }) => Number(closing) > 0);
  const invoices = owing.flatMap(({ open_items }) => open_items.filter(({ document }) => document === 'invoice'));
  const printed = await readPrinted(tx, { documentIds: invoices.map(({ document_id }) => document_id) });
  return {
    accounts: owing.map(({ currency }) => {
      const instructions = instructionsFor(settings, currency);
      const kept = printed.flatMap((each) => (each.currency === currency ? (each.instructions ?? []) : []));
      const changed = kept.some((each) => !sameInstructions(each, instructions));
      return { currency, instructions: instructions ?? null, changed };
    }),
    links: new Map(printed.flatMap(({ number, url }) => (url === null ? [] : [[number, url]]))),
  };
}
