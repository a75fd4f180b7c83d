/** `reckoner payment`: payments, bank files and payouts. */
import type { Definition } from '../define.ts';
import { defineApply } from './payment/apply.ts';
import { defineEvents } from './payment/events.ts';
import { defineExceptions } from './payment/exceptions.ts';
import { defineImport } from './payment/import.ts';
import { defineList } from './payment/list.ts';
import { definePayouts } from './payment/payouts.ts';
import { defineRecord } from './payment/record.ts';
import { defineReverse } from './payment/reverse.ts';

export const define: Definition = (group, act) => {
  for (const each of [
    defineRecord,
    defineImport,
    defineList,
    defineApply,
    defineReverse,
    definePayouts,
    defineEvents,
    defineExceptions,
  ])
    each(group, act);
};
