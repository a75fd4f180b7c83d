/**
 * The e-mails about approvals: the request goes to the users who may decide, the decision to the requester. The status
 * lists the requests of programs, which read no e-mail.
 */

import { requestNumbered, statusOf } from '#approvals/requests';
import { RequestRow, readApprovers } from '#approvals/requests.sql';
import { Transaction } from '#database/transaction';
import { EmailComposer, letterView, oneLine } from '#mail/email';
import { OtherEmailKind } from '#mail/kinds';
import { isOneAddress } from '#mail/message';
import { queueEmails } from '#mail/outbox.sql';
import { ActorContext } from '#people/audit-events';
import { readActiveUser } from '#people/users.sql';
import { minuteOf, moneyText } from '#values';
import { DueApproval, readDueApprovalDecisions, readDueApprovalRequests } from './due.sql.ts';

/** Decisions that are too old are not reported. */
const NEWS_FOR_DAYS = 7;

/** The request's page shows the whole list. */
const CHANGES_SHOWN = 20;
const LINES_SHOWN = 40;

export const approvalRequestEmail: EmailComposer = {
  kind: 'approval_request',
  async queueDue(tx, context) {
    const due = await readDueApprovalRequests(tx, { now: context.environment.now().toISO() });
    await queueOnce(tx, context, 'approval_request', due);
  },
  async compose(tx, email, context, templates) {
    const request = await requestNumbered(tx, email.approval_request_id as number);
    const status = statusOf(request, context.environment.now().toMillis());
    if (status !== 'waiting') return { withdrawn: `the request was ${status} before it was sent` };
    const { partner_ids: partnerIds, requested_by: besides } = request;
    const [first, ...others] = (await readApprovers(tx, { partnerIds, besides })).filter((each) =>
      isOneAddress(each.login),
    );
    if (first === undefined) {
      const role = partnerIds === null ? 'approver' : `approver [--partner ${partnerIds.join(' or ')}]`;
      return { held: `no one may decide request ${request.request_id}: give a user the role ${role}` };
    }
    const lines = request.preview.text.split('\n').map(printedLine);
    const { changes } = request.preview;
    return {
      to: { name: first.name, address: first.login },
      cc: others.map(({ login }) => login),
      content: templates.render('approval_request', {
        ...viewOf(request, context),
        reason: request.reason === null ? '' : oneLine(request.reason),
        expires: minuteOf(request.expires_at),
        changes: changes.slice(0, CHANGES_SHOWN).map(({ of, field, before, after }) => ({
          ...{
            of: oneLine(of),
            field: oneLine(field),
            before: oneLine(before ?? 'none'),
            after: oneLine(after ?? 'none'),
          },
        })),
        moreChanges: changes.length > CHANGES_SHOWN ? String(changes.length - CHANGES_SHOWN) : '',
        report: lines.slice(0, LINES_SHOWN).join('\n'),
        moreLines: lines.length > LINES_SHOWN ? String(lines.length - LINES_SHOWN) : '',
      }),
      attachments: [],
    };
  },
};

export const approvalDecisionEmail: EmailComposer = {
  kind: 'approval_decision',
  async queueDue(tx, context) {
    const now = context.environment.now();
    const due = await readDueApprovalDecisions(tx, {
      now: now.toISO(),
      since: now.minus({ days: NEWS_FOR_DAYS }).toISO(),
    });
    await queueOnce(tx, context, 'approval_decision', due);
  },
  async compose(tx, email, context, templates) {
    const request = await requestNumbered(tx, email.approval_request_id as number);
    const requester = await readActiveUser(tx, request.requester);
    if (requester?.user_id !== request.requested_by) return { withdrawn: 'the requester was deactivated' };
    const status = statusOf(request, context.environment.now().toMillis());
    const { decision_reason: reason, decided_by: decider } = request;
    return {
      to: { name: requester.name, address: requester.login },
      cc: [],
      content: templates.render('approval_decision', {
        ...viewOf(request, context),
        ...{ status, approved: status === 'approved', expired: status === 'expired' },
        ...{ repeats: request.preview.repeats === true, expires: minuteOf(request.expires_at) },
        decidedBy: decider === null ? '' : oneLine(decider),
        decidedAt: minuteOf(request.decided_at ?? request.expires_at),
        reason: reason === null ? '' : oneLine(reason),
      }),
      attachments: [],
    };
  },
};

const printedLine = (line: string) => line.replaceAll(/\p{Cc}|\p{Cf}/gu, '');

const viewOf = (request: RequestRow, { environment, settings }: ActorContext) => ({
  ...letterView({ environment, settings }),
  request: String(request.request_id),
  title: request.preview.title,
  subjectOfAction: oneLine(request.subject),
  requester: oneLine(request.requester),
  amount: request.preview.amounts.map(({ amount, currency }) => moneyText(amount, currency)).join(', '),
  address:
    settings.public_url === ''
      ? ''
      : `${settings.public_url.replace(/\/+$/, '')}/console/approvals/${request.request_id}`,
});

async function queueOnce(tx: Transaction, context: ActorContext, kind: OtherEmailKind, due: readonly DueApproval[]) {
  if (due.length === 0) return;
  const emails = due.map(({ request_id, event_id }) => ({
    ...{ kind, approval_request_id: request_id, event_id, name: `${kind.replace('_', '-')}.${request_id}` },
  }));
  await queueEmails(tx, emails, context);
}
