/** Cron, every ten minutes: delivers what is issued and not delivered. Exit 4: a delivery needs a person. */
import { runDeliver } from '../src/cli/job.ts';

process.exitCode = await runDeliver();
