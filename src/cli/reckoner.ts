#!/usr/bin/env node
/** The program `reckoner`. */
import { runProgram } from './program.ts';

// A reader that has seen enough (`| head`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await runProgram(process.argv);
// Whatever still waits then (a queue that lost its database tries for long) has nobody left to wait for it.
setTimeout(() => process.exit(), 1000).unref();
