/** The process exits with the program's status after its output has been read. */
export async function runProcess(work: () => Promise<number>): Promise<never> {
  // E-mails, exports and backups must be readable by the owner only.
  process.umask(0o077);
  let failure: NodeJS.ErrnoException | undefined;
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= error;
  });
  process.stderr.on('error', () => {}); // The error cannot be reported anywhere.
  const exit = await work();
  // A full disk is reported in the tick after the write.
  await new Promise((resolve) => setImmediate(resolve));
  await until(() => failure !== undefined || process.stdout.writableLength === 0);
  const unwritten = failure !== undefined && failure.code !== 'EPIPE'; // A closed pipe (`| head`) is not an error.
  if (unwritten)
    process.stderr.write(`The output cannot be written: ${failure?.message}. Recorded changes are kept.\n`);
  const givenUp = performance.now() + DRAIN_MILLISECONDS;
  await until(() => process.stderr.writableLength === 0 || performance.now() > givenUp);
  // Exits without waiting for pending work, such as an e-mail that is being sent when the database is lost.
  process.exit(unwritten && exit === 0 ? 1 : exit);
}

/** How long to wait for a reader of the log. */
const DRAIN_MILLISECONDS = 1000;

async function until(done: () => boolean) {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
}
