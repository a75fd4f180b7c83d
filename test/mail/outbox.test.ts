/** The outbox while several processes work on it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Composition, EmailComposer } from '../../src/mail/email.ts';
import { queueEmails } from '../../src/mail/outbox.sql.ts';
import { type EmailResult, sendOtherEmails } from '../../src/mail/outbox.ts';
import { openWorld, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

test.each<Composition>([{ withdrawn: 'nothing is to be said any more' }, { held: 'an address is missing' }])(
  'an e-mail that another process tried while it was composed is not set aside: %j',
  async (composed) => {
    await world.sql(`DELETE FROM emails`);
    await world.database.transaction((tx) =>
      queueEmails(tx, [{ kind: 'status', name: `status.${Object.keys(composed)[0]}` }], world),
    );
    const composer: EmailComposer = {
      kind: 'status',
      async compose() {
        // The other process does not know whether the mail server took the message.
        await world.sql(
          `UPDATE emails SET attempts = 1, unclear_attempts = 1, message = 'as sent', recipients = '{ops@partner.example}',
                envelope_from = 'billing@protection.example', message_sha256 = 'x', attempted_at = now()`,
        );
        return composed;
      },
    };
    const results: EmailResult[] = [];
    await sendOtherEmails({ ...world, composers: [composer], onEmail: (result) => results.push(result) });
    expect(results).toMatchObject([{ status: 'elsewhere' }]);
    expect(await world.sql('SELECT status, unclear_attempts, message FROM emails')).toEqual([
      { status: 'queued', unclear_attempts: 1, message: Buffer.from('as sent') },
    ]);
  },
);
