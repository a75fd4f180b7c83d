/** Findings for bank files for which reminders wait. */
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { readDebts, readKnownAccounts } from '#payments/debts';
import { plural, workingDaysFrom } from '#values';
import { Finding, FindingQuestion, toDo } from './finding.ts';

/** The working days that a dunning level may wait before a finding reports it. */
const WAITING_DAYS = 3;

export async function readAwaitedFiles(
  tx: Transaction,
  { settings, scope, today }: Pick<FindingQuestion, 'scope' | 'today'> & { readonly settings: Settings },
): Promise<Finding[]> {
  const isLate = (since: string) => workingDaysFrom(since, WAITING_DAYS) <= today;
  // The debts are read only if an account is behind.
  const behind = (await readKnownAccounts(tx, settings)).filter(({ known_to }) => known_to < today);
  const debts = scope !== null || behind.length === 0 ? [] : await readDebts(tx, { settings, day: today });
  return behind.flatMap(({ account, reported_to }) => {
    const waiting = debts.filter(({ waits_for }) => waits_for.some((each) => each.account === account));
    const [since = today] = waiting.map((each) => each.waits_since ?? today).sort();
    if (!isLate(since)) return [];
    const invoices = plural(waiting.length, 'invoice');
    const reason = `the reminders of ${invoices} wait for the bank file of ${account}, reported through ${reported_to}`;
    return [
      {
        ...{ item: `bank_file:${account}`, kind: 'receipts', state: 'bank file missing', tone: 'warn', title: account },
        ...{ partners: [], money: null, since, reason, count: waiting.length },
        urgent: `Since ${since}, ${reason}. If it no longer reports, list it in ended_bank_accounts of settings.json.`,
        remedies: [
          toDo('Import the bank file', 'payment.import'),
          toDo(
            'Remind without it',
            'reminder.record',
            { without: [account], reason: 'nothing to report' },
            'if the bank has nothing to report',
          ),
        ],
      },
    ];
  });
}
