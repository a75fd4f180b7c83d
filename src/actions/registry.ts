/** The actions by name. Each file is loaded on demand, because loading all files takes half a second. */
import { NamesIn, names } from '#text';
import { Action } from './action.ts';

/** The files with the names of their actions. */
const FILES = [
  [() => import('./feed.ts'), 'feed.state feed.accept'],
  [() => import('./close.ts'), 'month.close'],
  [() => import('./books.ts'), 'books.close'],
  [() => import('./archive.ts'), 'month.archive month.unarchive'],
  [() => import('./general-ledger.ts'), 'gl.export'],
  [() => import('./ledger.ts'), 'checkpoint.take ledger.pause'],
  [() => import('./invoice/void.ts'), 'invoice.void'],
  [() => import('./invoice/rerun.ts'), 'invoice.rerun'],
  [() => import('./invoice/credit.ts'), 'invoice.credit'],
  [() => import('./invoice/write-off.ts'), 'invoice.write_off invoice.write_off_undone'],
  [() => import('./invoice/hold.ts'), 'invoice.hold invoice.release'],
  [() => import('./invoice/resend.ts'), 'invoice.resend'],
  [() => import('./invoice/delivered.ts'), 'invoice.delivered'],
  [() => import('./invoice/link.ts'), 'invoice.link_rotate invoice.link_revoke'],
  [() => import('./payment/record.ts'), 'payment.record'],
  [() => import('./payment/apply.ts'), 'payment.apply payment.unapply'],
  [() => import('./payment/reverse.ts'), 'payment.reverse'],
  [() => import('./payment/payer.ts'), 'payment.assign payment.forget_account'],
  [() => import('./payment/payout.ts'), 'payment.settle'],
  [() => import('./payment/exception.ts'), 'payment.close_exception'],
  [() => import('./bank.ts'), 'bank.book bank.unbook'],
  [() => import('./credit.ts'), 'credit.apply credit.unapply credit.refund credit.refund_returned'],
  [() => import('./dispute.ts'), 'dispute.open dispute.close'],
  [() => import('./email.ts'), 'email.resend email.dismiss'],
  [() => import('./delivery.ts'), 'delivery.retry'],
  [() => import('./remind.ts'), 'reminder.record'],
  [() => import('./reminder-pause.ts'), 'reminder.pause reminder.resume'],
  [() => import('./statement.ts'), 'statement.send'],
  [() => import('./work/assign.ts'), 'work.assign'],
  [() => import('./settings.ts'), 'settings.adopt'],
  [() => import('./processor/match.ts'), 'processor.match processor.unmatch processor.close'],
  [() => import('./processor/reverse.ts'), 'processor.reverse processor.reverse_month'],
  [() => import('./processor/bill.ts'), 'shares.bill'],
  [() => import('./client.ts'), 'client.create client.rotate client.revoke'],
  [() => import('./webhook.ts'), 'webhook.set webhook.rotate webhook.resume webhook.remove'],
  [() => import('./user.ts'), 'user.invite user.link user.role user.deactivate user.sign_out'],
  [() => import('./erase.ts'), 'person.erase'],
  [() => import('./partner.ts'), 'partner.import'],
  [() => import('./partner-change.ts'), 'partner.change'],
  [() => import('./rows.ts'), 'ledger.import'],
  [() => import('./held.ts'), 'rows.release rows.discard reversal.grant reversal.refuse rows.separate'],
  [() => import('./reverse.ts'), 'rows.reverse'],
  [() => import('./opening.ts'), 'opening.import opening.reverse'],
  [() => import('./payment/import.ts'), 'payment.import'],
  [() => import('./payment/events.ts'), 'payment.events'],
  [() => import('./processor/import.ts'), 'processor.import'],
  [() => import('./mail.ts'), 'email.bounces'],
] as const satisfies readonly (readonly [load: () => Promise<object>, names: string])[];

export type ActionName = NamesIn<(typeof FILES)[number][1]>;

export const ACTION_NAMES: readonly ActionName[] = names(...FILES.map(([, actions]) => actions));

export async function loadAction(name: ActionName): Promise<Action> {
  const [load] = FILES.find(([, actions]) => actions.split(' ').includes(name)) ?? [];
  const action = Object.values((await load?.()) ?? {}).find((each: Partial<Action>) => each.name === name);
  if (action === undefined) throw new Error(`there is no action ${name}`);
  return action as Action;
}

/**
 * Actions that approval rules cannot name, because jobs and servers do them automatically, because they must not wait,
 * or because the rule of another action applies (`ruledAs`).
 */
const NEVER_APPROVED: readonly ActionName[] = names(
  'checkpoint.take delivery.retry reminder.record email.bounces payment.events processor.import ledger.pause',
  'user.sign_out work.assign partner.change',
);

export const APPROVABLE_ACTIONS = ACTION_NAMES.filter((name) => !NEVER_APPROVED.includes(name));
