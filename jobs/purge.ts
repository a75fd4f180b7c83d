/** Cron, once a night: deletes data of no further use. */
import { runPurge } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runPurge);
