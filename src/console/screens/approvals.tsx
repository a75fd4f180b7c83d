/** Requests for approval: what waits for a second person, and one request with what its act would do. */
import { actOf } from '../../acts/approve.ts';
import { type PreviewedChange, type RequestRow, readApprovers, readRequests } from '../../approvals/queries.ts';
import { PAST, type RequestStatus, statusOf } from '../../approvals/requests.ts';
import type { Transaction } from '../../database/transaction.ts';
import { refuse } from '../../errors/refusals.ts';
import type { Scope } from '../../people/scope.ts';
import { plural } from '../../text.ts';
import { Form } from '../form.tsx';
import { Card, Chip, type Column, DataTable, Instant, Money, type Tone } from '../kit.tsx';
import type { Reader, Screen } from '../page.tsx';
import { ReportText } from './act.tsx';

export const approvalHref = (requestId: number): string => `/console/approvals/${requestId}`;

interface Listed extends RequestRow {
  readonly status: RequestStatus;
}

export interface ApprovalsView {
  readonly waiting: boolean;
  readonly requests: readonly Listed[];
}

const LISTED = 200;

/** Those that wait, or the latest of all. `now` is in milliseconds. */
export async function readApprovals(
  tx: Transaction,
  { scope, waiting, now }: { scope: Scope; waiting: boolean; now: number },
): Promise<ApprovalsView> {
  const all = await readRequests(tx, { undecided: waiting, scope, limit: LISTED });
  const requests = all.map((each) => ({ ...each, status: statusOf(each, now) }));
  return { waiting, requests: requests.filter(({ status }) => !waiting || status === 'waiting') };
}

const TONES: Readonly<Record<RequestStatus, Tone>> = {
  waiting: 'warn',
  expired: 'plain',
  approved: 'good',
  rejected: 'bad',
  withdrawn: 'plain',
};

const Amounts = ({ amounts }: { amounts: RequestRow['preview']['amounts'] }) =>
  amounts.map(({ amount, currency }, at) => (
    <>
      {at > 0 && ', '}
      <Money amount={amount} currency={currency} />
    </>
  ));

const requestColumns: readonly Column<Listed>[] = [
  {
    heading: 'Request',
    cell: ({ request_id }) => (
      <a class="row number" href={approvalHref(request_id)}>
        {request_id}
      </a>
    ),
  },
  { heading: 'Status', cell: ({ status }) => <Chip tone={TONES[status]}>{status}</Chip> },
  { heading: 'Act', cell: (request) => actOf(request).title },
  { heading: 'To', cell: ({ subject }) => subject },
  { heading: 'Asked by', cell: ({ requester }) => <span class="soft">{requester}</span> },
  { heading: 'Asked at', cell: ({ requested_at }) => <Instant at={requested_at} /> },
  { heading: 'Amount', number: true, cell: ({ preview }) => <Amounts amounts={preview.amounts} /> },
];

export const approvalsScreen = ({ waiting, requests }: ApprovalsView): Screen => ({
  place: 'queue',
  title: 'Approvals',
  lead: waiting ? `${plural(requests.length, 'request')} to decide` : 'all requests, the latest first',
  content: (
    <>
      <ul class="tabs">
        <li>
          <a href="/console/approvals" aria-current={waiting ? 'page' : undefined}>
            Waiting
          </a>
        </li>
        <li>
          <a href="/console/approvals?all=yes" aria-current={waiting ? undefined : 'page'}>
            All
          </a>
        </li>
      </ul>
      <Card title={plural(requests.length, 'request')} flush>
        <DataTable
          columns={requestColumns}
          rows={requests}
          nothing="Nobody has asked for approval."
          caption="Requests for approval"
        />
      </Card>
    </>
  ),
});

export interface ApprovalView {
  readonly request: Listed;
  readonly approvers: readonly { readonly login: string; readonly name: string }[];
}

/** Refusal: approval_unknown, also for one out of scope. */
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
  { heading: 'Field', cell: ({ field }) => <span class="soft">{field}</span> },
  { heading: 'When asked', cell: ({ before }) => before ?? <span class="soft">none</span> },
  { heading: 'Then', cell: ({ after }) => <strong>{after ?? 'none'}</strong> },
];

export function approvalScreen({ request, approvers }: ApprovalView, reader: Reader): Screen {
  const { request_id, requester, subject, preview, status } = request;
  const isOwn = reader.login === requester;
  const mayApprove = approvers.some(({ login }) => login === reader.login);
  return {
    place: 'queue',
    title: `${actOf(request).title}: ${subject}`,
    crumbs: [{ name: 'Approvals', href: '/console/approvals' }],
    lead: <Chip tone={TONES[status]}>{status}</Chip>,
    content: (
      <div class="narrow stack">
        <Card title={`Request ${request_id}`}>
          <dl class="facts">
            <dt>Asked by</dt>
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
                  {approvers.map(({ login }) => login).join(', ') || 'nobody yet: an administrator gives the role'}
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
            nothing="No figure would change."
            caption="Changes"
          />
          <div class="in">
            <ReportText act={actOf(request)} reader={reader} text={preview.text} />
          </div>
        </Card>
        {status === 'waiting' && (isOwn || mayApprove) && (
          <Decide requestId={request_id} isOwn={isOwn} token={reader.formToken} />
        )}
      </div>
    ),
  };
}

interface DecideProps {
  readonly requestId: number;
  readonly isOwn: boolean;
  readonly token: string;
}

/**
 * Whoever asked withdraws; another one with the role approves or rejects. A rejection is a form of its own, so that Enter
 * after its reason approves nothing.
 */
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
          <label for="reason">{isOwn ? 'Reason' : 'Reason to reject it'}</label>
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
