/** Reads all findings, except findings that the status derives from its own data (reports/status.ts). */
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { readApprovals } from './approvals.ts';
import { readAwaitedFiles } from './bank-files.ts';
import { readDisputes, readHolds, readUnreplaced } from './documents.ts';
import { readDeliveries, readLinks, readOtherEmails } from './emails.ts';
import { FINDING_KINDS, Finding, FindingKind, FindingQuestion, ReadFindings, SEE, toRun } from './finding.ts';
import { readJobFindings, readLateRequests } from './machine.ts';
import { readDoubled, readHeld, readRequested, readReversedByProcessor, readStated } from './rows.ts';

const KINDS: readonly ReadFindings[] = [
  ...[
    readApprovals,
    readHeld,
    readDoubled,
    readRequested,
    readReversedByProcessor,
    readStated,
    readHolds,
    readUnreplaced,
    readDisputes,
    readDeliveries,
    readOtherEmails,
    readLinks,
  ],
  readLateRequests,
  readJobFindings,
];

export async function readFindings(
  tx: Transaction,
  question: FindingQuestion & { readonly settings: Settings },
): Promise<Finding[]> {
  const found = await readAwaitedFiles(tx, question);
  for (const read of KINDS) found.push(...(await read(tx, question)));
  return found;
}

/** How many findings of each kind a list of all kinds shows. */
const NAMED = 20;

const listOf = (kind: FindingKind) =>
  kind === 'receipts'
    ? SEE.exceptions
    : kind === 'approvals'
      ? SEE.approvals
      : toRun('See all of them', `work list --kind ${kind}`, `/console/queue?queue=${kind}`);

/**
 * Returns the first findings of each kind in the work queue, with a count of the others. Machine findings are not
 * limited.
 */
export function capped(findings: readonly Finding[]): Finding[] {
  const counts = new Map<FindingKind, number>();
  const shown = findings.filter(({ kind }) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= NAMED || !isListed(kind);
  });
  const more = [...counts].flatMap(([kind, count]) => {
    if (count <= NAMED || !isListed(kind)) return [];
    const last = findings.findLast((each) => each.kind === kind) as Finding;
    const rest = count - NAMED;
    return [
      {
        ...last,
        ...{ item: `more:${kind}`, title: kind, partners: [], money: null, reason: '', count: rest },
        ...{ urgent: `And ${rest} more of ${kind}.`, remedies: [listOf(kind)] },
      },
    ];
  });
  return [...shown, ...more];
}

const isListed = (kind: FindingKind) => FINDING_KINDS.some((each) => each === kind);
