/** The journal in a pack as text: every entry by date, with opening balances and the balances at each month's end. */
import { Transaction } from '#database/transaction';
import { Amount } from '#money';
import { lastDay, Month } from '#month';
import { View } from './columns.sql.ts';
import { JournalEntry, JournalFormat, Posting } from './journal-formats.ts';
import { readAccounts, readJournal, readOpening, Sum } from './views.sql.ts';

const detailOf = ({ control, account }: { control: string; account: string }) => account.slice(control.length + 1);

const posting = (sum: Sum) => ({
  control: sum.control,
  detail: detailOf(sum),
  currency: sum.currency,
  amount: sum.amount,
});

/** Writes the view `journal` for an accounting program. Returns the number of entries. */
export async function writeJournalText(
  tx: Transaction,
  view: View,
  format: JournalFormat,
  { from, to, title }: { from: Month; to: Month; title: string },
  write: (text: string) => Promise<void>,
) {
  const accounts = await readAccounts(tx, { to });
  const controls = new Map(accounts.map(({ account, control }) => [account, control]));
  await write(format.head(title, accounts.map(posting)));
  const opening = (await readOpening(tx, { from })).map(posting);
  if (opening.length > 0) await write(format.opening(`${from}-01`, opening));

  const balances = new Map<string, { posting: Posting; amount: Amount }>();
  const add = (each: Posting) => {
    const key = `${each.control}\t${each.detail}\t${each.currency}`;
    const amount = Amount.of(each.amount, each.currency);
    balances.set(key, { posting: each, amount: balances.get(key)?.amount.plus(amount) ?? amount });
  };
  opening.forEach(add);
  const close = async (month: Month) => {
    const asserted = [...balances.values()].map((each) => ({ ...each.posting, amount: each.amount.toString() }));
    if (asserted.length > 0) await write(format.closing(lastDay(month), asserted));
  };

  let entries = 0;
  let month: Month | undefined;
  let open: (JournalEntry & { postings: Posting[] }) | undefined;
  const finish = async () => {
    if (open === undefined) return;
    entries += 1;
    await write(format.entry(open));
    open = undefined;
  };
  for await (const lines of readJournal(tx, view)) {
    for (const { account, currency, amount, ...fact } of lines) {
      const own = fact.entry_on.slice(0, 7) as Month;
      const line = posting({ control: controls.get(account) ?? account, account, currency, amount });
      if (open?.fact !== fact.fact || open.log_no !== fact.log_no) {
        await finish();
        if (month !== undefined && month !== own) await close(month);
        open = { ...fact, postings: [] };
      }
      month = own;
      open.postings.push(line);
      add(line);
    }
  }
  await finish();
  await close(month ?? from);
  return entries;
}
