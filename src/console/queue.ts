/** Pages of the work queue. Taking an item runs the action `work.assign` without a form. */
import { readInput, runAction } from '#actions/run';
import { workAssign } from '#actions/work/assign';
import { disputes } from '#lists/disputes';
import { doubledRows } from '#lists/doubled-rows';
import { heldRows } from '#lists/held-rows';
import { reversals } from '#lists/reversals';
import { addList } from './list-route.tsx';
import { Routes } from './route.ts';
import { queueHref, queueScreen, readQueue } from './screens/queue.tsx';

export function addQueue(routes: Routes): void {
  const { screen, action } = routes;
  addList(routes, '/queue/rows', { list: heldRows, place: 'queue', title: 'Held rows' });
  addList(routes, '/queue/reversals', { list: reversals, place: 'queue', title: 'Reversals' });
  addList(routes, '/queue/disputes', { list: disputes, place: 'queue', title: 'Disputes' });
  addList(routes, '/queue/doubled', { list: doubledRows, place: 'queue', title: 'Doubled rows' });
  screen(
    '/queue',
    { role: 'viewer', scope: 'partners' },
    (tx, { query, scope, user, today, context: { settings, environment } }) =>
      readQueue(tx, query, { settings, scope, user, today, now: environment.now().toMillis() }),
    queueScreen,
  );
  action('/queue', { role: 'finance', scope: 'partners' }, async ({ context }, fields) => {
    const to = fields.get('to');
    const input = readInput(workAssign, { item: fields.get('item') || undefined, ...(to ? { to } : {}) });
    await runAction(context, workAssign, input);
    const [queue, whose, after] = ['queue', 'whose', 'after'].map((name) => fields.get(name));
    return { to: queueHref({ queue, whose, after }) };
  });
}
