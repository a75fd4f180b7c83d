/** Cron, every hour: closes every month that is due and delivers. Exit 4: a month stays open, or a delivery needs a person. */
import { runMonthClose } from '../src/cli/job.ts';
import { runProcess } from '../src/cli/main.ts';

await runProcess(runMonthClose);
