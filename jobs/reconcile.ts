/**
 * Run by cron every day: reads the connected accounts and reconciles the latest months. Exit 4: an exception is open.
 */
import { runReconcile } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runReconcile);
