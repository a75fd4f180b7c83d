/** The commands and their arguments (contract, Commands). */
import { Command, CommanderError } from 'commander';
import { EXIT } from '../errors.ts';
import type { Month } from '../month.ts';
import { packageVersion } from '../package.ts';
import { choiceArgument, monthArgument } from './arguments.ts';
import { type CloseOptions, close } from './commands/close.ts';
import { deliver } from './commands/deliver.ts';
import { init, initCheck, migrate } from './commands/init.ts';
import { type InvoiceListOptions, invoiceList, invoicePdf, invoiceShow } from './commands/invoice.ts';
import { type LedgerImportOptions, ledgerImport } from './commands/ledger.ts';
import { partnerImport, partnerList, partnerShow } from './commands/partner.ts';
import { status } from './commands/status.ts';
import { type Output, openOutput, reportError } from './output.ts';

/** Runs one command line and gives its exit status. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  const wantsJson = argv.slice(2).includes('--json');
  let exit: number = EXIT.done;
  const program = new Command('reckoner')
    .description('The ledger and month-close invoicing of a company that sells through partners.')
    .version(packageVersion)
    .option('--json', 'print one JSON document on stdout; logs go to stderr')
    .option('--by <name>', 'who asks for this')
    .showHelpAfterError("Run 'reckoner --help' for the commands.")
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();

  const act =
    <Arguments extends unknown[]>(work: (output: Output, ...given: Arguments) => Promise<number>) =>
    async (...given: unknown[]): Promise<void> => {
      // commander adds the command itself as the last argument.
      exit = await work(openOutput(wantsJson), ...(given.slice(0, -1) as Arguments));
    };

  program
    .command('init')
    .description('lay out RECKONER_HOME and the database; safe to repeat')
    .option('--check', 'say what production still lacks, by partner and currency')
    .action(act((output, options: { check?: boolean }) => (options.check ? initCheck(output) : init(output))));
  program
    .command('migrate')
    .description('bring the database up to date')
    .action(act((output) => migrate(output)));

  const partner = program.command('partner').description('partners: import, list, show');
  partner.command('import <file>').description('add and update partners from a JSON array').action(act(partnerImport));
  partner
    .command('list')
    .description('all partners')
    .action(act((output) => partnerList(output)));
  partner.command('show <id>').description('one partner with its policies').action(act(partnerShow));

  const ledger = program.command('ledger').description('ledger rows: import');
  ledger
    .command('import <file...>')
    .description("record rows from CSV or NDJSON files, all or none; '-' is stdin")
    .option('--format <format>', 'csv or ndjson; else by the file name', choiceArgument('--format', ['csv', 'ndjson']))
    .option('--skip-invalid', 'record the good rows although there are bad ones')
    .option('--rejects <file>', 'write the bad rows there with their reasons, as NDJSON')
    .option('--dry-run', 'judge everything, record nothing')
    .action(act((output, files: string[], options: LedgerImportOptions) => ledgerImport(output, files, options)));

  program
    .command('close')
    .argument('[month]', 'YYYY-MM; else all months that are due', monthArgument('month'))
    .description('close months: issue and deliver their documents')
    .option('--first-month <month>', 'the first month, at the first close', monthArgument('--first-month'))
    .option('--dry-run', 'show what would be issued; writes nothing, also for a running month')
    .option('--no-deliver', "leave delivery to 'reckoner deliver'")
    .action(act((output, month: Month | undefined, options: CloseOptions) => close(output, month, options)));
  program
    .command('deliver')
    .description('draw and send what is issued and not delivered')
    .option('--watch', 'stay as a worker')
    .action(act((output, options: { watch?: boolean }) => deliver(output, options)));

  const invoice = program.command('invoice').description('documents: list, show, pdf');
  invoice
    .command('list')
    .description('documents in number order')
    .option('--month <month>', 'of one month', monthArgument('--month'))
    .option('--partner <id>', 'of one partner')
    .option('--status <status>', 'open, paid or void', choiceArgument('--status', ['open', 'paid', 'void']))
    .action(act((output, options: InvoiceListOptions) => invoiceList(output, options)));
  invoice.command('show <number>').description('one document with its lines and its story').action(act(invoiceShow));
  invoice
    .command('pdf <number>')
    .description('the PDF that was issued')
    .option('-o, --output <file>', "where to; '-' is stdout")
    .action(act((output, number: string, options: { output?: string }) => invoicePdf(output, number, options)));

  program
    .command('status')
    .description('months, backlog, failures, last runs; exit 4 when something needs a person')
    .action(act((output) => status(output)));

  try {
    await program.parseAsync(argv as string[]);
    return exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(error, wantsJson);
    if (error.exitCode === 0) return EXIT.done;
    if (wantsJson) {
      const message = error.message.replace(/^error: /, '');
      process.stdout.write(`${JSON.stringify({ error: { code: 'usage', message } }, null, 2)}\n`);
    }
    return EXIT.badInput;
  }
}
