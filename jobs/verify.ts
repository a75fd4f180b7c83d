/** Run by cron every night: compares all stored data with the ledger. Exit 4: a check found a difference. */
import { runVerify } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runVerify);
