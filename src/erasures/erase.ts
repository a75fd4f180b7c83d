/**
 * Erases what the ledger knows of a person. Facts name people by commitments, so the texts can go without changing a
 * fact, a checkpoint or a check. What the law requires to be kept is listed in docs/personal-data.md. Refusals:
 * user_active, user_unknown, payment_unknown, partner_unknown, payment_unsettled, nothing_to_erase.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { readPartners } from '#partners/partners.sql';
import { ActorContext, recordEvent } from '#people/audit-events';
import { loginOf, readActiveUser } from '#people/users.sql';
import {
  deleteFormerSignIns,
  eraseInAttemptedEmails,
  eraseInEmails,
  insertErasures,
  paymentExists,
  readFormerAddresses,
  readKept,
  readMoneyOfAccount,
  readTextsOfContacts,
  readTextsOfMoney,
  readTextsOfUser,
  readUnsettled,
} from './erasures.sql.ts';

export type Person =
  | Readonly<{ of: 'user'; login: string }>
  | Readonly<{ of: 'payer'; account: string }>
  | Readonly<{ of: 'payment'; paymentId: number }>
  | Readonly<{ of: 'contacts'; partnerId: string }>;

const ACTION = 'person.erase';

/** It must not name the person. */
export function subjectOf(person: Person) {
  switch (person.of) {
    case 'user':
      return 'a user';
    case 'payer':
      return 'a payer';
    case 'payment':
      return `payment ${person.paymentId}`;
    case 'contacts':
      return person.partnerId;
  }
}

/** Refuses an unknown person, and one who is still needed. */
export async function textsOf(tx: Transaction, person: Person) {
  switch (person.of) {
    case 'user': {
      const login = loginOf(person.login);
      if ((await readActiveUser(tx, login)) !== undefined) throw refuse('user_active', { login });
      return readTextsOfUser(tx, { login, pattern: addressPattern([login]) });
    }
    case 'payer': {
      const { account } = person;
      const { payments, lines } = await readMoneyOfAccount(tx, { account });
      await refuseUnsettled(tx, payments);
      return readTextsOfMoney(tx, { payments, lines, account });
    }
    case 'payment': {
      const { paymentId } = person;
      if (!(await paymentExists(tx, { paymentId }))) throw refuse('payment_unknown', { payment_id: paymentId });
      await refuseUnsettled(tx, [paymentId]);
      return readTextsOfMoney(tx, { payments: [paymentId], lines: [], account: null });
    }
    case 'contacts': {
      const { partnerId } = person;
      if ((await readPartners(tx, [partnerId])).length === 0)
        throw refuse('partner_unknown', { partner_id: partnerId });
      return readTextsOfContacts(tx, { partnerId });
    }
  }
}

/** Matches a text that contains one of the addresses, but not as a part of a longer one. */
const addressPattern = (addresses: readonly string[]) =>
  `(?<![\\w.+-])(?:${addresses.map((each) => each.replaceAll(/[^\w@]/g, '\\$&')).join('|')})(?![\\w-]|[.]\\w)`;

async function refuseUnsettled(tx: Transaction, payments: readonly number[]) {
  const unsettled = await readUnsettled(tx, { payments });
  if (unsettled !== undefined) throw refuse('payment_unsettled', unsettled);
}

/** Erases the person's texts under one audit event. Returns how many there were. */
export async function erasePerson(
  tx: Transaction,
  context: ActorContext,
  { person, reason }: Readonly<{ person: Person; reason: string }>,
) {
  const commitments = await textsOf(tx, person);
  if (commitments.length === 0) throw refuse('nothing_to_erase', {});
  const { erased } = await recordErasures(tx, context, {
    commitments,
    reason,
    subject: subjectOf(person),
    of: person.of,
  });
  await eraseBesideFacts(tx, person);
  failpoint('erasure.recorded');
  return erased;
}

async function eraseBesideFacts(tx: Transaction, person: Person) {
  if (person.of === 'user') {
    await eraseInEmails(tx, { pattern: addressPattern([loginOf(person.login)]), partnerId: null });
  }
  if (person.of === 'contacts') {
    const { partnerId } = person;
    const addresses = await readFormerAddresses(tx, { partnerId });
    if (addresses.length > 0) await eraseInEmails(tx, { pattern: addressPattern(addresses), partnerId });
    await deleteFormerSignIns(tx, partnerId);
  }
}

/** What the backup of a restored ledger still contains. Returns how many texts there were. */
export async function repeatErasures(
  tx: Transaction,
  context: Pick<ActorContext, 'environment' | 'actor'>,
  earlier: readonly string[],
) {
  const commitments = await readKept(tx, { commitments: earlier });
  if (commitments.length === 0) return 0;
  const reason = 'erased before, and again after a restore';
  const given = { commitments, reason, subject: 'a restored backup', of: 'restore' };
  const { erased, eventId } = await recordErasures(tx, context, given);
  await eraseInAttemptedEmails(tx, { eventId });
  return erased;
}

async function recordErasures(
  tx: Transaction,
  { environment, actor }: Pick<ActorContext, 'environment' | 'actor'>,
  given: Readonly<{
    commitments: readonly string[];
    reason: string;
    subject: string;
    of: string;
  }>,
) {
  const { commitments, reason, subject, of } = given;
  const now = environment.now().toISO();
  const details = { of, reason, texts: commitments.length };
  const eventId = await recordEvent(tx, actor, { action: ACTION, subject, details, now });
  return { erased: await insertErasures(tx, { commitments, reason, now, eventId }), eventId };
}
