/**
 * What to do about something, as data. The command line writes it as a command that can be copied (cli/remedies.ts), the
 * console as a button (console/remedies.tsx), an e-mail as a link. Refusals, findings and reports carry it. Its label is in the
 * imperative: `Release it`.
 */
export type Remedy = ToDo | ToRun;

interface RemedyLabel {
  readonly label: string;
  /** When it applies, if not always: `if they had no sales`. */
  readonly when?: string | undefined;
}

/** An action and the known part of its input. A test compares both with the action. */
export interface ToDo extends RemedyLabel {
  readonly action: string;
  readonly input: KnownInput;
}

/** A command that is not an action: it only reads (a console page may show the same) or serves the machine. */
export interface ToRun extends RemedyLabel {
  /** Without the name of the program: `deliver`. */
  readonly command: string;
  readonly page?: string;
  /** Only users who may read the whole ledger see the page. */
  readonly ofAll?: true;
}

/** The known part of an action's input. A field with several values contains all of them. A flag is `yes`. */
export type KnownInput = Readonly<Record<string, string | readonly string[]>>;

export const toDo = (label: string, action: string, input: KnownInput = {}, when?: string): ToDo => ({
  ...{ label, action, input },
  ...(when !== undefined && { when }),
});
export const toRun = (label: string, command: string, page?: string): ToRun => ({
  ...{ label, command },
  ...(page !== undefined && { page }),
});

/** Renders and sends waiting documents. */
export const DELIVER = toRun('Deliver it', 'deliver');

/** Commands and pages to look something up. */
export const SEE = {
  documents: toRun('See all documents', 'invoice list', '/console/invoices'),
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

/** The page of an action with the known part of its input. */
export const actionAddress = ({ action, input }: Pick<ToDo, 'action' | 'input'>): string => {
  const values = Object.entries(input).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const known = new URLSearchParams(values).toString();
  return `/console/actions/${action}${known === '' ? '' : `?${known}`}`;
};
