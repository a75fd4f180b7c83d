#!/usr/bin/env node
/** The program `reckoner`. */
import { runProgram } from './program.ts';

// A closed pipe (`| head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await runProgram(process.argv);
// Do not wait for what is still pending, such as a queue that keeps reconnecting to a lost database.
setTimeout(() => process.exit(), 1000).unref();
