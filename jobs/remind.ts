/** Cron, once a day: reminds partners of what they owe, by the steps of the settings. Exit 4: an e-mail needs a person. */
import { runRemind } from '../src/cli/job.ts';

process.exitCode = await runRemind();
