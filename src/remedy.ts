/**
 * A remedy in the form of data. The command line shows it as a command to copy (cli/remedies.ts), the console as a
 * button (console/remedies.tsx), and an e-mail as a link. The label of a remedy is in the imperative: `Release it`.
 */
export type Remedy = ToDo | ToRun;

interface RemedyLabel {
  readonly label: string;
  /** The condition under which the remedy applies, such as `if they had no sales`. */
  readonly when?: string | undefined;
}

/** An action with known input. A test compares the action and its input with the action's definition. */
export interface ToDo extends RemedyLabel {
  readonly action: string;
  readonly input: KnownInput;
}

/**
 * A command that is not an action: the command only reads, or it maintains the installation. If the console has a page
 * for such a command, the page shows the same.
 */
export interface ToRun extends RemedyLabel {
  /** The command without the program's name, such as `deliver`. */
  readonly command: string;
  readonly page?: string;
  /** The page is only for users who may read the whole ledger. */
  readonly ofAll?: true;
}

/**
 * The values of an action's input that are known. If a field has several values, an array contains them. The value of a
 * flag is `yes`.
 */
export type KnownInput = Readonly<Record<string, string | readonly string[]>>;

export const toDo = (label: string, action: string, input: KnownInput = {}, when?: string): ToDo => ({
  ...{ label, action, input },
  ...(when !== undefined && { when }),
});
export const toRun = (label: string, command: string, page?: string): ToRun => ({
  ...{ label, command },
  ...(page !== undefined && { page }),
});

/** Joins the remedies that differ only in the field `field` to one, with all its values. */
export function sameRemedies(remedies: readonly Remedy[], field: string): Remedy[] {
  const joined = new Map<string, Remedy>();
  for (const remedy of remedies) {
    if (!('action' in remedy)) {
      joined.set(JSON.stringify(remedy), remedy);
      continue;
    }
    const { [field]: value = [], ...others } = remedy.input;
    const key = JSON.stringify({ ...remedy, input: others });
    const found = joined.get(key);
    const known = found !== undefined && 'action' in found ? (found.input[field] ?? []) : [];
    const values = [...new Set([known, value].flat())];
    joined.set(key, values.length < 2 ? remedy : { ...remedy, input: { ...others, [field]: values } });
  }
  return [...joined.values()];
}

export const DELIVER = toRun('Deliver it', 'deliver');

/** Commands and pages with which people look something up. */
export const SEE = {
  documents: toRun('See all documents', 'invoice list', '/console/invoices'),
  held: toRun('See all held rows', 'ledger held', '/console/queue/rows'),
  rows: toRun('See the rows', 'ledger rows', '/console/rows'),
  requested: toRun('See all requested reversals', 'reversal list --status requested', '/console/queue/reversals'),
  open: toRun('See what is open', 'invoice list --status open', '/console/invoices?status=open'),
  payments: toRun('See all payments', 'payment list', '/console/payments/all'),
  exceptions: toRun('See all payment exceptions', 'payment exceptions', '/console/payments'),
  partners: toRun('See all partners', 'partner list', '/console/partners'),
  approvals: toRun('See all requests', 'approval list', '/console/approvals'),
  work: toRun('See the work queue', 'work list', '/console/queue'),
  disputes: toRun('See all open disputes', 'dispute list', '/console/queue?queue=disputes'),
  status: { ...toRun('See the status', 'status', '/console/close'), ofAll: true },
  users: { ...toRun('See all users', 'user list', '/console/settings/users'), ofAll: true },
  clients: { ...toRun('See all clients', 'client list', '/console/settings/clients'), ofAll: true },
  differences: { ...toRun('See what differs', 'verify', '/console/audit/checks'), ofAll: true },
} as const satisfies Readonly<Record<string, ToRun>>;

export const seeDocument = (label: string, number: string): ToRun =>
  toRun(label, `invoice show ${number}`, `/console/invoices/${number}`);

export const seeMonthOfAccounts = (label: string, month: string): ToRun =>
  toRun(label, `reconcile ${month}`, `/console/accounts?month=${month}`);

export const actionAddress = ({ action, input }: Pick<ToDo, 'action' | 'input'>) => {
  const values = Object.entries(input).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const known = new URLSearchParams(values).toString();
  return `/console/actions/${action}${known === '' ? '' : `?${known}`}`;
};
