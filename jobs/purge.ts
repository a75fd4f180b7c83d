/** Run by cron every night: deletes data that is no longer needed. */
import { runPurge } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runPurge);
