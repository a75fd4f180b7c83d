/** How every process of Reckoner begins and ends: the program `reckoner` and the jobs. */

/** Runs a program and exits with its status, once its output has been read. */
export async function runProcess(work: () => Promise<number>): Promise<never> {
  // Files written here, such as e-mails, exports and backups, are readable by the owner only.
  process.umask(0o077);
  let failure: NodeJS.ErrnoException | undefined;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= error;
  });
  process.stderr.on('error', () => {}); // The error cannot be reported anywhere.
  const exit = await work();
  // A full disk is reported after the write, in the next tick.
  await new Promise((resolve) => setImmediate(resolve));
  await until(() => failure !== undefined || process.stdout.writableLength === 0);
  const unwritten = failure !== undefined && failure.code !== 'EPIPE'; // A closed pipe (`| head`) is not an error.
  if (unwritten)
    process.stderr.write(`The output cannot be written: ${failure?.message}. Recorded changes are kept.\n`);
  const givenUp = performance.now() + DRAIN_MILLISECONDS;
  await until(() => process.stderr.writableLength === 0 || performance.now() > givenUp);
  // Do not wait for pending work, such as an e-mail at a mail server after the database was lost.
  process.exit(unwritten && exit === 0 ? 1 : exit);
}

/** How long a finished process waits for a reader of its log. */
const DRAIN_MILLISECONDS = 1000;

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
}
