/** `reckoner invoice`: documents and their corrections. */
import type { Definition } from '../define.ts';
import { defineCredit } from './invoice/credit.ts';
import { defineHold } from './invoice/hold.ts';
import { defineList } from './invoice/list.ts';
import { definePdf } from './invoice/pdf.ts';
import { defineRerun } from './invoice/rerun.ts';
import { defineResend } from './invoice/resend.ts';
import { defineShow } from './invoice/show.ts';
import { defineVoid } from './invoice/void.ts';
import { defineWriteOff } from './invoice/write-off.ts';

export const define: Definition = (group, act) => {
  for (const each of [
    defineList,
    defineShow,
    definePdf,
    defineRerun,
    defineResend,
    defineVoid,
    defineCredit,
    defineWriteOff,
    defineHold,
  ])
    each(group, act);
};
