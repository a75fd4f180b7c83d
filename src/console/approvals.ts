import { actionOf, approveRequest, endRequest, previewRequest } from '#actions/approve';
import { LINE } from '#actions/fields';
import { DECISIONS } from '#approvals/requests.sql';
import { Refusal, refuse } from '#errors/refusals';
import { approvals } from '#lists/approvals';
import { doneOf, laterOf } from './actions.ts';
import { addList } from './list-route.tsx';
import { Access, Routes, Visit } from './route.ts';
import { ApprovalView, approvalHref, approvalScreen, readApproval } from './screens/approvals.tsx';

const READ: Access = { role: 'viewer', scope: 'partners' };

export function addApprovals(routes: Routes): void {
  const { screen, action } = routes;
  addList(routes, '/approvals', { list: approvals, place: 'queue', title: 'Approvals' });
  screen(
    '/approvals/:id',
    READ,
    async (tx, visit) => {
      const view = await readApproval(tx, { requestId: idOf(visit), scope: visit.scope, now: nowOf(visit) });
      return { ...view, ...(view.request.status === 'waiting' && (await effectNow(visit, view.request.request_id))) };
    },
    (view, { reader }) => approvalScreen(view, reader),
  );
  // Enough, because `approveRequest` and `endRequest` check who may decide.
  action('/approvals/:id', { ...READ, proof: true }, async (visit, fields) => {
    const { context, scope } = visit;
    const requestId = idOf(visit);
    const { request } = await context.database.reading((tx) =>
      readApproval(tx, { requestId, scope, now: nowOf(visit) }),
    );
    const decision = DECISIONS.find((each) => each === fields.get('decision'));
    const reason = reasonOf(fields.get('reason'));
    if (decision === undefined)
      throw refuse('request_invalid', { problems: [{ path: 'decision', reason: 'is missing' }] });
    if (decision === 'approve') {
      const action = actionOf(request);
      const report = await approveRequest(context, requestId, { reason, ...laterOf(action, visit) });
      if (!report.isDone) return { to: approvalHref(requestId) };
      const input = request.input as Readonly<Record<string, unknown>>;
      return doneOf(action, visit, report, input, [{ name: `Request ${requestId}`, href: approvalHref(requestId) }]);
    }
    if (decision === 'reject' && reason === null) {
      throw refuse('request_invalid', { problems: [{ path: 'reason', reason: 'is needed to reject' }] });
    }
    await endRequest(context, requestId, decision, reason);
    return { to: approvalHref(requestId) };
  });
}

/** What the requested action would do now, or why it would be refused. */
async function effectNow({ context }: Visit, requestId: number): Promise<Pick<ApprovalView, 'now' | 'refused'>> {
  try {
    const now = await previewRequest(context, requestId);
    return now === undefined ? {} : { now };
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    return { refused: thrown.message };
  }
}

const nowOf = ({ context: { environment } }: Visit) => environment.now().toMillis();

function idOf({ params, request }: Visit) {
  const { id = '' } = params;
  if (!/^[1-9]\d{0,14}$/.test(id)) throw refuse('page_unknown', { path: request.url });
  return Number(id);
}

function reasonOf(given: string | undefined) {
  if (given === undefined || given.trim() === '') return null;
  const read = LINE.safeParse(given);
  if (read.success) return read.data;
  throw refuse('request_invalid', { problems: [{ path: 'reason', reason: read.error.issues[0]?.message ?? '' }] });
}
