/** The command line. Each file of commands/ defines the arguments, options, help and action of its commands. */
import { Command, CommanderError, Help, Option } from 'commander';
import { ActionName } from '#actions/registry';
import { EXIT, Refusal, refuse } from '#errors/refusals';
import { List } from '#lists/list';
import { Report } from '#lists/report';
import { commit, packageVersion } from '#package';
import { actionCommand } from './action-command.ts';
import { Definition, Handler } from './define.ts';
import { listCommand } from './list-command.ts';
import { openOutput, reportError } from './output.ts';
import { reportCommand } from './report-command.ts';

/** The name of an action, which is a command, or a file of commands/. */
type Part = ActionName | Promise<{ readonly define: Definition }>;

const listIn = <Name extends string>(file: Promise<Readonly<Record<Name, List>>>, name: Name) =>
  listCommand(file.then((lists) => lists[name]));

const reportIn = <Name extends string>(file: Promise<Readonly<Record<Name, Report>>>, name: Name) =>
  reportCommand(file.then((reports) => reports[name]));

export const loaded = (load: () => readonly Part[]) =>
  Promise.all(load().map((part) => (typeof part === 'string' ? actionCommand(part) : part)));

/** In the order of --help. Only the named command's file is loaded, because loading all takes a second. */
export const COMMANDS: Readonly<Record<string, readonly [summary: string, load: () => readonly Part[]]>> = {
  init: ['Create the home and the database; safe to repeat', () => [import('./commands/init.ts')]],
  migrate: ['Migrate the database to this version', () => [import('./commands/migrate.ts')]],
  partner: [
    'Import, change and show partners',
    () => [
      'partner.import',
      'partner.change',
      listIn(import('#lists/partners'), 'partners'),
      import('./commands/partner.ts'),
      listIn(import('#lists/changes'), 'partnerChanges'),
    ],
  ],
  settings: [
    'Put settings in force, and show how they changed',
    () => ['settings.adopt', listIn(import('#lists/changes'), 'settingsChanges')],
  ],
  ledger: [
    'Import, list and reverse ledger rows, and decide rows that are held or doubled',
    () => [
      import('./commands/ledger.ts'),
      listIn(import('#lists/rows'), 'rows'),
      'rows.reverse',
      listIn(import('#lists/held-rows'), 'heldRows'),
      'rows.release',
      'rows.discard',
      listIn(import('#lists/doubled-rows'), 'doubledRows'),
      'rows.separate',
    ],
  ],
  reversal: [
    'List reversals, and grant or refuse those that the terms do not cover',
    () => [listIn(import('#lists/reversals'), 'reversals'), 'reversal.grant', 'reversal.refuse'],
  ],
  feed: [
    "State the totals of partners' months, compare them, and accept what is in doubt",
    () => ['feed.state', 'feed.accept', listIn(import('#lists/feeds'), 'feeds')],
  ],
  opening: [
    'Import open items from the previous system',
    () => ['opening.import', 'opening.reverse', import('./commands/opening.ts')],
  ],
  close: ['Close months: issue and deliver their documents', () => [import('./commands/close.ts')]],
  books: ['Close the books of a month', () => [import('./commands/books.ts')]],
  archive: ['Move the rows of old months to a cold store', () => ['month.archive']],
  unarchive: ['Bring the rows of an archived month back', () => ['month.unarchive']],
  checkpoint: [
    'Take and list checkpoints of the log; list letters to the auditor',
    () => ['checkpoint.take', import('./commands/checkpoint.ts'), listIn(import('#lists/checkpoints'), 'checkpoints')],
  ],
  deliver: ['Deliver issued documents and other pending e-mails', () => [import('./commands/deliver.ts')]],
  invoice: [
    'Show, correct and resend documents',
    () => [
      listIn(import('#lists/invoices'), 'invoices'),
      import('./commands/invoice/show.ts'),
      import('./commands/invoice/pdf.ts'),
      'invoice.rerun',
      'invoice.resend',
      'invoice.delivered',
      'invoice.void',
      'invoice.credit',
      import('./commands/invoice/write-off.ts'),
      'invoice.hold',
      'invoice.release',
      import('./commands/invoice/link.ts'),
    ],
  ],
  payment: [
    'Record, import, apply and reverse payments',
    () => [
      'payment.record',
      'payment.import',
      listIn(import('#lists/payments'), 'payments'),
      'payment.apply',
      'payment.unapply',
      'payment.assign',
      listIn(import('#lists/payer-accounts'), 'payerAccounts'),
      'payment.forget_account',
      'payment.reverse',
      listIn(import('#lists/payouts'), 'payouts'),
      'payment.settle',
      'payment.events',
      import('./commands/payment/exceptions.ts'),
      'payment.close_exception',
    ],
  ],
  bank: [
    "List bank lines, and book those that are not customers' money",
    () => [listIn(import('#lists/bank-lines'), 'bankLines'), 'bank.book', 'bank.unbook'],
  ],
  credit: [
    'Apply open credit to invoices, unapply it, refund it',
    () => ['credit.apply', 'credit.unapply', import('./commands/credit.ts')],
  ],
  dispute: [
    'Open, close and list invoice disputes',
    () => ['dispute.open', 'dispute.close', listIn(import('#lists/disputes'), 'disputes')],
  ],
  email: [
    'List, resend and dismiss e-mails of every kind',
    () => [listIn(import('#lists/emails'), 'emails'), 'email.resend', 'email.dismiss'],
  ],
  mail: ['Send a test message, and record returned e-mails', () => ['email.bounces', import('./commands/mail.ts')]],
  remind: ['Send payment reminders (dunning); safe to repeat', () => [import('./commands/remind.ts')]],
  reminder: ['Pause and resume the reminders of a partner', () => ['reminder.pause', 'reminder.resume']],
  statement: ['E-mail account statements to partners', () => ['statement.send']],
  report: [
    'Show a report: position, aging, roll-forward, account statement, trial balance, close, coverage, tax, unearned sales, access',
    () => [
      import('./commands/report/position.ts'),
      reportIn(import('#lists/reports'), 'aging'),
      import('./commands/report/statement.ts'),
      reportIn(import('#lists/reports'), 'trialBalance'),
      reportIn(import('#lists/reports'), 'unearned'),
      reportIn(import('#lists/reports'), 'bankReconciliation'),
      reportIn(import('#lists/reports'), 'closeReport'),
      reportIn(import('#lists/reports'), 'coverage'),
      reportIn(import('#lists/reports'), 'tax'),
      listIn(import('#lists/roll-forward'), 'rollForward'),
      listIn(import('#lists/movements'), 'movements'),
      listIn(import('#lists/reserve'), 'reserve'),
      listIn(import('#lists/cash-application'), 'cashApplication'),
      listIn(import('#lists/access'), 'access'),
    ],
  ],
  split: ['Plan the processor requests of connected accounts', () => [import('./commands/split.ts')]],
  processor: [
    'Import and match balance transactions',
    () => [
      'processor.import',
      import('./commands/processor/poll.ts'),
      'processor.match',
      'processor.unmatch',
      'processor.close',
      'processor.reverse',
    ],
  ],
  reconcile: ['Reconcile a month of connected accounts', () => [import('./commands/reconcile.ts')]],
  client: [
    "Manage partners' API credentials",
    () => ['client.create', 'client.rotate', 'client.revoke', listIn(import('#lists/clients'), 'clients')],
  ],
  user: [
    'Invite users, and manage their roles and sessions',
    () => [
      'user.invite',
      'user.link',
      listIn(import('#lists/users'), 'users'),
      import('./commands/user.ts'),
      'user.role',
      'user.deactivate',
      listIn(import('#lists/sessions'), 'sessions'),
      'user.sign_out',
    ],
  ],
  erase: ['Erase the personal data of a person', () => ['person.erase']],
  approval: [
    'Approve, reject and list requests for approval',
    () => [listIn(import('#lists/approvals'), 'approvals'), import('./commands/approval.ts')],
  ],
  work: ['List and assign items of the work queue', () => [listIn(import('#lists/work'), 'work'), 'work.assign']],
  webhook: [
    "Send partners' events to their servers",
    () => [
      'webhook.set',
      'webhook.rotate',
      'webhook.resume',
      'webhook.remove',
      import('./commands/webhook.ts'),
      listIn(import('#lists/webhooks'), 'webhooks'),
    ],
  ],
  audit: ['List audit events', () => [listIn(import('#lists/events'), 'auditEvents')]],
  security: ['List refused callers and access changes', () => [listIn(import('#lists/security'), 'securityEvents')]],
  serve: ['Serve the HTTP API, payment pages and webhooks', () => [import('./commands/serve.ts')]],
  export: [
    'Export data for auditors, and journals for the general ledger',
    () => [import('./commands/export.ts'), import('./commands/export-gl.ts')],
  ],
  gl: [
    'List journals exported to the general ledger, and the entries of a month',
    () => [listIn(import('#lists/gl-exports'), 'glExports'), listIn(import('#lists/entries'), 'entries')],
  ],
  verify: ['Recompute everything from the ledger and compare', () => [import('./commands/verify.ts')]],
  witness: ['Cosign the checkpoints of a log, for auditors', () => [import('./commands/witness.ts')]],
  backup: ['Write the database to one file while it is in use', () => [import('./commands/backup.ts')]],
  restore: ['Load a backup into an empty database and verify it', () => [import('./commands/restore.ts')]],
  drill: ['Restore a backup into a scratch database and verify it', () => [import('./commands/drill.ts')]],
  purge: ['Delete data that is no longer needed, such as old quotes', () => [import('./commands/purge.ts')]],
  pause: ['Pause the ledger: nothing is closed, issued, sent or recorded', () => ['ledger.pause']],
  resume: ['Resume a paused or restored ledger', () => [import('./commands/resume.ts')]],
  doctor: ['Diagnose the installation', () => [import('./commands/doctor.ts')]],
  status: ['Show months, backlog, failures and the latest jobs', () => [import('./commands/status.ts')]],
};

/** Runs one command line and returns its exit status. */
export async function runProgram(argv: readonly string[]) {
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
    if (argv.includes(name)) for (const { define } of await loaded(load)) define(command, handle);
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
function calledCommand(program: Command, words: readonly string[]) {
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
const withCommand = (error: unknown, command: string | undefined) =>
  error instanceof Refusal && error.code === 'usage'
    ? refuse('usage', { reason: String(error.facts['reason']), command }, error)
    : error;

async function reportUsage({ code, message }: CommanderError, wantsJson: boolean, command: string | undefined) {
  if (code !== 'commander.help')
    return reportError(refuse('usage', { reason: message.replace(/^error: |\.$/g, ''), command }), wantsJson);
  // commander has written the group's help to stderr.
  return wantsJson ? reportError(refuse('usage', { reason: 'a command is missing' }), true) : EXIT.badInput;
}

const describedOption = (option: Option) =>
  `${new Help().optionDescription(option)}${option.mandatory ? ' (required)' : ''}`;

/**
 * A command with its arguments, such as `apply <id>`. The form "[options]", which commander would add, is omitted to
 * leave more room for the description.
 */
const termOf = (command: Command) =>
  [
    command.name(),
    ...command.registeredArguments.map((each) => {
      const name = each.variadic ? `${each.name()}...` : each.name();
      return each.required ? `<${name}>` : `[${name}]`;
    }),
  ].join(' ');
