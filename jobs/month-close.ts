/**
 * Run by cron every hour: closes all due months and delivers their documents. Exit 4: a month stays open, or a delivery
 * needs attention.
 */
import { runMonthClose } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runMonthClose);
