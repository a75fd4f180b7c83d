/** Erasing the personal texts of a user, a payer or former contacts (erasures/erase.ts). */
import { Transaction } from '#database/transaction';
import { erasePerson, Person, subjectOf, textsOf } from '#erasures/erase';
import { keepErasures } from '#erasures/file';
import { refuseField } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { countPlaces } from '#log/personal.sql';
import { plural } from '#text';
import { defineAction, Facts, partner, reason, text, whole } from './action.ts';

type Given = Readonly<{
  user?: string | undefined;
  payerAccount?: string | undefined;
  payment?: number | undefined;
  partnerContact?: string | undefined;
}>;

function personOf({ user, payerAccount, payment, partnerContact }: Given) {
  const persons: Person[] = [
    ...(user === undefined ? [] : [{ of: 'user', login: user } as const]),
    ...(payerAccount === undefined ? [] : [{ of: 'payer', account: payerAccount } as const]),
    ...(payment === undefined ? [] : [{ of: 'payment', paymentId: payment } as const]),
    ...(partnerContact === undefined ? [] : [{ of: 'contacts', partnerId: partnerContact } as const]),
  ];
  const [person, ...others] = persons;
  if (person !== undefined && others.length === 0) return person;
  const reason = 'is needed, or one of the other three: a user, an account, a payment or a partner';
  throw refuseField('user', user ?? '', reason);
}

export const personErase = defineAction({
  name: 'person.erase',
  danger: true,
  title: 'Erase the personal data of a person',
  command: {
    called: 'erase',
    options: { user: '--user <email>', payment: '--payment <id>', partnerContact: '--partner-contact <partner>' },
    help: `Erases names, addresses and texts about one person. The facts that named the
person, the checkpoints and 'verify' stay as they are; readers see (erased).
--user: a deactivated user. --payer-account, --payment: what the bank and the
processor reported of a payer, once the payments are applied. --partner-contact:
the contacts of a partner except the present one. Issued PDFs and backups keep
what they contain: docs/personal-data.md says for how long.
It cannot be undone. Try --dry-run first.`,
    dryRun: 'only show how many texts would be erased',
  },
  role: 'administrator',
  input: {
    user: text('User', 'The e-mail address of a deactivated user.').optional(),
    payerAccount: text('Account of a payer', 'The bank account of a payer, with all payments from it.').optional(),
    payment: whole('Payment', 'One payment.').optional(),
    partnerContact: partner('A partner, whose former contacts are erased.').optional(),
    reason: reason(),
  },
  check(input) {
    personOf(input);
  },
  subject: (input) => subjectOf(personOf(input)),
  perform: (tx, context, { reason, ...input }) => erasePerson(tx, context, { person: personOf(input), reason }),
  committed: ({ database, environment }) => {
    failpoint('erasure.committed');
    return keepErasures(database, environment);
  },
  facts: (tx, { reason: _, ...input }, done) => factsOf(tx, personOf(input), done !== undefined),
  report: async ({ result: erased, preview }) => ({
    json: { erased },
    text: preview
      ? `${plural(erased, 'text')} would be erased.`
      : `${plural(erased, 'text')} were erased. Backups made before still contain them.`,
  }),
});

async function factsOf(tx: Transaction, person: Person, isDone: boolean): Promise<Facts> {
  if (isDone) return {};
  const places = await countPlaces(tx, { commitments: await textsOf(tx, person) });
  return Object.fromEntries(places.map(({ table, places }) => [table, { 'personal texts': String(places) }]));
}
