/** `reckoner checkpoint`: seals the rows and facts of the open month so far, and sends its letter. */
import { checkpointTake } from '../../acts/ledger.ts';
import { type Definition, type DeliverOption, NO_DELIVER } from '../define.ts';
import { doing } from '../run-act.ts';

export const define: Definition = (command, act) => {
  command.option(...NO_DELIVER).action(act(doing(checkpointTake, (options: DeliverOption) => options)));
};
