/**
 * The sign-off of a closed month: who closed it, e-mails sent, the latest verify, and obstacles to closing its books,
 * which completes it.
 */
import { ComponentChildren } from 'preact';
import { VerifyResult } from '#audit/tasks';
import { readTasks } from '#audit/tasks.sql';
import { findObstacles } from '#close/books';
import { MonthFacts } from '#close/months.sql';
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { ActionLink, Card, Icon, Instant, Seer, Tone } from '#console/parts';
import { Remedies } from '#console/remedies';
import { Transaction } from '#database/transaction';
import { factsOf, Refusal } from '#errors/refusals';
import { HandOff } from '#reports/books.sql';
import { readHandOffsOf } from '#reports/hand-offs';
import { readWaitingApprovals, WaitingApproval } from '#reports/waiting-approvals';
import { Month, monthName, plural } from '#values';
import { readSignatures, Signature } from './close.sql.ts';

export type SignOff = Readonly<{
  signatures: readonly Signature[];
  obstacles: readonly Refusal[];
  requests: readonly WaitingApproval[];
  /** The latest complete verify after the close. */
  verified: Readonly<{ at: string; differences: number }> | null;
  /** Empty while the books are open. */
  handOffs: readonly HandOff[];
}>;

export async function readSignOff(
  tx: Transaction,
  context: { environment: Environment; settings: Settings },
  month: Month,
): Promise<SignOff> {
  const signatures = await readSignatures(tx, { month });
  const [task] = await readTasks(tx, { kind: 'verify', limit: 1 });
  const closedAt = signatures.find(({ close }) => close === 'month')?.at ?? '';
  const requests = await readWaitingApprovals(tx, context.environment.now());
  const checks = (task?.result as VerifyResult | null | undefined)?.checks;
  return {
    signatures,
    obstacles: await findObstacles(tx, context, { month }),
    requests: requests.filter(({ action, subject }) => action === 'books.close' && subject === month),
    verified:
      task?.finished_at && checks !== undefined && task.asked_at > closedAt
        ? { at: task.finished_at, differences: checks.reduce((sum, { differences }) => sum + differences, 0) }
        : null,
    handOffs: signatures.some(({ close }) => close === 'books') ? await readHandOffsOf(tx, { ...context, month }) : [],
  };
}

export function SignOffCard({
  month,
  signOff: { signatures, obstacles, requests, verified, handOffs },
  deliveries: { sent, pending, held, failed, uncertain },
  user,
}: {
  month: Month;
  signOff: SignOff;
  deliveries: MonthFacts['deliveries'];
  user: Seer;
}) {
  const unsent = pending + held + failed + uncertain;
  return (
    <Card title="Sign-off">
      <ul class="ticks">
        {signatures.map((signature) => (
          <Signed {...signature} />
        ))}
        {unsent === 0 ? (
          <SignOffLine tone="good">{`${plural(sent, 'e-mail')} sent, none waiting`}</SignOffLine>
        ) : (
          <SignOffLine tone="warn">{`${plural(unsent, 'e-mail')} not sent`}</SignOffLine>
        )}
        <SignOffLine tone={verified === null ? 'plain' : verified.differences === 0 ? 'good' : 'bad'}>
          <a href="/console/audit/checks">
            {verified === null
              ? 'Not verified since it was closed'
              : verified.differences === 0
                ? 'Verified since, without differences'
                : `Verified since, with ${plural(verified.differences, 'difference')}`}
          </a>
          {verified !== null && (
            <>
              <br />
              <span class="soft">
                <Instant at={verified.at} />
              </span>
            </>
          )}
        </SignOffLine>
        {obstacles.map((obstacle) => (
          <Obstacle obstacle={obstacle} user={user} />
        ))}
        {requests.map((request) => (
          <WaitingRequest {...request} />
        ))}
        {obstacles.length === 0 && requests.length === 0 && !signatures.some(({ close }) => close === 'books') && (
          <SignOffLine tone="plain">{`The books of ${monthName(month)} can be closed`}</SignOffLine>
        )}
        {handOffs.map((handOff) => (
          <HandedOff {...handOff} user={user} />
        ))}
      </ul>
    </Card>
  );
}

export const SignOffLine = ({ tone, children }: { tone: Tone; children: ComponentChildren }) => (
  <li>
    <Icon kind={tone === 'good' ? 'done' : tone === 'plain' ? 'wait' : 'missing'} tone={tone} />
    <span>{children}</span>
  </li>
);

export const WaitingRequest = ({ request_id, requested_by }: WaitingApproval) => (
  <SignOffLine tone="plain">
    <a href={`/console/approvals/${request_id}`}>{`Request ${request_id}`}</a>
    {` of ${requested_by} waits for approval`}
  </SignOffLine>
);

const Signed = ({ close, by, at, approver }: Signature) => (
  <SignOffLine tone="good">
    {`${close === 'month' ? 'Billing' : 'Books'} closed by ${by}`}
    {approver !== null && `, approved by ${approver}`}
    <br />
    <span class="soft">
      <Instant at={at} />
    </span>
  </SignOffLine>
);

function HandedOff({ month, format, state, user }: HandOff & { user: Seer }) {
  if (state === 'final') {
    return (
      <SignOffLine tone="good">
        <a href="/console/reports/general-ledger">Exported</a>
        {` for ${format}`}
      </SignOffLine>
    );
  }
  return (
    <SignOffLine tone="warn">
      {format === null
        ? 'Not exported for the general ledger'
        : `Exported for ${format} before its books were closed, and changed since`}
      <br />
      <ActionLink
        user={user}
        action="gl.export"
        partner={null}
        input={format === null ? { month } : { month, format }}
        tone="plain"
      >
        Export
      </ActionLink>
    </SignOffLine>
  );
}

/** In a few words. The action's page explains it in full. */
function Obstacle({ obstacle, user }: { obstacle: Refusal; user: Seer }) {
  const earlier = factsOf(obstacle, 'earlier_books_open');
  if (earlier !== undefined) {
    return (
      <SignOffLine tone="warn">
        <a href={`/console/close/${earlier.open}`}>{`The books of ${monthName(earlier.open)}`}</a> close first
      </SignOffLine>
    );
  }
  const duplicates = factsOf(obstacle, 'possible_duplicates_open');
  if (duplicates !== undefined) {
    return (
      <SignOffLine tone="warn">
        <a href="/console/payments">{plural(duplicates.payments.length, 'payment')}</a> may be counted twice
      </SignOffLine>
    );
  }
  const bank = [
    ...(factsOf(obstacle, 'bank_feed_behind')?.accounts ?? []).map(
      ({ account, reported_to }) => `Bank account ${account} is reported through ${reported_to}`,
    ),
    ...(factsOf(obstacle, 'bank_feed_gap')?.gaps ?? []).map(({ reason }) => reason),
  ];
  if (bank.length === 0) {
    return (
      <SignOffLine tone="warn">
        {obstacle.message} <Remedies remedies={obstacle.remedies} user={user} partner={null} tone="small" />
      </SignOffLine>
    );
  }
  return bank.map((sentence) => (
    <SignOffLine tone="warn">
      {sentence}
      <br />
      <ActionLink user={user} action="payment.import" partner={null} tone="plain">
        Import a bank file
      </ActionLink>
    </SignOffLine>
  ));
}
