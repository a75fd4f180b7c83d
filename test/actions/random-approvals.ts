/**
 * Approvals in random histories: actions that rules hold, and what becomes of their requests. Each history keeps a plain list
 * of its requests, which says beforehand who may decide what, whose amount needs a second person, and what must be done
 * once a request is approved, in whole units of the currency.
 */
import { expect } from 'vitest';
import { approveRequest, endRequest } from '../../src/actions/approve.ts';
import { ACTIONS as REGISTRY } from '../../src/actions/loaded.ts';
import { runAction } from '../../src/actions/run.ts';
import { readRequests } from '../../src/approvals/requests.sql.ts';
import { statusOf } from '../../src/approvals/requests.ts';
import type { ApprovalRule } from '../../src/config/settings.ts';
import type { DocumentJson } from '../../src/documents/document.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { hasRole, outcomeOf, peopleOf, pick, working } from '../people/random-actions.ts';
import type { Action, History } from '../property/actions.ts';

const RULES: Readonly<Record<string, ApprovalRule>> = {
  'invoice.void': { above: { USD: '10.00', JPY: '500' } },
  'invoice.credit': { above: { USD: '3.00' } },
  'invoice.write_off': { above: { USD: '5.00', KWD: '2.000' } },
  'invoice.hold': { always: true },
};
/** Credit and write-offs of one partner count together, whoever did them. */
const ADJUSTMENTS: ApprovalRule = { above: { USD: '6.00', EUR: '6.00', KWD: '3.000' } };
const ADJUSTING = ['invoice.credit', 'invoice.write_off'];

/** What the action itself may refuse. Nothing is asked for then. */
const OWN_REFUSALS: readonly string[] = [
  ...['document_void', 'payment_applied', 'credit_used', 'document_written_off', 'document_on_hold'],
  ...['credit_exceeds_invoice', 'credit_repeated', 'nothing_to_write_off', 'not_an_invoice', 'carried_over'],
];

type Status = 'waiting' | 'expired' | 'approved' | 'rejected' | 'withdrawn';

interface Asked {
  readonly action: string;
  readonly input: { readonly number: string; readonly amount?: string };
  /** The login, and the person: another one may have the same address later. */
  readonly by: string;
  readonly userId: number;
  readonly partner: string;
  readonly expiresAt: number;
  /** What the preview was made of. */
  readonly face: string;
  readonly balance: string;
  decided?: Status;
}

const known = new WeakMap<History, Map<number, Asked>>();
const requestsOf = (history: History): Map<number, Asked> => {
  const requests = known.get(history) ?? new Map<number, Asked>();
  known.set(history, requests);
  return requests;
};

/** In whole smallest units, so that nothing here calculates as the program does. */
const units = (amount: string): bigint => BigInt(amount.replace('.', ''));

/** What was done without a second person while somebody could have been one. */
interface Done {
  readonly action: string;
  readonly userId: number;
  readonly partner: string;
  readonly currency: string;
  readonly moved: bigint;
  readonly at: number;
}

const doneAlone = new WeakMap<History, Done[]>();
const doneIn = (history: History): Done[] => {
  const acts = doneAlone.get(history) ?? [];
  doneAlone.set(history, acts);
  return acts;
};

/** Whether an act needs a second person by its own rule or by that for adjustments, with what was done in 30 days. */
function needsApproval(history: History, { action, userId, partner, currency, moved, at }: Done): boolean {
  const recent = doneIn(history).filter(
    (each) => each.partner === partner && each.currency === currency && each.at > at - 30 * 86_400_000,
  );
  const isAbove = (rule: ApprovalRule, before: readonly Done[]) => {
    const limit = 'above' in rule ? rule.above[currency] : undefined;
    return limit === undefined || before.reduce((sum, each) => sum + each.moved, moved) > units(limit);
  };
  const own = recent.filter((each) => each.action === action && each.userId === userId);
  const adjusted = recent.filter((each) => ADJUSTING.includes(each.action));
  return isAbove(RULES[action] as ApprovalRule, own) || (ADJUSTING.includes(action) && isAbove(ADJUSTMENTS, adjusted));
}

/** What a credit comes to: its amount and the tax of it, which is less than a fifth; how much, its documents are asked. */
const credited = ({ gross, invoiceAmount }: Invoice, amount: string): { least: bigint; most: bigint } => {
  const least = inUnitsOf(amount, invoiceAmount);
  return { least, most: gross === undefined ? least : least + least / 5n + 1n };
};

interface Invoice extends DocumentJson {
  readonly onHold: boolean;
}

async function invoicesOf({ world }: History): Promise<Invoice[]> {
  const held = await world.sql<{ number: string }>(
    'SELECT number FROM current_holds JOIN documents USING (document_id)',
  );
  const numbers = new Set(held.map(({ number }) => number));
  const documents = (await world.documents()).filter((each) => each.document === 'invoice');
  return documents.map((each) => ({ ...each, onHold: numbers.has(each.number) }));
}

async function invoiceNumbered(history: History, number: string): Promise<Invoice> {
  const found = (await invoicesOf(history)).find((each) => each.number === number);
  if (found === undefined) throw new Error(`there is no ${number}`);
  return found;
}

/** All of a document that the preview of an action on it compares, and more. */
const faceOf = ({ payment_link: _, pdf: __, ...document }: Invoice): string => JSON.stringify(document);

const statusAt = ({ decided, expiresAt }: Asked, now: number): Status =>
  decided ?? (expiresAt <= now ? 'expired' : 'waiting');

/** The requests of the ledger are those of the list, with the same states. */
async function expectRequests(history: History): Promise<void> {
  const now = history.world.environment.now().toMillis();
  const rows = await history.world.database.reading((tx) => readRequests(tx, {}));
  const found = rows.map((row) => [row.request_id, row.action, row.subject, row.requester, statusOf(row, now)]);
  const expected = [...requestsOf(history)].map(([id, asked]) => [
    ...[id, asked.action, asked.input.number, asked.by, statusAt(asked, now)],
  ]);
  expect(found.reverse()).toEqual(expected);
}

/** What an action left as it was: all documents, and the e-mails to send. */
const books = async ({ world }: History): Promise<unknown> => [
  await world.documents(),
  await world.sql('SELECT email_id, status FROM emails ORDER BY email_id'),
];

function inputFor(history: History, action: string, { number, invoiceAmount }: Invoice): Asked['input'] {
  const reason = 'as agreed';
  if (action !== 'invoice.credit') return { number, reason } as Asked['input'];
  const half = String(1 + Math.floor(Number.parseInt(invoiceAmount, 10) / 2));
  return { number, reason, amount: pick(history, [invoiceAmount, half, '1']), again: true } as Asked['input'];
}

/** Somebody does an action for which a rule may want a second person. */
async function ask(history: History): Promise<boolean> {
  const people = await peopleOf(history);
  const action = pick(history, Object.keys(RULES)) as string;
  const document = pick(history, await invoicesOf(history));
  if (document === undefined) return false;
  const by = pick(history, [...people.roles.keys()].sort()) as string;
  const { partner_id: partner, currency } = document;
  const input = inputFor(history, action, document);
  const context = await working(history, by);
  const before = await books(history);
  const approvals = { ...RULES, adjustments: ADJUSTMENTS };
  const approving = { ...context, settings: { ...context.settings, approvals } };
  const done = await runAction(approving, REGISTRY.get(action) as never, input as never, { deliver: false }).then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof Refusal) return error;
      throw error;
    },
  );
  const held = people.roles.get(by) ?? new Set();
  // While nobody else can approve it, a rule does not bind.
  const approvers = [...people.roles].filter(([login, roles]) => login !== by && hasRole(roles, 'approver', [partner]));
  if (!hasRole(held, 'finance', [partner])) {
    expect([by, action, done?.code]).toEqual([by, action, 'role_needed']);
  } else if (done === undefined || done.code === 'approval_needed') {
    const { least, most } = credited(document, input.amount ?? '0');
    const amounts: Readonly<Record<string, readonly bigint[]>> = {
      'invoice.void': [units(document.gross ?? document.invoiceAmount)],
      'invoice.write_off': [units(document.balance)],
      'invoice.credit': [least, most],
    };
    const userId = context.actor.user?.user_id as number;
    const act = { action, userId, partner, currency, at: history.world.environment.now().toMillis() };
    const needs = (amounts[action] ?? [0n]).map(
      (moved) => approvers.length > 0 && needsApproval(history, { ...act, moved }),
    );
    expect([action, input, needs]).toEqual([action, input, expect.arrayContaining([done !== undefined])]);
    if (done === undefined && approvers.length > 0) {
      const moved = action === 'invoice.credit' ? await lastCredit(history) : (amounts[action]?.[0] ?? 0n);
      doneIn(history).push({ ...act, moved });
    }
  } else {
    expect([action, input, OWN_REFUSALS]).toEqual([action, input, expect.arrayContaining([done.code])]);
  }
  if (done !== undefined) expect(await books(history)).toEqual(before);
  if (done?.code === 'approval_needed') {
    const userId = context.actor.user?.user_id as number;
    noteRequest(history, done.facts, { action, input, by, userId, partner, ...shown(document) });
    expect(done.facts['approvers']).toEqual(approvers.map(([login]) => login).sort());
  }
  await expectRequests(history);
  return done === undefined || done.code === 'approval_needed';
}

/** What the latest credit note comes to, with tax. */
async function lastCredit({ world }: History): Promise<bigint> {
  const [note] = await world.sql<{ gross: string; digits: number }>(
    `SELECT gross, minor_digits(currency) AS digits FROM documents WHERE document = 'credit_note'
     ORDER BY document_id DESC LIMIT 1`,
  );
  const [whole = '0', part = ''] = (note?.gross ?? '').split('.');
  return BigInt(whole + part.padEnd(note?.digits ?? 0, '0'));
}

const shown = (document: Invoice) => ({ face: faceOf(document), balance: document.balance });

/** A new request takes the place of those for the same; the same one is only told of again. */
function noteRequest(history: History, facts: Refusal['facts'], asked: Omit<Asked, 'expiresAt'>): void {
  const requests = requestsOf(history);
  const id = facts['request_id'] as number;
  const now = history.world.environment.now().toMillis();
  const alike = [...requests].filter(
    ([, each]) =>
      each.action === asked.action &&
      each.userId === asked.userId &&
      JSON.stringify(each.input) === JSON.stringify(asked.input) &&
      statusAt(each, now) === 'waiting',
  );
  expect(facts['is_new']).toBe(!alike.some(([each]) => each === id));
  if (facts['is_new'] !== true) return;
  // What would do the same is not asked for twice.
  for (const [, each] of alike) {
    expect(each.face).not.toBe(asked.face);
    each.decided = 'withdrawn';
  }
  const days = history.world.settings.approvals_expire_days;
  requests.set(id, { ...asked, expiresAt: now + days * 86_400_000 });
}

type Decision = 'approve' | 'reject' | 'withdraw';

/** What must become of a decision; undefined: its action says so, which has been touched since. */
function expectedOf(
  asked: Asked,
  {
    decision,
    by,
    userId,
    people,
    now,
  }: { decision: Decision; by: string; userId: number; people: ReadonlyMap<string, Set<string>>; now: number },
): string | undefined {
  const isOwn = userId === asked.userId;
  const roles = people.get(by) ?? new Set<string>();
  if (decision === 'withdraw' && !isOwn) return 'approval_of_another';
  if (decision !== 'withdraw' && isOwn) return 'approval_own';
  if (decision !== 'withdraw' && !hasRole(roles, 'approver', [asked.partner])) return 'role_needed';
  if (asked.decided !== undefined) return 'approval_decided';
  if (decision === 'approve' && asked.expiresAt <= now) return 'approval_expired';
  return decision === 'approve' ? undefined : 'done';
}

/** Somebody decides on a request, whoever may and whoever may not, before and after its end. */
async function decide(history: History): Promise<boolean> {
  const people = await peopleOf(history);
  const requests = requestsOf(history);
  const now = history.world.environment.now().toMillis();
  const open = [...requests].filter(([, each]) => statusAt(each, now) === 'waiting');
  const [requestId, asked] = pick(history, open.length > 0 && history.random() < 0.8 ? open : [...requests]) ?? [];
  if (requestId === undefined || asked === undefined) return false;
  const decision = pick(history, ['approve', 'approve', 'approve', 'reject', 'withdraw'] as const) as Decision;
  const mayWithdraw = people.roles.has(asked.by) ? [asked.by] : [];
  const others = [...people.roles.keys()].sort();
  const by = pick(history, decision === 'withdraw' && history.random() < 0.7 ? mayWithdraw : others) ?? others[0];
  const context = await working(history, by as string);
  const before = await books(history);
  const document = await invoiceNumbered(history, asked.input.number);
  const deciding =
    decision === 'approve'
      ? approveRequest(context, requestId, { reason: null, deliver: false })
      : endRequest(context, requestId, decision, decision === 'reject' ? 'not so' : null);
  const done = await outcomeOf(deciding);
  const told = [requestId, asked, decision, by] as const;
  const asker = people.roles.get(asked.by);
  const userId = context.actor.user?.user_id as number;
  const expected = expectedOf(asked, { ...{ decision, by: by as string, userId, now }, people: people.roles });
  if (decision === 'approve' && asker === undefined) expect([...told, done]).toEqual([...told, 'user_unknown']);
  else if (decision === 'approve' && !(await isAsker(history, asked)))
    expect([...told, done]).toEqual([...told, 'user_unknown']);
  else if (decision === 'approve' && !hasRole(asker ?? new Set(), 'finance', [asked.partner]))
    expect([...told, done]).toEqual([...told, 'role_needed']);
  else if (expected !== undefined) expect([...told, done]).toEqual([...told, expected]);
  else expectApproved(asked, document, done);
  if (done === 'done')
    asked.decided = ({ approve: 'approved', reject: 'rejected', withdraw: 'withdrawn' } as const)[decision];
  if (done === 'done' && decision === 'approve')
    expectDone(asked, document, await invoiceNumbered(history, document.number));
  else expect(await books(history)).toEqual(before);
  await expectRequests(history);
  return done === 'done';
}

/** Whether the person who asked is still the user of that address. */
async function isAsker(history: History, { by, userId }: Asked): Promise<boolean> {
  return (await working(history, by)).actor.user?.user_id === userId;
}

/** What is as it was when it was asked for is done; what would come to another balance is not. */
function expectApproved(asked: Asked, document: Invoice, done: string): void {
  const isSame = asked.face === faceOf(document);
  const movesOther = asked.action !== 'invoice.hold' && asked.balance !== document.balance;
  // Its credit may be used elsewhere by now, which the action refuses.
  if (isSame) expect([asked, ['done', ...OWN_REFUSALS]]).toEqual([asked, expect.arrayContaining([done])]);
  else if (movesOther)
    expect([asked, ['approval_outdated', ...OWN_REFUSALS]]).toEqual([asked, expect.arrayContaining([done])]);
  else expect(['done', 'approval_outdated', ...OWN_REFUSALS]).toContain(done);
}

/** The action was done to its document, once and in its amount. */
function expectDone({ action, input }: Asked, before: Invoice, after: Invoice): void {
  switch (action) {
    case 'invoice.void':
      expect([before.status === 'void', after.status]).toEqual([false, 'void']);
      break;
    case 'invoice.credit': {
      const { least, most } = credited(before, input.amount ?? '');
      const added = units(after.credited) - units(before.credited);
      expect([input, least <= added, added <= most]).toEqual([input, true, true]);
      break;
    }
    case 'invoice.write_off':
      expect([units(before.balance) > 0n, units(after.balance)]).toEqual([true, 0n]);
      break;
    default:
      expect([before.onHold, after.onHold]).toEqual([false, true]);
  }
}

/** `3` in the smallest units in which `0.00` is written. */
function inUnitsOf(amount: string, like: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.');
  return BigInt(whole + fraction.padEnd(like.split('.')[1]?.length ?? 0, '0'));
}

export const APPROVAL_ACTS: readonly Action[] = [
  { name: 'an action that may need approval is asked for', weight: 3, run: ask },
  // Only a request that waits is decided.
  { name: 'a request for approval is decided', weight: 4, rare: true, run: decide },
];
