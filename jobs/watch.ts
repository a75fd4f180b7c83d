/** Cron, once a day: mails the status to operations when it needs a person. Exit 4: it did. */
import { runWatch } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runWatch);
