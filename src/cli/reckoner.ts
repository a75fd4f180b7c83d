#!/usr/bin/env node
import { runProcess } from './main.ts';
import { runProgram } from './program.ts';

await runProcess(() => runProgram(process.argv));
