#!/usr/bin/env node
/** The program `reckoner`. */
import { runProgram } from './program.ts';

// A reader that has seen enough (`| head`) is no failure of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await runProgram(process.argv);
