/** The commands and their arguments (contract, Commands). */
import { Command, CommanderError } from 'commander';
import { EXIT, refuse } from '../errors/refusals.ts';
import type { Month } from '../month.ts';
import { packageVersion } from '../package.ts';
import { BANK_FORMATS, METHODS, PAYMENT_STATUSES, REVERSAL_KINDS } from '../payments/enums.ts';
import {
  choiceArgument,
  dateArgument,
  idArgument,
  idsArgument,
  monthArgument,
  reasonArgument,
  rowArgument,
  wholeNumberArgument,
} from './arguments.ts';
import type { CloseOptions } from './commands/close.ts';
import type { DeliverOption, RerunArguments } from './commands/correct.ts';
import type { ExportOptions } from './commands/export.ts';
import type { InvoiceListOptions, InvoicePdfOptions } from './commands/invoice.ts';
import type { LedgerImportOptions } from './commands/ledger.ts';
import type {
  CreditRefundOptions,
  PaymentImportOptions,
  PaymentListOptions,
  PaymentRecordOptions,
  PaymentReverseOptions,
  PaymentSettleOptions,
} from './commands/payment.ts';
import type { MatchOptions, ProcessorImportOptions, ReconcileOptions } from './commands/processor.ts';
import type { ReportOptions, StatementOptions } from './commands/report.ts';
import type { ServeOptions } from './commands/serve.ts';
import type { SplitPlanOptions } from './commands/split.ts';
import { type Output, openOutput, reportError } from './output.ts';

// Each command loads what it works with when it runs: the libraries that draw and mail alone take 0.4 s to load.
const initCommands = () => import('./commands/init.ts');
const partnerCommands = () => import('./commands/partner.ts');
const ledgerCommands = () => import('./commands/ledger.ts');
const closeCommands = () => import('./commands/close.ts');
const deliverCommands = () => import('./commands/deliver.ts');
const invoiceCommands = () => import('./commands/invoice.ts');
const correctCommands = () => import('./commands/correct.ts');
const paymentCommands = () => import('./commands/payment.ts');
const remindCommands = () => import('./commands/remind.ts');
const processorCommands = () => import('./commands/processor.ts');
const splitCommands = () => import('./commands/split.ts');
const reportCommands = () => import('./commands/report.ts');
const backupCommands = () => import('./commands/backup.ts');
const exportCommands = () => import('./commands/export.ts');
const verifyCommands = () => import('./commands/verify.ts');
const clientCommands = () => import('./commands/client.ts');
const serveCommands = () => import('./commands/serve.ts');
const statusCommands = () => import('./commands/status.ts');

const BACKUP_HELP = `
It is one consistent picture, whatever is imported, closed or sent meanwhile. Not in it: settings.json, templates/ and
outbox/ of RECKONER_HOME, and the secrets in the environment. A file that is there already is never replaced.`;
const RESTORE_HELP = `
The database is left as it was unless all of the backup could be loaded. An older program's backup is migrated on the
way. settings.json, templates/, outbox/ and secrets are not in a backup: bring them yourself.`;

const IMPORT_HELP = `
A file that was imported before does nothing, and a line that another file brought is not recorded again. What is matched
for certain is applied; the rest is suggested, and 'payment apply' accepts it. Exit 4: something waits for a person.`;
const EXPORT_HELP = `
Every pack has a manifest with the hashes of its files and the seals of its months, the evidence under those seals,
README.txt and verify.mjs, which checks all of it with nothing but Node. Nothing that is there already is replaced.`;

/** Runs one command line and gives its exit status. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  const wantsJson = argv.slice(2).includes('--json');
  let exit: number = EXIT.done;
  /** What commander has to say on stdout: the help or the version that was asked for. */
  const told: string[] = [];
  const program = new Command('reckoner')
    .description('The ledger and month-close invoicing of a company that sells through partners.')
    .version(packageVersion)
    .option('--json', 'print one JSON document on stdout; logs go to stderr')
    .option('--by <name>', 'who asks for this')
    .configureOutput({ writeOut: (text) => told.push(text), outputError: () => {} })
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();

  const act =
    <Arguments extends unknown[]>(work: (output: Output, ...given: Arguments) => Promise<number>) =>
    async (...given: unknown[]): Promise<void> => {
      // commander adds the command itself as the last argument.
      exit = await work(
        openOutput(wantsJson, program.opts<{ by?: string }>().by ?? null),
        ...(given.slice(0, -1) as Arguments),
      );
    };

  program
    .command('init')
    .description('lay out RECKONER_HOME and the database; safe to repeat')
    .option('--check', 'say what production still lacks, by partner and currency')
    .action(
      act(async (output, options: { check?: boolean }) => {
        const { init, initCheck } = await initCommands();
        return options.check ? initCheck(output) : init(output);
      }),
    );
  program
    .command('migrate')
    .description('bring the database up to date')
    .action(act(async (output) => (await initCommands()).migrate(output)));

  const partner = program.command('partner').description('partners: import, list, show');
  partner
    .command('import <file>')
    .description('add and update partners from a JSON array')
    .action(act(async (output, file: string) => (await partnerCommands()).partnerImport(output, file)));
  partner
    .command('list')
    .description('all partners')
    .action(act(async (output) => (await partnerCommands()).partnerList(output)));
  partner
    .command('show <id>')
    .description('one partner with its policies')
    .action(act(async (output, id: string) => (await partnerCommands()).partnerShow(output, id)));

  const ledger = program.command('ledger').description('ledger rows: import');
  ledger
    .command('import <file...>')
    .description("record rows from CSV or NDJSON files, all or none; '-' is stdin")
    .option('--format <format>', 'csv or ndjson; else by the file name', choiceArgument('--format', ['csv', 'ndjson']))
    .option('--skip-invalid', 'record the good rows although there are bad ones')
    .option('--rejects <file>', 'write the bad rows there with their reasons, as NDJSON')
    .option('--dry-run', 'judge everything, record nothing')
    .action(
      act(async (output, files: string[], options: LedgerImportOptions) =>
        (await ledgerCommands()).ledgerImport(output, files, options),
      ),
    );

  program
    .command('close')
    .argument('[month]', 'YYYY-MM; else all months that are due', monthArgument('month'))
    .description('close months: issue and deliver their documents')
    .option('--first-month <month>', 'the first month, at the first close', monthArgument('--first-month'))
    .option('--dry-run', 'show what would be issued; writes nothing, also for a running month')
    .option('--no-deliver', "leave delivery to 'reckoner deliver'")
    .action(
      act(async (output, month: Month | undefined, options: CloseOptions) =>
        (await closeCommands()).close(output, month, options),
      ),
    );
  program
    .command('deliver')
    .description('draw and send what is issued and not delivered')
    .option('--watch', 'stay as a worker')
    .action(act(async (output, options: { watch?: boolean }) => (await deliverCommands()).deliver(output, options)));

  const invoice = program.command('invoice').description('documents: list, show, pdf, and what corrects them');
  invoice
    .command('list')
    .description('documents in number order')
    .option('--month <month>', 'of one month', monthArgument('--month'))
    .option('--partner <id>', 'of one partner')
    .option('--status <status>', 'open, paid or void', choiceArgument('--status', ['open', 'paid', 'void']))
    .action(act(async (output, options: InvoiceListOptions) => (await invoiceCommands()).invoiceList(output, options)));
  invoice
    .command('show <number>')
    .description('one document with its lines and its story')
    .action(act(async (output, number: string) => (await invoiceCommands()).invoiceShow(output, number)));
  invoice
    .command('pdf <number>')
    .description('the PDF that was issued')
    .option('-o, --output <file>', "where to; '-' is stdout")
    .option('--void-copy', 'of a void document: marked void on each page, with the reason and its replacement')
    .action(
      act(async (output, number: string, options: InvoicePdfOptions) =>
        (await invoiceCommands()).invoicePdf(output, number, options),
      ),
    );

  const NO_DELIVER = ['--no-deliver', "leave delivery to 'reckoner deliver'"] as const;
  const REASON = ['--reason <reason>', 'why; it is kept'] as const;
  invoice
    .command('rerun [number]')
    .description('compute it again; where its face would differ, void it and issue a replacement')
    .option('--month <month>', 'all of a month, and what is void there without a replacement', monthArgument('--month'))
    .option('--new-terms', "due by today's terms, counted from today, instead of on the old due date")
    .option(...NO_DELIVER)
    .action(
      act(async (output, number: string | undefined, options: RerunArguments) =>
        (await correctCommands()).invoiceRerun(output, number, options),
      ),
    );
  invoice
    .command('resend <number>')
    .description('send it once more')
    .option('--to <address>', "to this address instead of the partner's contacts")
    .option(...NO_DELIVER)
    .action(
      act(async (output, number: string, options: { to?: string } & DeliverOption) =>
        (await correctCommands()).invoiceResend(output, number, options),
      ),
    );
  invoice
    .command('void <number>')
    .description('void it: a fact dated today; its number stays')
    .requiredOption(...REASON, reasonArgument)
    .action(
      act(async (output, number: string, options: { reason: string }) =>
        (await correctCommands()).invoiceVoid(output, number, options),
      ),
    );
  invoice
    .command('credit <number>')
    .description('issue a credit note against an invoice')
    .requiredOption('--amount <amount>', "in the invoice's currency")
    .requiredOption(...REASON, reasonArgument)
    .option('--again', 'the same amount for the same reason as a credit that there is')
    .option(...NO_DELIVER)
    .action(
      act(
        async (output, number: string, options: { amount: string; reason: string; again?: boolean } & DeliverOption) =>
          (await correctCommands()).invoiceCredit(output, number, options),
      ),
    );
  invoice
    .command('write-off <number>')
    .description('give up what is still open on an invoice')
    .requiredOption(...REASON, reasonArgument)
    .action(
      act(async (output, number: string, options: { reason: string }) =>
        (await correctCommands()).invoiceWriteOff(output, number, options),
      ),
    );
  invoice
    .command('hold <number>')
    .description('send nothing of it until it is released')
    .option('--reason <reason>', 'why; it is kept')
    .action(
      act(async (output, number: string, options: { reason?: string }) =>
        (await correctCommands()).invoiceHold(output, number, options),
      ),
    );
  invoice
    .command('release <number>')
    .description('end a hold')
    .option(...NO_DELIVER)
    .action(
      act(async (output, number: string, options: DeliverOption) =>
        (await correctCommands()).invoiceRelease(output, number, options),
      ),
    );

  const payment = program.command('payment').description('money in: record, import, apply, take back');
  payment
    .command('record')
    .description('record a payment by hand; what is known already is not recorded twice')
    .requiredOption('--amount <amount>', 'what arrived')
    .requiredOption('--currency <code>', 'ISO 4217')
    .requiredOption('--method <method>', METHODS.join(', '), choiceArgument('--method', METHODS))
    .requiredOption('--received-on <date>', 'when it arrived, YYYY-MM-DD', dateArgument('--received-on'))
    .requiredOption('--reference <reference>', "the bank's or processor's reference")
    .option('--invoice <number>', 'applied to it up to its balance; the rest is unapplied cash')
    .option('--partner <id>', 'unapplied cash of this partner')
    .action(
      act(async (output, options: PaymentRecordOptions) => (await paymentCommands()).paymentRecord(output, options)),
    );
  payment
    .command('import <file>')
    .description("record a bank file, whole or not at all, and match its lines; '-' is stdin")
    .option(
      '--format <format>',
      `${BANK_FORMATS.join(', ')}; else by content`,
      choiceArgument('--format', BANK_FORMATS),
    )
    .option('--map <name>', 'for CSV: the column map of the settings ("bank_csv")')
    .option('--dry-run', 'judge everything, record nothing')
    .addHelpText('after', IMPORT_HELP)
    .action(
      act(async (output, file: string, options: PaymentImportOptions) =>
        (await paymentCommands()).paymentImport(output, file, options),
      ),
    );
  payment
    .command('list')
    .description('payments with what they pay and what is suggested')
    .option('--partner <id>', 'of one partner')
    .option('--status <status>', PAYMENT_STATUSES.join(', '), choiceArgument('--status', PAYMENT_STATUSES))
    .action(act(async (output, options: PaymentListOptions) => (await paymentCommands()).paymentList(output, options)));
  payment
    .command('apply')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('apply a payment to an invoice; accepts a suggestion too')
    .requiredOption('--invoice <number>', 'the invoice')
    .option('--amount <amount>', 'else as much as there is')
    .action(
      act(async (output, id: number, options: { invoice: string; amount?: string }) =>
        (await paymentCommands()).paymentApply(output, id, options),
      ),
    );
  payment
    .command('unapply')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('undo what of a payment is applied; it is unapplied cash again')
    .option('--invoice <number>', 'only from this invoice')
    .action(
      act(async (output, id: number, options: { invoice?: string }) =>
        (await paymentCommands()).paymentUnapply(output, id, options),
      ),
    );
  payment
    .command('reverse')
    .argument('<id>', 'the payment', idArgument('payment'))
    .description('take a payment back: what it paid is open again')
    .requiredOption('--as <kind>', REVERSAL_KINDS.join(', '), choiceArgument('--as', REVERSAL_KINDS))
    .requiredOption('--reason <reason>', 'why', reasonArgument)
    .option('--code <code>', "the bank's return code, R01 and so on")
    .option('--amount <amount>', 'else all that is left of it')
    .option('--on <date>', 'when it was taken back; else today', dateArgument('--on'))
    .option('--duplicate-of <id>', 'the payment that it is the same as', idArgument('--duplicate-of'))
    .action(
      act(async (output, id: number, options: PaymentReverseOptions) =>
        (await paymentCommands()).paymentReverse(output, id, options),
      ),
    );
  payment
    .command('payouts')
    .description('what the processor brought to the bank; exit 4 where it is not known of which payments')
    .action(act(async (output) => (await paymentCommands()).paymentPayouts(output)));
  payment
    .command('settle')
    .argument('<payout>', 'the payout', idArgument('payout'))
    .argument('[payments...]', 'the payments that it brought', idsArgument('payments'), [])
    .option('--account <id>', 'instead of payments: the connected account that paid it out')
    .option('--of <payout>', 'which payout of the account it is, by the id at the processor')
    .description('say which payments a payout brought (the rest is fees), or that it is of a connected account')
    .action(
      act(async (output, payout: number, payments: number[], options: PaymentSettleOptions) =>
        (await paymentCommands()).paymentSettle(output, payout, payments, options),
      ),
    );
  payment
    .command('events')
    .argument('[file]', "the processor's events as NDJSON; '-' is stdin; else only what waits")
    .description("store the processor's events and work them off; safe to repeat and to reorder")
    .action(act(async (output, file: string | undefined) => (await paymentCommands()).paymentEvents(output, file)));
  payment
    .command('exceptions')
    .description('what of payments waits for a person, and what ends it; exit 4 while there is something')
    .action(act(async (output) => (await paymentCommands()).paymentExceptions(output)));
  payment
    .command('close-exception <exception>')
    .description('keep that a bank line or an event was looked at and needs nothing')
    .requiredOption(...REASON, reasonArgument)
    .action(
      act(async (output, exception: string, options: { reason: string }) =>
        (await paymentCommands()).paymentCloseException(output, exception, options),
      ),
    );
  program
    .command('credit')
    .description('open credit: refund')
    .command('refund <number>')
    .description('a credit note whose open credit is paid out to the partner')
    .option('--method <method>', 'ach, wire or other', choiceArgument('--method', ['ach', 'wire', 'other']), 'other')
    .option('--reference <reference>', "the bank's reference", '')
    .option('--on <date>', 'when it was paid; else today', dateArgument('--on'))
    .option('--returned <reason>', 'the latest refund came back: its credit is open again', reasonArgument)
    .action(
      act(async (output, number: string, options: CreditRefundOptions) =>
        (await paymentCommands()).creditRefund(output, number, options),
      ),
    );

  program
    .command('remind')
    .description('remind partners of what they owe, by the steps of the settings; safe to repeat')
    .option('--dry-run', 'show who would be reminded of what; sends nothing')
    .action(act(async (output, options: { dryRun?: boolean }) => (await remindCommands()).remind(output, options)));

  const report = program.command('report').description('reports: aging, statement, trial-balance, close, coverage');
  const AS_OF = ['--as-of <date>', 'as of the end of that day; else as of now', dateArgument('--as-of')] as const;
  const CSV = ['--format <format>', 'csv', choiceArgument('--format', ['csv'])] as const;
  report
    .command('aging')
    .description('what partners owe by days since it was due; exit 4 where it does not tie to the journal')
    .option(...AS_OF)
    .option(...CSV)
    .action(act(async (output, options: ReportOptions) => (await reportCommands()).reportAging(output, options)));
  report
    .command('statement')
    .description("a partner's statement of account: opening balance, what moved it, what is open")
    .requiredOption('--partner <id>', 'whose')
    .option('--pdf <file>', 'write it as PDF too')
    .option('--from <date>', "from that day on; else from the first of the statement's month", dateArgument('--from'))
    .option(...AS_OF)
    .option(...CSV)
    .action(
      act(async (output, options: StatementOptions) => (await reportCommands()).reportStatement(output, options)),
    );
  report
    .command('trial-balance')
    .description('the balance of every account, debits against credits; exit 4 where they differ')
    .option('--detail', 'by partner, policy and bank account')
    .option(...AS_OF)
    .option(...CSV)
    .action(
      act(async (output, options: ReportOptions & { detail?: boolean }) =>
        (await reportCommands()).reportTrialBalance(output, options),
      ),
    );
  report
    .command('close')
    .argument('[month]', 'a closed month; else the last one', monthArgument('month'))
    .description('what a close issued, against the month before; exit 4 where something needs a person')
    .option(...CSV)
    .action(
      act(async (output, month: Month | undefined, options: ReportOptions) =>
        (await reportCommands()).reportClose(output, month, options),
      ),
    );
  const split = program.command('split').description('connected accounts: what a partner must ask the processor for');
  split
    .command('plan <quote>')
    .description('the processor requests for an accepted quote and its requotes')
    .option('--partner <id>', 'whose quote, where several partners have one of that id')
    .option('--operator-account <id>', 'sequential: the account of the operator or event host, who charges')
    .option('--platform-fee <amount>', "sequential: the platform's own fee, charged with the quote")
    .option(
      '--requote-form <form>',
      'destination_charge (default), or as_documented, which routes our share to the platform',
      choiceArgument('--requote-form', ['destination_charge', 'as_documented']),
    )
    .action(
      act(async (output, quote: string, options: SplitPlanOptions) =>
        (await splitCommands()).splitPlan(output, quote, options),
      ),
    );

  const processor = program
    .command('processor')
    .description('connected accounts: what moved there, and what it was of');
  processor
    .command('import <file>')
    .description("take in a partner's settlement file, or balance transactions as NDJSON; '-' is stdin")
    .option('--partner <id>', 'of this partner: a settlement file (quote_id, transfer, payment, amount)')
    .option('--account <id>', 'of this account of ours: balance transactions, with their source expanded')
    .action(
      act(async (output, file: string, options: ProcessorImportOptions) =>
        (await processorCommands()).processorImport(output, file, options),
      ),
    );
  processor
    .command('poll')
    .description('read our connected accounts at the processor, from a little before where the last reading ended')
    .option('--account <id>', 'only this one; else all that STRIPE_SECRET_KEY_<account> gives a key for')
    .action(
      act(async (output, options: { account?: string }) => (await processorCommands()).processorPoll(output, options)),
    );
  const OF_QUOTE = ['--quote <id>', 'the quote'] as const;
  const OF_ACCOUNT = ['--account <id>', 'where several accounts have a movement of that id'] as const;
  processor
    .command('match <movement>')
    .description('say of which quote a movement is')
    .requiredOption(...OF_QUOTE)
    .option('--partner <id>', 'whose quote, where several partners have one of that id')
    .option(...OF_ACCOUNT)
    .option('--amount <amount>', 'a part of it; else all that no quote explains')
    .requiredOption(...REASON, reasonArgument)
    .action(
      act(async (output, movement: string, options: MatchOptions) =>
        (await processorCommands()).processorMatch(output, movement, options, 'match'),
      ),
    );
  processor
    .command('unmatch <movement>')
    .description('take a match back')
    .requiredOption(...OF_QUOTE)
    .option('--partner <id>', 'whose quote, where several partners have one of that id')
    .option(...OF_ACCOUNT)
    .requiredOption(...REASON, reasonArgument)
    .action(
      act(async (output, movement: string, options: MatchOptions) =>
        (await processorCommands()).processorMatch(output, movement, options, 'unmatch'),
      ),
    );
  processor
    .command('reverse <movement>')
    .description('record a share that was pulled back as a reversal in the ledger')
    .requiredOption('--spot-price <amount>', 'what the customer got back of the price')
    .option(...OF_ACCOUNT)
    .action(
      act(async (output, movement: string, options: { account?: string; spotPrice: string }) =>
        (await processorCommands()).processorReverse(output, movement, options),
      ),
    );
  program
    .command('reconcile')
    .argument('<month>', 'YYYY-MM', monthArgument('month'))
    .description('what the ledger expects against what the processor routed; exit 4 while anything is open')
    .option('--reverse', 'record what was pulled back as reversals in the ledger, where its price is known')
    .option('--bill-missing', 'issue invoices for what never came')
    .option(...NO_DELIVER)
    .action(
      act(async (output, month: Month, options: ReconcileOptions) =>
        (await processorCommands()).reconcile(output, month, options),
      ),
    );

  report
    .command('coverage')
    .description('partner by closed month: a document, no activity, or a gap; exit 4 where there is a gap')
    .option('--as-of <date>', 'only months closed by that date', dateArgument('--as-of'))
    .option(...CSV)
    .action(act(async (output, options: ReportOptions) => (await reportCommands()).reportCoverage(output, options)));
  const client = program.command('client').description('API credentials of partners: create, rotate, revoke, list');
  const days = (option: string, least: number) => wholeNumberArgument(option, least, 3650);
  client
    .command('create <partner>')
    .description('a client with its secret, which is shown once')
    .option('--valid-days <days>', 'the secret expires after so many days', days('--valid-days', 1))
    .action(
      act(async (output, partnerId: string, options: { validDays?: number }) =>
        (await clientCommands()).clientCreate(output, partnerId, options),
      ),
    );
  client
    .command('rotate <client>')
    .description('a further secret; the one before works on for a while')
    .option('--overlap-days <days>', 'how long (default: 7; 0 ends it now)', days('--overlap-days', 0))
    .option('--valid-days <days>', 'the secret expires after so many days', days('--valid-days', 1))
    .action(
      act(async (output, clientId: string, options: { overlapDays?: number; validDays?: number }) =>
        (await clientCommands()).clientRotate(output, clientId, options),
      ),
    );
  client
    .command('revoke <client>')
    .description('end its secrets and its tokens at once, for good')
    .action(act(async (output, clientId: string) => (await clientCommands()).clientRevoke(output, clientId)));
  client
    .command('list [partner]')
    .description('clients and how many of their secrets are live')
    .action(act(async (output, partnerId?: string) => (await clientCommands()).clientList(output, partnerId)));
  program
    .command('serve')
    .description('the HTTP API, payment pages and webhooks')
    .option('--host <host>', 'address to listen at (default: 127.0.0.1)')
    .option(
      '--port <port>',
      'port to listen at (default: 8080; 0 takes a free one)',
      wholeNumberArgument('--port', 0, 65535),
    )
    .action(act(async (output, options: ServeOptions) => (await serveCommands()).serve(output, options)));
  const exported = program
    .command('export')
    .description('write a pack that an auditor can check by itself')
    .addHelpText('after', EXPORT_HELP);
  const EXPORTED = {
    ledger: 'ledger rows by posting month',
    invoices: 'documents and their lines',
    payments: 'payments by entry date, and what they were applied to',
    journal: 'the double entry by entry date, with opening balances',
    events: 'who did what',
  } as const;
  for (const [kind, description] of Object.entries(EXPORTED)) {
    const formats = kind === 'journal' ? ['csv', 'jsonl', 'hledger', 'beancount'] : ['csv', 'jsonl'];
    exported
      .command(kind)
      .description(description)
      .requiredOption('--month <month>', 'YYYY-MM', monthArgument('--month'))
      .option('--to <month>', 'up to and with this month', monthArgument('--to'))
      .option('--format <format>', formats.join(', '), choiceArgument('--format', formats), 'csv')
      .requiredOption('--out <place>', 'a new folder, or a new file that ends in .zip')
      .action(
        act(async (output, options: ExportOptions) =>
          (await exportCommands()).exportData(output, kind as keyof typeof EXPORTED, options),
        ),
      );
  }
  exported
    .command('proof')
    .description('prove that one row is under the seal of its month')
    .requiredOption('--row <id>', 'the entry_id of the row', rowArgument)
    .option('--out <file>', 'where to; else to stdout')
    .action(
      act(async (output, options: { row: number; out?: string }) =>
        (await exportCommands()).exportProof(output, options),
      ),
    );
  program
    .command('verify')
    .argument('[month]', 'one closed month; else everything', monthArgument('month'))
    .description('re-derive everything from the ledger and compare')
    .action(act(async (output, month: Month | undefined) => (await verifyCommands()).verify(output, month)));
  program
    .command('backup <file>')
    .description('write all that the database keeps into one file, while everything runs')
    .addHelpText('after', BACKUP_HELP)
    .action(act(async (output, file: string) => (await backupCommands()).backup(output, file)));
  program
    .command('restore <file>')
    .description('load a backup into an empty database and verify it; exit 4 when a check finds a difference')
    .addHelpText('after', RESTORE_HELP)
    .action(act(async (output, file: string) => (await backupCommands()).restore(output, file)));
  program
    .command('status')
    .description('months, backlog, failures, last runs; exit 4 when something needs a person')
    .action(act(async (output) => (await statusCommands()).status(output)));

  try {
    await program.parseAsync(argv as string[]);
    return exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(error, wantsJson);
    if (error.exitCode === 0) {
      const text = told.join('');
      const what = error.code === 'commander.version' ? 'version' : 'help';
      openOutput(wantsJson, null).print({ [what]: text.trimEnd() }, () => text);
      return EXIT.done;
    }
    // commander's help for a command group without a command is all there is to say.
    if (error.code === 'commander.help' && !wantsJson) return EXIT.badInput;
    const reason =
      error.code === 'commander.help' ? 'a command is missing' : error.message.replace(/^error: |\.$/g, '');
    return reportError(refuse('usage', { reason }), wantsJson);
  }
}
