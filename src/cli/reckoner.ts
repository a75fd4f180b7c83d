#!/usr/bin/env node
/** The program `reckoner`. */
import { runProcess } from './main.ts';
import { runProgram } from './program.ts';

await runProcess(() => runProgram(process.argv));
