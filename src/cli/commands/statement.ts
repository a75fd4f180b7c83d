/** `reckoner statement send`. */
import { statementSend } from '../../acts/statement.ts';
import type { Month } from '../../month.ts';
import { monthArgument } from '../arguments.ts';
import type { Definition } from '../define.ts';
import { doing } from '../run-act.ts';

export const define: Definition = (statement, act) => {
  statement
    .command('send')
    .description(
      'E-mail account statements of a closed month; safe to repeat. Before its books close they are preliminary',
    )
    .option('--month <month>', 'default: the last month whose books are closed', monthArgument('--month'))
    .option('--partner <id>', 'only this partner, whether it asks for statements or not')
    .action(
      act(
        doing(statementSend, ({ month, partner: partnerId }: { month?: Month; partner?: string }) => ({
          ...{ month, partnerId },
        })),
      ),
    );
};
