/** Cron, once a night: checks everything that is stored against the ledger. Exit 4: a check found a difference. */
import { runVerify } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runVerify);
