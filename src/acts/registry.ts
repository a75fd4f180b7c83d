/** Every act, by its name. */
import type { Act } from './act.ts';
import { invoiceHold, invoiceRelease } from './invoice/hold.ts';
import { invoiceVoid } from './invoice/void.ts';
import { paymentApply, paymentUnapply } from './payment/apply.ts';
import { paymentAssign, paymentForgetAccount } from './payment/payer.ts';
import { paymentRecord } from './payment/record.ts';
import { paymentReverse } from './payment/reverse.ts';

const ALL: readonly Act[] = [
  ...[invoiceVoid, invoiceHold, invoiceRelease],
  ...[paymentRecord, paymentApply, paymentUnapply, paymentReverse, paymentAssign, paymentForgetAccount],
];

export const ACTS: ReadonlyMap<string, Act> = new Map(ALL.map((act) => [act.name, act]));
