/** Cron, once a day: mails the status to operations when it needs a person. Exit 4: it did. */
import { runWatch } from '../src/cli/job.ts';

process.exitCode = await runWatch();
