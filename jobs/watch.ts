/** Run by cron every day: e-mails the status to operations if something needs attention. Exit 4: something does. */
import { runWatch } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runWatch);
