/**
 * Run by cron every day: sends payment reminders by the dunning levels of the settings. Exit 4: an e-mail needs
 * attention.
 */
import { runRemind } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runRemind);
