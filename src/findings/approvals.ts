/** Findings for undecided requests for approval that have not expired. */

import { statusOf } from '#approvals/requests';
import { readRequests } from '#approvals/requests.sql';
import { readPartnerNames } from '#partners/partners.sql';
import { minuteOf, moneyText } from '#values';
import { Finding, ReadFindings, toRun } from './finding.ts';

export const readApprovals: ReadFindings = async (tx, { scope, now, limit }) => {
  const open = await readRequests(tx, { undecided: true, scope, ...(limit !== null && { limit }) });
  const requests = open.filter((request) => statusOf(request, now) === 'waiting').reverse();
  const names = await readPartnerNames(
    tx,
    requests.flatMap(({ partner_ids }) => partner_ids ?? []),
  );
  return requests.map((request): Finding => {
    const { request_id, action, subject, requester, reason, requested_at, expires_at } = request;
    const [amount, ...more] = request.preview.amounts;
    const also = more.map((each) => moneyText(each.amount, each.currency)).join(' and ');
    return {
      ...{ item: `approval:${request_id}`, kind: 'approvals', state: 'to approve', tone: 'warn' },
      ...{ title: `${action} ${subject}`, money: amount ?? null, since: requested_at.slice(0, 10) },
      partners: (request.partner_ids ?? []).map((id) => ({ id, name: names.get(id) ?? id })),
      reason: `${also === '' ? '' : `also ${also}; `}requested by ${requester}${reason === null ? '' : `: ${reason}`}`,
      urgent:
        `Request ${request_id} by ${requester} waits for approval until ${minuteOf(expires_at)}: ${action} of ` +
        `${subject}.`,
      remedies: [toRun('Decide on it', `approval show ${request_id}`, `/console/approvals/${request_id}`)],
    };
  });
};
