/** `reckoner close`. */
import { monthClose } from '../../acts/close.ts';
import type { Month } from '../../month.ts';
import { monthArgument, repeatedArgument } from '../arguments.ts';
import { type Definition, type DeliverOption, NO_DELIVER } from '../define.ts';
import { doing } from '../run-act.ts';

interface CloseOptions extends DeliverOption {
  readonly firstMonth?: Month;
  readonly dryRun?: boolean;
  readonly without?: string[];
  readonly allowEmpty?: boolean;
}

export const define: Definition = (command, act) => {
  command
    .argument('[month]', 'YYYY-MM (default: all months that are due)', monthArgument('month'))
    .option('--first-month <month>', 'the first month, at the first close', monthArgument('--first-month'))
    .option('--without <partner>', 'close although this partner sent no rows; repeatable', repeatedArgument)
    .option('--allow-empty', 'close without whatever feeds are missing, or without any rows')
    .option('--dry-run', 'show what would be issued and write nothing; also for the current month')
    .option(...NO_DELIVER)
    .action(act(doing(monthClose, (month: Month | undefined, options: CloseOptions) => ({ month, ...options }))));
};
