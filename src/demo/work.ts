import { join } from 'node:path';
import { packageRoot } from '#package';
import { changeSettings } from './link.ts';
import { FINANCE } from './people.ts';

const DATA = join(packageRoot, 'src', 'demo', 'data');

/**
 * Fills the work queue of November. October is due, but one partner's rows are missing. There are three receipts: one
 * states its invoice, one pays three invoices less a fee, and one has an unknown payer. One invoice is disputed and
 * another is on hold.
 */
export function leaveWork(home: string, reckoner: (...args: string[]) => string) {
  const receipts = JSON.parse(reckoner('--json', 'payment', 'list')) as unknown[];
  if (receipts.length > 0) return;
  const finance = (...args: string[]) => reckoner('--by', FINANCE, ...args);
  finance('ledger', 'import', join(DATA, '2026-10.csv'));
  finance('payment', 'import', join(DATA, '2026-10-bank.csv'));
  // A reader of the README may be away for hours.
  const console = { idle_minutes: 720 };
  // The largest shortfall that finance accepts as bank charges.
  const loss_rates = { not_due: '0.5', days_1_30: '2', days_31_60: '10', days_61_90: '25', over_90: '60' };
  changeSettings(home, { console, small_difference: { USD: '25.00', EUR: '10.00' }, loss_rates });
  finance('dispute', 'open', 'INV-2026-000003', '--reason', 'Two races were canceled');
  finance('invoice', 'hold', 'INV-2026-000013', '--reason', "Waiting for September's credit");
}
