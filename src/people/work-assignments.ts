/**
 * Assigns items of the work queue to users. An assignment exists only as its audit event, so no second copy could
 * differ.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { ActorContext, recordEvent } from './audit-events.ts';
import { scopeOf } from './roles.ts';
import { readActiveUser, readAssignments } from './users.sql.ts';

type AssignmentRequest = Readonly<{
  /** In the work queue, such as `dispute:INV-2026-000003`. */
  item: string;
  /** A login; undefined makes the item unassigned. */
  to: string | undefined;
  /** All of whom the person must be able to see. None: the whole ledger. */
  partnerIds: readonly string[];
}>;

export async function assignWork(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { item, to, partnerIds }: AssignmentRequest,
) {
  const user = to === undefined ? undefined : await readActiveUser(tx, to);
  if (to !== undefined && user === undefined) throw refuse('user_unknown', { login: to, acting: false });
  if (user !== undefined) {
    const scope = scopeOf(user, 'viewer');
    const sees = scope === null || (partnerIds.length > 0 && partnerIds.every((id) => scope?.includes(id) === true));
    if (user.kind !== 'person' || !sees)
      throw refuse('work_assignee_unfit', { login: user.login, is_person: user.kind === 'person', item });
  }
  const present = (await readAssignments(tx)).find((each) => each.item === item)?.login ?? null;
  if (present === (user?.login ?? null)) throw refuse('work_assigned_already', { item, login: present });
  const details = { to: user?.login ?? null, user_id: user?.user_id ?? null };
  const now = environment.now().toISO();
  await recordEvent(tx, actor, { action: 'work.assign', subject: item, details, now });
  failpoint('work.assigned');
}
