/**
 * Run by cron every ten minutes: delivers issued documents that are not delivered yet. Exit 4: a delivery needs
 * attention.
 */
import { runDeliver } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runDeliver);
