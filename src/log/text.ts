/** Checkpoints in words. */
import { Month, monthName } from '#month';
import { plural } from '#text';
import { CheckpointOf } from './closing.sql.ts';

/** `3,028 facts` */
export const factsOf = ({ size }: Pick<CheckpointOf, 'size'>) => plural(size, 'fact');

/** Writes `checkpoint of 3,028 facts`. */
export const checkpointTitle = (checkpoint: Pick<CheckpointOf, 'size'>) => `checkpoint of ${factsOf(checkpoint)}`;

/**
 * The month or books that a checkpoint closes, such as `July 2026` or `the books of July 2026`. Null for a daily
 * checkpoint.
 */
export function closedBy(closes: string | null) {
  if (closes === null) return null;
  const [what, month] = closes.split(' ') as [string, Month];
  return what === 'books' ? `the books of ${monthName(month)}` : monthName(month);
}
