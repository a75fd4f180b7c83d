/** Run by cron every month: `reckoner drill` with the latest backup. Exit 4: a difference. */
import { runProcess } from '../src/cli/main.ts';
import { runProgram } from '../src/cli/program.ts';

await runProcess(() => runProgram(['node', 'reckoner', '--json', 'drill']));
