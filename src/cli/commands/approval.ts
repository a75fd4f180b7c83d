import { actionOf, approveRequest, endRequest, previewRequest } from '#actions/approve';
import { Change, digestOf } from '#actions/consequence';
import { PAST, requestNumbered, statusOf } from '#approvals/requests';
import { RequestRow, readApprovers } from '#approvals/requests.sql';
import {
  acting,
  CommandContext,
  Definition,
  EXIT,
  idArgument,
  NO_DELIVER,
  Output,
  outputWidth,
  printable,
  REASON,
  Refusal,
  table,
  withContext,
} from '#cli/command';
import { inFull } from '#cli/remedies';
import { withNotes } from '#cli/run-action';
import { requestJson } from '#lists/approvals';
import { minuteOf } from '#text';

const NUMBER = ['<request>', 'the number of the request', idArgument('<request>')] as const;

export const define: Definition = (approval, action) => {
  approval
    .command('show')
    .argument(...NUMBER)
    .description('Show what a request would have done when it was made, and what it would do now')
    .action(action(show));
  approval
    .command('approve')
    .argument(...NUMBER)
    .description("Approve another user's request and carry it out now (an import of rows: the requester repeats it)")
    .option(...REASON)
    .option(...NO_DELIVER)
    .action(action(acting(approve)));
  approval
    .command('reject')
    .argument(...NUMBER)
    .description("Reject another user's request")
    .requiredOption(...REASON)
    .action(action(acting(reject)));
  approval
    .command('withdraw')
    .argument(...NUMBER)
    .description('Withdraw your own request')
    .option(...REASON)
    .action(action(acting(withdraw)));
};

const listed = ({ environment }: CommandContext, request: RequestRow) =>
  requestJson({ ...request, status: statusOf(request, environment.now().toMillis()) });

/** Reads from the primary, because the current preview runs in a transaction that is rolled back. */
const show = (output: Output, requestId: number) =>
  withContext(async (context) => showRequest({ ...context, output }, requestId), { writesNothing: true });

async function showRequest(context: CommandContext, requestId: number) {
  const { database, output } = context;
  const { request, approvers } = await database.reading(async (tx) => {
    const found = await requestNumbered(tx, requestId);
    const { partner_ids: partnerIds, requested_by: besides } = found;
    return { request: found, approvers: await readApprovers(tx, { partnerIds, besides }) };
  });
  const facts = listed(context, request);
  const now = facts.status === 'waiting' ? await previewNow(context, request) : null;
  const { changes, text } = request.preview;
  const details = { input: request.input, changes, text, preview_hash: request.preview_hash };
  output.print({ ...facts, ...details, now, approvers: approvers.map(({ login }) => login) }, () =>
    [
      `Request ${requestId}, ${facts.status}: ${actionOf(request).title}, ${printable(request.subject)}`,
      [
        `Requested by ${request.requester} ${minuteOf(request.requested_at)}${because(request.reason)}`,
        ...(request.decision === null
          ? [`Expires ${minuteOf(request.expires_at)}`]
          : [
              `${PAST[request.decision]} by ${request.decided_by} ${minuteOf(request.decided_at ?? '')}${because(request.decision_reason)}`,
            ]),
        ...(facts.status === 'waiting'
          ? [`May approve: ${approvers.map(({ login }) => login).join(', ') || 'no one yet'}`]
          : []),
      ].join('\n'),
      changes.length === 0 ? 'No figures change.' : changeTable(changes),
      text,
      ...(now === null ? [] : [describeNow(now)]),
    ].join('\n\n'),
  );
}

const because = (reason: string | null) => (reason === null ? '' : `: ${printable(reason)}`);

const changeTable = (changes: readonly Change[]) =>
  table(
    ['~what', 'field', '~then', '~after'],
    changes.map(({ of, field, before, after }) => [printable(of), field, before ?? 'none', after ?? 'none']),
  );

type Now = Readonly<{
  is_same: boolean;
  changes: readonly Change[];
  /** Why the request would now be refused. */
  refused: string | null;
}>;

async function previewNow(context: CommandContext, request: RequestRow) {
  try {
    const consequence = await previewRequest(context, request.request_id);
    if (consequence === undefined) return null;
    const { changes } = consequence;
    return { is_same: digestOf(consequence) === request.preview_hash, changes, refused: null };
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    return { is_same: false, changes: [], refused: refusal.message };
  }
}

function describeNow({ is_same, changes, refused }: Now) {
  if (refused !== null) return `It would now be refused: ${refused}`;
  if (is_same) return 'It would do the same now.';
  return `It would now do something else, so it cannot be approved:\n${changeTable(changes)}`;
}

type Options = Readonly<{
  reason?: string;
  deliver?: boolean;
}>;

async function approve(context: CommandContext, requestId: number, options: Options) {
  const { output } = context;
  const { reason = null, deliver = true } = options;
  const wide = { ...context, width: outputWidth() };
  const report = await withNotes(output, deliver, (heard) =>
    approveRequest(wide, requestId, { reason, deliver, ...heard }),
  );
  const text = await inFull(report);
  output.print({ request_id: requestId, decision: 'approve', result: report.json }, () =>
    [`Request ${requestId} is approved${report.isDone ? ', and done' : ''}.`, text].join('\n\n'),
  );
  for (const note of report.notes ?? []) output.note(note);
  return report.attention ? EXIT.attention : EXIT.done;
}

async function reject(context: CommandContext, requestId: number, { reason }: Options) {
  await end(context, requestId, 'reject', reason);
}

async function withdraw(context: CommandContext, requestId: number, { reason }: Options) {
  await end(context, requestId, 'withdraw', reason);
}

async function end(
  context: CommandContext,
  requestId: number,
  decision: 'reject' | 'withdraw',
  reason: string | undefined,
) {
  await endRequest(context, requestId, decision, reason ?? null);
  context.output.print({ request_id: requestId, decision }, () => `Request ${requestId} is ${PAST[decision]}.`);
}
