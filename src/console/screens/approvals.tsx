/** Shows one request for approval, with the effect of its action. */
import { inputInWords } from '#actions/action';
import { actionOf } from '#actions/approve';
import { digestOf } from '#actions/consequence';
import { Preview } from '#actions/run';
import { PAST, statusOf } from '#approvals/requests';
import { PreviewedChange, RequestRow, readApprovers, readRequests } from '#approvals/requests.sql';
import { addressOf, Card, Facts, Form, Instant, Joined, Marks, PageUser, Screen, TableCard } from '#console/parts';
import { Transaction } from '#database/transaction';
import { readRowsNumbered } from '#documents/rows-to-correct.sql';
import { refuse } from '#errors/refusals';
import { ListedRequest, partnersOf, requestMark } from '#lists/approvals';
import { Amount } from '#money';
import { readPartnerNames } from '#partners/partners.sql';
import { Scope } from '#people/scope';
import { capitalized } from '#text';
import { Amounts, changeColumns, Effect, pageOf, ReportText, Thing } from './effect.tsx';

export const approvalHref = (requestId: number): string => `/console/approvals/${requestId}`;

export type ApprovalView = Readonly<{
  request: ListedRequest;
  partners: ReadonlyMap<string, string>;
  things: Things;
  approvers: readonly Readonly<{ login: string; name: string }>[];
  /** What the action would do now, or why it would be refused. Neither for a decided request or one that is repeated. */
  now?: Preview;
  refused?: string;
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
    partners: await readPartnerNames(tx, partnersOf(request), PARTNERS_SHOWN),
    things: await thingsIn(tx, request),
    approvers: await readApprovers(tx, { partnerIds, besides }),
  };
}

/** More partners, as of a whole month, are counted. */
const PARTNERS_SHOWN = 20;

type Things = readonly Readonly<{ of: string; href?: string | undefined }>[];

/** The documents, payments and rows that a request names. */
async function thingsIn(tx: Transaction, { input }: RequestRow): Promise<Things> {
  const { number, numbers, creditNote, creditNotes, paymentId, paymentIds, rows } = input as Readonly<
    Record<string, string | number | undefined>
  >;
  const all = (...values: unknown[]) => values.flat().filter((each) => each !== undefined);
  const ids = all(rows) as number[];
  const quotes = ids.length === 0 ? [] : await readRowsNumbered(tx, { ids });
  return [
    ...all(number, numbers, creditNote, creditNotes).map((each) => ({ of: String(each) })),
    ...all(paymentId, paymentIds).map((each) => ({ of: `payment ${each}` })),
    ...quotes.map(({ entry_id, quote_id, requote_id }) => ({
      of: `row ${entry_id}`,
      href: addressOf('/console/rows', { quote: requote_id ?? quote_id }),
    })),
  ];
}

const linked = (links: Things) =>
  links.length > 0 && (
    <Joined>
      {links.map((each) => (
        <Thing {...each} />
      ))}
    </Joined>
  );

export function approvalScreen(
  { request, partners, things, approvers, now, refused }: ApprovalView,
  reader: PageUser,
): Screen {
  const { request_id, requester, subject, preview, status } = request;
  const isOwn = reader.login === requester;
  const mayApprove = approvers.some(({ login }) => login === reader.login);
  return {
    place: 'queue',
    title: `${actionOf(request).title}: ${partners.get(subject) ?? subject}`,
    crumbs: [{ name: 'Approvals', href: '/console/approvals' }],
    lead: <Marks marks={[requestMark(status)]} />,
    content: (
      <div class="narrow stack">
        <Card title={`Request ${request_id}`}>
          <Facts
            facts={[
              [
                partners.size === 1 ? 'Partner' : 'Partners',
                linked([...partners].map(([id, name]) => ({ of: name, href: pageOf(`partner ${id}`) }))),
              ],
              ['About', linked(things)],
              ['Requested by', by(requester, request.requested_at)],
              ...inputInWords(actionOf(request).input, request.input).map(
                (words) => [words.slice(0, words.indexOf(': ')), words.slice(words.indexOf(': ') + 2)] as const,
              ),
              ['Reason', 'reason' in (request.input as object) ? null : request.reason],
              ...(request.decision === null || request.decided_at === null
                ? ([
                    ['Expires', <Instant at={request.expires_at} />],
                    [
                      'May approve',
                      approvers.map(({ login }) => login).join(', ') ||
                        'no one yet: an administrator can grant the role',
                    ],
                  ] as const)
                : ([
                    [
                      capitalized(`${PAST[request.decision]} by`),
                      <>
                        {by(request.decided_by, request.decided_at)}
                        {request.decision_reason !== null && `: ${request.decision_reason}`}
                      </>,
                    ],
                  ] as const)),
            ]}
          />
        </Card>
        {refused !== undefined && <p class="problem">{`It can no longer be done: ${refused}`}</p>}
        {now !== undefined && digestOf(now) === request.preview_hash ? (
          <>
            <p class="soft">Nothing has changed since it was requested.</p>
            <Effect preview={{ ...now, approvers: [] }} />
          </>
        ) : (
          <>
            {now !== undefined && <Outdated asked={preview.changes} now={now.changes} />}
            <TableCard
              title="What the requester saw"
              note={<Amounts amounts={preview.amounts.map(({ amount, currency }) => Amount.of(amount, currency))} />}
              columns={changeColumns('When requested')}
              rows={preview.changes}
              nothing="No figures would change."
            >
              <div class="in">
                <ReportText text={preview.text} />
              </div>
            </TableCard>
          </>
        )}
        {status === 'waiting' && (isOwn || mayApprove) && (
          <Decide requestId={request_id} isOwn={isOwn} token={reader.formToken} />
        )}
      </div>
    ),
  };
}

const by = (login: string | null, at: string) => (
  <>
    {login}, <Instant at={at} />
  </>
);

/** What differs between the effect that was requested and the effect that the action would have now. */
function Outdated({ asked, now }: { asked: readonly PreviewedChange[]; now: readonly PreviewedChange[] }) {
  const key = ({ of, field }: PreviewedChange) => `${of} ${field}`;
  const before = new Map(asked.map((each) => [key(each), each]));
  const after = new Map(now.map((each) => [key(each), each]));
  const rows = [...new Map([...before, ...after])].flatMap(([name, { of, field }]) => {
    const [one, other] = [before.get(name)?.after ?? null, after.get(name)?.after ?? null];
    return one === other ? [] : [{ of, field, before: one, after: other }];
  });
  return (
    <>
      <p class="problem">
        It would do something else now than when it was requested, so it cannot be approved. Request it again.
      </p>
      <TableCard
        title="What changed since"
        columns={changeColumns('When requested', 'Now')}
        rows={rows}
        nothing="Only what it starts from."
      />
    </>
  );
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
