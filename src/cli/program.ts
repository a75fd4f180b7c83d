/** The command line. Each file of commands/ defines the arguments, options, help and action of its commands. */
import { Command, CommanderError, Help, type Option } from 'commander';
import { loadAction } from '../actions/registry.ts';
import { EXIT, Refusal, refuse } from '../errors/refusals.ts';
import { commit, packageVersion } from '../package.ts';
import { actionCommand } from './action-command.ts';
import type { Definition, Handler } from './define.ts';
import { listCommand } from './list-command.ts';
import { openOutput, reportError } from './output.ts';

type Module = Promise<{ readonly define: Definition }>;

/** In the order of --help. Only the named command's file is loaded, because loading all takes a second. */
export const COMMANDS: Readonly<Record<string, readonly [summary: string, load: () => readonly Module[]]>> = {
  init: ['Create the home and the database; safe to repeat', () => [import('./commands/init.ts')]],
  migrate: ['Migrate the database to this version', () => [import('./commands/migrate.ts')]],
  partner: [
    'Import and show partners and their changes',
    () => [
      actionCommand(loadAction('partner.import')),
      listCommand(import('../lists/partners.ts').then((lists) => lists.partners)),
      import('./commands/partner.ts'),
      listCommand(import('../lists/changes.ts').then((lists) => lists.partnerChanges)),
    ],
  ],
  settings: [
    'Show how settings.json changed',
    () => [listCommand(import('../lists/changes.ts').then((lists) => lists.settingsChanges))],
  ],
  instructions: ['Put our bank details in force', () => [actionCommand(loadAction('instructions.adopt'))]],
  ledger: [
    'Import ledger rows, and decide rows that are held or doubled',
    () => [
      import('./commands/ledger.ts'),
      listCommand(import('../lists/held-rows.ts').then(({ heldRows }) => heldRows)),
      actionCommand(loadAction('rows.release')),
      actionCommand(loadAction('rows.discard')),
      listCommand(import('../lists/doubled-rows.ts').then((lists) => lists.doubledRows)),
      actionCommand(loadAction('rows.separate')),
    ],
  ],
  reversal: [
    'List reversals, and grant or refuse those that the terms do not cover',
    () => [
      listCommand(import('../lists/reversals.ts').then((lists) => lists.reversals)),
      actionCommand(loadAction('reversal.grant')),
      actionCommand(loadAction('reversal.refuse')),
    ],
  ],
  feed: [
    "State the totals of partners' months, compare them, and accept what is in doubt",
    () => [
      actionCommand(loadAction('feed.state')),
      actionCommand(loadAction('feed.accept')),
      listCommand(import('../lists/feeds.ts').then((lists) => lists.feeds)),
    ],
  ],
  opening: [
    'Import open items from the previous system',
    () => [
      actionCommand(loadAction('opening.import')),
      actionCommand(loadAction('opening.reverse')),
      import('./commands/opening.ts'),
    ],
  ],
  close: ['Close months: issue and deliver their documents', () => [import('./commands/close.ts')]],
  books: ['Close the books of a month', () => [import('./commands/books.ts')]],
  archive: ['Move the rows of old months to a cold store', () => [actionCommand(loadAction('month.archive'))]],
  unarchive: ['Bring the rows of an archived month back', () => [actionCommand(loadAction('month.unarchive'))]],
  checkpoint: [
    'Take and list checkpoints of the log; list letters to the auditor',
    () => [
      actionCommand(loadAction('checkpoint.take')),
      import('./commands/checkpoint.ts'),
      listCommand(import('../lists/checkpoints.ts').then((lists) => lists.checkpoints)),
    ],
  ],
  deliver: ['Deliver issued documents and other pending e-mails', () => [import('./commands/deliver.ts')]],
  invoice: [
    'Show, correct and resend documents',
    () => [
      listCommand(import('../lists/invoices.ts').then(({ invoices }) => invoices)),
      import('./commands/invoice/show.ts'),
      import('./commands/invoice/pdf.ts'),
      actionCommand(loadAction('invoice.rerun')),
      actionCommand(loadAction('invoice.resend')),
      actionCommand(loadAction('invoice.void')),
      actionCommand(loadAction('invoice.credit')),
      import('./commands/invoice/write-off.ts'),
      actionCommand(loadAction('invoice.hold')),
      actionCommand(loadAction('invoice.release')),
      import('./commands/invoice/link.ts'),
    ],
  ],
  payment: [
    'Record, import, apply and reverse payments',
    () => [
      actionCommand(loadAction('payment.record')),
      actionCommand(loadAction('payment.import')),
      listCommand(import('../lists/payments.ts').then(({ payments }) => payments)),
      actionCommand(loadAction('payment.apply')),
      actionCommand(loadAction('payment.unapply')),
      actionCommand(loadAction('payment.assign')),
      listCommand(import('../lists/payer-accounts.ts').then((lists) => lists.payerAccounts)),
      actionCommand(loadAction('payment.forget_account')),
      actionCommand(loadAction('payment.reverse')),
      listCommand(import('../lists/payouts.ts').then((lists) => lists.payouts)),
      actionCommand(loadAction('payment.settle')),
      actionCommand(loadAction('payment.events')),
      import('./commands/payment/exceptions.ts'),
      actionCommand(loadAction('payment.close_exception')),
    ],
  ],
  bank: [
    "List bank lines, and book those that are not customers' money",
    () => [
      listCommand(import('../lists/bank-lines.ts').then(({ bankLines }) => bankLines)),
      actionCommand(loadAction('bank.book')),
      actionCommand(loadAction('bank.unbook')),
    ],
  ],
  credit: [
    'Apply open credit to invoices, unapply it, refund it',
    () => [
      actionCommand(loadAction('credit.apply')),
      actionCommand(loadAction('credit.unapply')),
      import('./commands/credit.ts'),
    ],
  ],
  dispute: [
    'Open, close and list invoice disputes',
    () => [
      actionCommand(loadAction('dispute.open')),
      actionCommand(loadAction('dispute.close')),
      listCommand(import('../lists/disputes.ts').then((lists) => lists.disputes)),
    ],
  ],
  email: [
    'List, resend and dismiss e-mails of every kind',
    () => [
      listCommand(import('../lists/emails.ts').then((lists) => lists.emails)),
      actionCommand(loadAction('email.resend')),
      actionCommand(loadAction('email.dismiss')),
    ],
  ],
  mail: [
    'Send a test message, and record returned e-mails',
    () => [actionCommand(loadAction('email.bounces')), import('./commands/mail.ts')],
  ],
  remind: ['Send payment reminders (dunning); safe to repeat', () => [import('./commands/remind.ts')]],
  reminder: [
    'Pause and resume the reminders of a partner',
    () => [actionCommand(loadAction('reminder.pause')), actionCommand(loadAction('reminder.resume'))],
  ],
  statement: ['E-mail account statements to partners', () => [actionCommand(loadAction('statement.send'))]],
  report: [
    'Show a report: aging, account statement, trial balance, close, coverage, tax, cash application',
    () => [
      import('./commands/report/aging.ts'),
      import('./commands/report/statement.ts'),
      import('./commands/report/trial-balance.ts'),
      import('./commands/report/bank-reconciliation.ts'),
      import('./commands/report/close.ts'),
      import('./commands/report/coverage.ts'),
      import('./commands/report/tax.ts'),
      listCommand(import('../lists/cash-application.ts').then((lists) => lists.cashApplication)),
    ],
  ],
  split: ['Plan the processor requests of connected accounts', () => [import('./commands/split.ts')]],
  processor: [
    'Import and match balance transactions',
    () => [
      actionCommand(loadAction('processor.import')),
      import('./commands/processor/poll.ts'),
      actionCommand(loadAction('processor.match')),
      actionCommand(loadAction('processor.unmatch')),
      actionCommand(loadAction('processor.close')),
      actionCommand(loadAction('processor.reverse')),
    ],
  ],
  reconcile: ['Reconcile a month of connected accounts', () => [import('./commands/reconcile.ts')]],
  client: [
    "Manage partners' API credentials",
    () => [
      actionCommand(loadAction('client.create')),
      actionCommand(loadAction('client.rotate')),
      actionCommand(loadAction('client.revoke')),
      listCommand(import('../lists/clients.ts').then((lists) => lists.clients)),
    ],
  ],
  user: [
    'Invite users, and manage their roles and sessions',
    () => [
      actionCommand(loadAction('user.invite')),
      actionCommand(loadAction('user.link')),
      listCommand(import('../lists/users.ts').then((lists) => lists.users)),
      import('./commands/user.ts'),
      actionCommand(loadAction('user.role')),
      actionCommand(loadAction('user.deactivate')),
      listCommand(import('../lists/sessions.ts').then((lists) => lists.sessions)),
      actionCommand(loadAction('user.sign_out')),
    ],
  ],
  erase: ['Erase the personal data of a person', () => [actionCommand(loadAction('person.erase'))]],
  approval: [
    'Approve, reject and list requests for approval',
    () => [
      listCommand(import('../lists/approvals.ts').then((lists) => lists.approvals)),
      import('./commands/approval.ts'),
    ],
  ],
  work: [
    'List and assign items of the work queue',
    () => [
      listCommand(import('../lists/work.ts').then((lists) => lists.work)),
      actionCommand(loadAction('work.assign')),
    ],
  ],
  webhook: [
    "Send partners' events to their servers",
    () => [
      actionCommand(loadAction('webhook.set')),
      actionCommand(loadAction('webhook.rotate')),
      actionCommand(loadAction('webhook.resume')),
      actionCommand(loadAction('webhook.remove')),
      import('./commands/webhook.ts'),
      listCommand(import('../lists/webhooks.ts').then((lists) => lists.webhooks)),
    ],
  ],
  security: [
    'List refused callers and access changes',
    () => [listCommand(import('../lists/security.ts').then((lists) => lists.securityEvents))],
  ],
  serve: ['Serve the HTTP API, payment pages and webhooks', () => [import('./commands/serve.ts')]],
  export: [
    'Export data for auditors, and journals for the general ledger',
    () => [import('./commands/export.ts'), import('./commands/export-gl.ts')],
  ],
  gl: ['List journals exported to the general ledger', () => [import('./commands/gl.ts')]],
  verify: ['Recompute everything from the ledger and compare', () => [import('./commands/verify.ts')]],
  witness: ['Cosign the checkpoints of a log, for auditors', () => [import('./commands/witness.ts')]],
  backup: ['Write the database to one file while it is in use', () => [import('./commands/backup.ts')]],
  restore: ['Load a backup into an empty database and verify it', () => [import('./commands/restore.ts')]],
  drill: ['Restore a backup into a scratch database and verify it', () => [import('./commands/drill.ts')]],
  purge: ['Delete data that is no longer needed, such as old quotes', () => [import('./commands/purge.ts')]],
  pause: [
    'Pause the ledger: nothing is closed, issued, sent or recorded',
    () => [actionCommand(loadAction('ledger.pause'))],
  ],
  resume: ['Resume a paused or restored ledger', () => [import('./commands/resume.ts')]],
  doctor: ['Diagnose the installation', () => [import('./commands/doctor.ts')]],
  status: ['Show months, backlog, failures and the latest jobs', () => [import('./commands/status.ts')]],
};

/** Runs one command line and returns its exit status. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  const wantsJson = argv.slice(2).includes('--json');
  let exit: number = EXIT.done;
  /** commander's output for stdout: the help or the version. */
  const written: string[] = [];
  const program = new Command('reckoner')
    .description('Accounts-receivable subledger and month-end invoicing for sales through partners.')
    .version(commit === '' ? packageVersion : `${packageVersion} (${commit})`)
    .option('--json', 'print one JSON document on stdout; logs go to stderr')
    .option('--by <email>', 'the user who runs this command; the events of the command name this user')
    .configureOutput({ writeOut: (text) => written.push(text), outputError: () => {} })
    .configureHelp({ showGlobalOptions: true, subcommandTerm: termOf, optionDescription: describedOption })
    .exitOverride();
  const handle: Handler =
    (work) =>
    async (...given) => {
      const output = openOutput(wantsJson, program.opts<{ by?: string }>().by ?? null);
      exit = (await work(output, ...(given.slice(0, -1) as never))) ?? EXIT.done;
    };
  for (const [name, [summary, load]] of Object.entries(COMMANDS)) {
    const command = program.command(name).description(summary);
    if (argv.includes(name)) for (const { define } of await Promise.all(load())) define(command, handle);
  }

  try {
    await program.parseAsync(argv as string[]);
    return exit;
  } catch (error) {
    const called = calledCommand(program, argv.slice(2));
    if (!(error instanceof CommanderError)) return reportError(withCommand(error, called), wantsJson);
    if (error.exitCode !== EXIT.done) return reportUsage(error, wantsJson, called);
    const text = written.join('');
    const what = error.code === 'commander.version' ? 'version' : 'help';
    openOutput(wantsJson, null).print({ [what]: text.trimEnd() }, () => text);
    return EXIT.done;
  }
}

/** The command that a command line names, such as `invoice void`, unless it is only a group. */
function calledCommand(program: Command, words: readonly string[]): string | undefined {
  let command = program;
  const path: string[] = [];
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) {
      if (word.startsWith('-')) continue;
      // A later word is an argument, an earlier one the value of a global option.
      if (path.length > 0) break;
      continue;
    }
    command = next;
    path.push(word);
  }
  return path.length === 0 || command.commands.length > 0 ? undefined : path.join(' ');
}

/** So that the message of a usage error refers to the command's own help. */
const withCommand = (error: unknown, command: string | undefined): unknown =>
  error instanceof Refusal && error.code === 'usage'
    ? refuse('usage', { reason: String(error.facts['reason']), command }, error)
    : error;

async function reportUsage(
  { code, message }: CommanderError,
  wantsJson: boolean,
  command: string | undefined,
): Promise<number> {
  if (code !== 'commander.help')
    return reportError(refuse('usage', { reason: message.replace(/^error: |\.$/g, ''), command }), wantsJson);
  // commander has written the group's help to stderr.
  return wantsJson ? reportError(refuse('usage', { reason: 'a command is missing' }), true) : EXIT.badInput;
}

const describedOption = (option: Option): string =>
  `${new Help().optionDescription(option)}${option.mandatory ? ' (required)' : ''}`;

/**
 * A command with its arguments, such as `apply <id>`. The form "[options]", which commander would add, is omitted to
 * leave more room for the description.
 */
const termOf = (command: Command): string =>
  [
    command.name(),
    ...command.registeredArguments.map((each) => {
      const name = each.variadic ? `${each.name()}...` : each.name();
      return each.required ? `<${name}>` : `[${name}]`;
    }),
  ].join(' ');
