/** Shows one request for approval, with the effect of its action. */
import { actionOf } from '../../actions/approve.ts';
import { type PreviewedChange, type RequestRow, readApprovers, readRequests } from '../../approvals/requests.sql.ts';
import { PAST, statusOf } from '../../approvals/requests.ts';
import type { Transaction } from '../../database/transaction.ts';
import { refuse } from '../../errors/refusals.ts';
import { fieldWords } from '../../field-names.ts';
import { type ListedRequest, requestMark } from '../../lists/approvals.ts';
import type { Scope } from '../../people/scope.ts';
import { Card, type Column, DataTable, Form, Instant, Marks, Money, type PageUser, type Screen } from '../parts.ts';
import { ReportText } from './action.tsx';

export const approvalHref = (requestId: number): string => `/console/approvals/${requestId}`;

const Amounts = ({ amounts }: { amounts: RequestRow['preview']['amounts'] }) =>
  amounts.map(({ amount, currency }, at) => (
    <>
      {at > 0 && ', '}
      <Money amount={amount} currency={currency} />
    </>
  ));

type ApprovalView = Readonly<{
  request: ListedRequest;
  approvers: readonly Readonly<{ login: string; name: string }>[];
}>;

/** Throws approval_unknown, also for a request outside the user's scope. */
export async function readApproval(
  tx: Transaction,
  { requestId, scope, now }: { requestId: number; scope: Scope; now: number },
): Promise<ApprovalView> {
  const [request] = await readRequests(tx, { requestId, scope });
  if (request === undefined) throw refuse('approval_unknown', { request_id: requestId });
  const { partner_ids: partnerIds, requested_by: besides } = request;
  return {
    request: { ...request, status: statusOf(request, now) },
    approvers: await readApprovers(tx, { partnerIds, besides }),
  };
}

const changeColumns: readonly Column<PreviewedChange>[] = [
  { heading: 'What', cell: ({ of }) => <span class="number">{of}</span> },
  { heading: 'Field', cell: ({ field }) => <span class="soft">{fieldWords(field)}</span> },
  { heading: 'When requested', cell: ({ before }) => before ?? <span class="soft">none</span> },
  { heading: 'Then', cell: ({ after }) => <strong>{after ?? 'none'}</strong> },
];

export function approvalScreen({ request, approvers }: ApprovalView, reader: PageUser): Screen {
  const { request_id, requester, subject, preview, status } = request;
  const isOwn = reader.login === requester;
  const mayApprove = approvers.some(({ login }) => login === reader.login);
  return {
    place: 'queue',
    title: `${actionOf(request).title}: ${subject}`,
    crumbs: [{ name: 'Approvals', href: '/console/approvals' }],
    lead: <Marks marks={[requestMark(status)]} />,
    content: (
      <div class="narrow stack">
        <Card title={`Request ${request_id}`}>
          <dl class="facts">
            <dt>Requested by</dt>
            <dd>
              {requester}, <Instant at={request.requested_at} />
            </dd>
            {request.reason !== null && (
              <>
                <dt>Reason</dt>
                <dd>{request.reason}</dd>
              </>
            )}
            {request.decision === null || request.decided_at === null ? (
              <>
                <dt>Expires</dt>
                <dd>
                  <Instant at={request.expires_at} />
                </dd>
                <dt>May approve</dt>
                <dd>
                  {approvers.map(({ login }) => login).join(', ') || 'no one yet: an administrator can grant the role'}
                </dd>
              </>
            ) : (
              <>
                <dt>{`${PAST[request.decision].charAt(0).toUpperCase()}${PAST[request.decision].slice(1)} by`}</dt>
                <dd>
                  {request.decided_by}, <Instant at={request.decided_at} />
                  {request.decision_reason !== null && `: ${request.decision_reason}`}
                </dd>
              </>
            )}
          </dl>
        </Card>
        <Card title="What it would do" note={<Amounts amounts={preview.amounts} />} flush>
          <DataTable
            columns={changeColumns}
            rows={preview.changes}
            nothing="No figures would change."
            caption="Changes"
          />
          <div class="in">
            <ReportText text={preview.text} />
          </div>
        </Card>
        {status === 'waiting' && (isOwn || mayApprove) && (
          <Decide requestId={request_id} isOwn={isOwn} token={reader.formToken} />
        )}
      </div>
    ),
  };
}

type DecideProps = Readonly<{
  requestId: number;
  isOwn: boolean;
  token: string;
}>;

/** Its own form, so that pressing Enter after the reason does not approve. */
const Decide = ({ isOwn, ...request }: DecideProps) => (
  <section class="card">
    <div class="in stack">
      {!isOwn && (
        <Form action={approvalHref(request.requestId)} token={request.token}>
          <p class="buttons">
            <button type="submit" class="main" name="decision" value="approve">
              Approve and do it now
            </button>
          </p>
        </Form>
      )}
      <Form action={approvalHref(request.requestId)} token={request.token} class="stack">
        <div class="field">
          <label for="reason">{isOwn ? 'Reason' : 'Reason for rejection'}</label>
          <input id="reason" name="reason" maxLength={500} autocomplete="off" required={!isOwn} />
        </div>
        <p class="buttons">
          <button
            type="submit"
            class={isOwn ? undefined : 'danger'}
            name="decision"
            value={isOwn ? 'withdraw' : 'reject'}
          >
            {isOwn ? 'Withdraw' : 'Reject'}
          </button>
        </p>
      </Form>
    </div>
  </section>
);
