/** The e-mail that tells the auditor a month's seal on the day it is made. */
import { query, queryOne, type Transaction } from '../../database/transaction.ts';
import { mailDomain } from '../../documents/issue/context.ts';
import type { EmailComposer, EmailContext } from '../../mail/email.ts';
import { issuerView } from '../../mail/issuer-view.ts';
import { queueEmails } from '../../mail/queries.ts';
import { type Month, monthName } from '../../month.ts';
import type { Seal } from '../../seals/queries.ts';

export const sealEmail: EmailComposer = {
  kind: 'seal',
  queueDue,
  async compose(tx, { month }, { environment, settings }, templates) {
    if (settings.auditor_email === '') return { held: 'settings.json has no auditor_email' };
    const { seal, record, sealed_at } = await queryOne<Pick<Seal, 'seal' | 'record' | 'sealed_at'>>(
      tx,
      `SELECT seal, record, sealed_at FROM seals WHERE month = :month`,
      { month },
    );
    return {
      to: { name: 'Auditor', address: settings.auditor_email },
      cc: [],
      content: templates.render('seal', {
        sandbox: environment.name === 'sandbox',
        issuer: issuerView(settings.issuer),
        ...{ month: monthName(month as Month), seal, shortSeal: seal.slice(0, 16), record: record.trimEnd() },
      }),
      attachments: [],
      date: sealed_at,
    };
  },
};

/** A seal made this lately is mailed; of those made before there was an address, the latest alone, which binds them all. */
const NEWS_FOR_DAYS = 7;

/** Each month that was sealed lately, and the latest. */
async function queueDue(tx: Transaction, { environment, settings }: EmailContext): Promise<void> {
  if (settings.auditor_email === '') return;
  const now = environment.now();
  const months = await query<{ month: Month }>(
    tx,
    `SELECT month FROM seals s
     WHERE (sealed_at >= :since::timestamptz OR month = (SELECT max(month) FROM seals))
       AND NOT EXISTS (SELECT FROM emails e WHERE e.kind = 'seal' AND e.month = s.month) ORDER BY month`,
    { since: now.minus({ days: NEWS_FOR_DAYS }).toISO() },
  );
  if (months.length === 0) return;
  const emails = months.map(({ month }) => ({ kind: 'seal', month, name: `seal.${month}` }) as const);
  await queueEmails(tx, emails, { now: now.toISO(), eventId: null, mailDomain: mailDomain(settings) });
}
