/** Cron, once a day: mails the status to operations if something needs a person. Exit 4: something did. */
import { runWatch } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runWatch);
