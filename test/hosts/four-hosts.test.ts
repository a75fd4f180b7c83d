/**
 * Four hosts at one database: their workers share a month, their servers are one to callers, and what must happen once
 * happens once. Each host has its own home, at ports of this machine or in a network namespace.
 */
import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeLinks, stripePayment } from '../payments/stripe-events.ts';
import { Browser } from '../support/console.ts';
import { networkNamespaces, portsOfOneMachine, type Site, whyNoNamespaces } from '../support/hosts.ts';
import { type Answer, ask, callerWith } from '../support/service.ts';
import { REACH } from '../support/sweep.ts';
import { needs } from '../support/tools.ts';
import { Company, PARTNERS, PUBLIC_URL, REQUESTS_PER_MINUTE, type Running, WEBHOOK_SECRET } from './company.ts';

const namespacesMissing = whyNoNamespaces();
const SITES: readonly [name: string, open: () => Promise<Site>, missing: string | undefined][] = [
  ['at four ports', portsOfOneMachine, undefined],
  ['in four network namespaces', networkNamespaces, namespacesMissing],
];

for (const [name, open, missing] of SITES) {
  describe(`four hosts ${name}`, { timeout: 400_000 }, () => fourHosts(open, open === networkNamespaces, missing));
}

function fourHosts(open: () => Promise<Site>, hasLinks: boolean, missing: string | undefined): void {
  let company: Company;
  let workers: Running[];
  let urls: string[];
  beforeAll(async () => {
    if (missing !== undefined) return;
    company = await Company.open(open);
    workers = await company.workers();
    urls = (await company.servers()).map(({ url }) => url);
  }, 300_000);
  afterAll(() => company?.close());
  beforeEach((context) => {
    if (missing === undefined) return;
    if (hasLinks) needs('ip', context);
    context.skip(missing);
  });

  /** A host's place in a round. */
  const nth = (turn: number): string => urls[turn % urls.length] as string;
  const sentBy = ({ said }: Running): string[] =>
    [...said().matchAll(/^\{.*"msg":"delivery".*\}$/gm)]
      .map(([line]) => JSON.parse(line) as { number: string; status: string })
      .filter(({ status }) => status === 'sent')
      .map(({ number }) => number);
  const allSent = (month: string) =>
    company.until(`SELECT count(*) FILTER (WHERE status = 'sent') = ${PARTNERS} AS is
      FROM document_emails JOIN documents USING (document_id) WHERE month = '${month}'`);

  test('each worker sends its part of a month, and nobody gets an e-mail twice', async () => {
    await company.office('close', '2026-06', '--no-deliver');
    await allSent('2026-06');
    const arrived = [...(await company.arrivals('2026-06')).values()];
    expect(arrived).toHaveLength(PARTNERS);
    expect(arrived.filter((copies) => copies.length !== 1)).toEqual([]);
    // A worker says what it sent after the database has it.
    await expect.poll(() => workers.flatMap(sentBy).length, { timeout: 10_000 }).toBe(PARTNERS);
    const shares = workers.map(sentBy);
    expect(new Set(shares.flat()).size).toBe(PARTNERS);
    // A worker takes some dozens of documents at a time. How often depends on the machine, but who waits for its turn gets some.
    for (const share of shares) expect(share.length).toBeGreaterThan(0);
  });

  describe('to callers they are one server:', () => {
    test('a token of one is good at all, and ends at all when its client is revoked', async () => {
      const credentials = await company.credentials('p-1');
      const { token } = await callerWith(nth(0), credentials);
      const headers = { authorization: `Bearer ${token}`, 'x-service-partner-id': 'p-1' };
      const statuses = () =>
        Promise.all(urls.map(async (url) => (await ask(`${url}/api/v1/invoices`, { headers })).status));
      expect(await statuses()).toEqual([200, 200, 200, 200]);
      await company.office('client', 'revoke', credentials.client_id);
      expect(await statuses()).toEqual([401, 401, 401, 401]);
    });

    test('a quote of one is accepted at all at once, and recorded once', async () => {
      const credentials = await company.credentials('p-2');
      const callers = await Promise.all(urls.map((url) => callerWith(url, credentials)));
      const made = await callers[0]?.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
      const id = made?.body['quote_id'] as string;
      const answers = await Promise.all(callers.map((caller) => caller.get(`/api/v1/quote/${id}/accept`)));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(await company.sql('SELECT FROM ledger_rows WHERE quote_id = $1', [id])).toHaveLength(1);
    });

    test('a sign-in link works once among them, a session at all of them, and signing out ends it everywhere', async () => {
      const own = { origin: PUBLIC_URL };
      const browsers = urls.map((url) => new Browser(url));
      const signedIn = await Promise.all(
        browsers.map((browser) => browser.post('/console/sign-in', { code: company.signInLink }, own)),
      );
      expect(signedIn.map(({ status }) => status).sort()).toEqual([303, 403, 403, 403]);
      const cookies = browsers.find((browser) => browser.cookies.size > 0)?.cookies ?? new Map<string, string>();
      for (const browser of browsers) for (const [key, value] of cookies) browser.cookies.set(key, value);
      const account = () => Promise.all(browsers.map(async (each) => (await each.get('/console/account')).status));
      expect(await account()).toEqual([200, 200, 200, 200]);
      expect((await browsers[2]?.post('/console/sign-out', {}, own))?.status).toBe(303);
      for (const browser of browsers) for (const [key, value] of cookies) browser.cookies.set(key, value);
      expect(await account()).toEqual([303, 303, 303, 303]);
    });
  });

  describe('they count attempts together:', () => {
    const inTurns = async (times: number, work: (url: string) => Promise<{ status: number }>): Promise<number[]> => {
      const all: number[] = [];
      for (let turn = 0; turn < times; turn += 1) all.push((await work(nth(turn))).status);
      return all;
    };
    const everywhere = (work: (url: string) => Promise<Answer>) =>
      Promise.all(urls.map(async (url) => (await work(url)).status));

    test('after ten wrong secrets in all, each says to wait; the right one works at each', async () => {
      const { client_id, client_secret } = await company.credentials('p-3');
      const exchange = (secret: string) => (url: string) =>
        ask(`${url}/api/oauth/token`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ client_id, client_secret: secret }),
        });
      expect(await inTurns(10, exchange('wrong'))).toEqual(Array(10).fill(401));
      expect(await everywhere(exchange('wrong'))).toEqual([429, 429, 429, 429]);
      expect(await everywhere(exchange(client_secret))).toEqual([200, 200, 200, 200]);
    });

    test('after ten wrong sign-in links in all, three of them above, each says to wait', async () => {
      const guess = (url: string) =>
        ask(`${url}/console/sign-in`, {
          method: 'POST',
          body: `code=${'A'.repeat(43)}`,
          headers: {
            'content-type': 'application/x-www-form-urlencoded',
            'sec-fetch-site': 'same-origin',
            origin: PUBLIC_URL,
          },
        });
      expect(await inTurns(7, guess)).toEqual(Array(7).fill(403));
      expect(await everywhere(guess)).toEqual([429, 429, 429, 429]);
    });

    test('a payment page has three sign-in links sent in all', async () => {
      const [page] = await company.sql<{ token: string }>('SELECT token FROM current_links LIMIT 1');
      const request = (url: string) => new Browser(url).post(`/place/ask/${page?.token}`, {}, { origin: PUBLIC_URL });
      expect(await inTurns(3, request)).toEqual([200, 200, 200]);
      expect((await request(nth(3))).status).toBe(429);
      await company.until(`SELECT count(*) = 3 AS is FROM partner_sign_in_links`);
    });

    test('a client’s calls at one are known to the others within seconds', async () => {
      const credentials = await company.credentials('p-4');
      const callers = await Promise.all(urls.map((url) => callerWith(url, credentials)));
      const call = async (caller = callers[0]) => (await caller?.get('/api/v1/policies'))?.status;
      const answered: unknown[] = [];
      for (let calls = 0; calls < REQUESTS_PER_MINUTE + 1; calls += 1) answered.push(await call());
      expect(answered.at(-1)).toBe(429);
      for (const caller of callers.slice(1)) {
        await expect.poll(() => call(caller), { timeout: 15_000, interval: 300 }).toBe(429);
      }
    });
  });

  test('an event of the processor that all of them get at once is processed once', async () => {
    const invoices = await company.sql<{ number: string; cents: number }>(
      `SELECT number, (balance * 100)::integer AS cents FROM documents JOIN document_balances USING (document_id)
       WHERE month = '2026-06' ORDER BY document_id LIMIT 8`,
    );
    const payments = invoices.map(({ number, cents }, index) =>
      stripePayment({ invoice: number, amount: cents, key: `H${index}`, on: '2026-09-01' }),
    );
    const events = payments.flatMap((each) => [each.completed(), each.intentSucceeded()]);
    await makeLinks((text, values) => company.sql(text, values), events);
    const told = await Promise.all(events.flatMap((event) => urls.map((url) => webhook(url, JSON.stringify(event)))));
    expect(new Set(told.map(({ status }) => status))).toEqual(new Set([200]));
    await company.until(`SELECT count(*) = 8 AS is FROM payment_applications`);
    const [counted] = await company.sql(
      `SELECT (SELECT count(*)::int FROM processor_events) AS events, (SELECT count(*)::int FROM payments) AS payments,
              (SELECT count(*)::int FROM documents JOIN document_balances USING (document_id)
               WHERE month = '2026-06' AND status = 'paid') AS paid`,
    );
    expect(counted).toEqual({ events: 16, payments: 8, paid: 8 });
  });

  test('what a killed host had in hand the others finish: nothing is lost, and only what was under way may come twice', async () => {
    const [victim] = workers as [Running];
    await company.office('close', '2026-07', '--no-deliver');
    const before = company.mail.mails.length;
    while (company.mail.mails.length < before + PARTNERS / 4) await sleep(5);
    victim.process.kill('SIGKILL');
    expect(await victim.ended).toBe('SIGKILL');
    await allSent('2026-07');
    await expectOnceOrRepeated('2026-07');
  });

  // Minutes of waiting, so nightly alone.
  test.runIf(hasLinks && REACH === 'long')(
    'a host whose link is cut is noticed, and does no harm when its link is back',
    async () => {
      const [, victim] = workers as [Running, Running];
      await company.office('close', '2026-08', '--no-deliver');
      await company.until(`SELECT count(*) > 0 AS is FROM document_emails JOIN documents USING (document_id)
      WHERE month = '2026-08' AND document_emails.status = 'sending'`);
      victim.host.cut();
      // It takes a minute until the database gives its sessions up.
      await allSent('2026-08');
      victim.host.mend();
      // It has lost its claims, and ends by itself: its supervisor starts another.
      expect(await victim.ended).not.toBe(0);
      await expectOnceOrRepeated('2026-08');
    },
  );

  const webhook = (url: string, body: string): Promise<Answer> => {
    const at = Math.floor(Date.parse('2026-09-01T12:00:00Z') / 1000);
    const signature = createHmac('sha256', WEBHOOK_SECRET).update(`${at}.${body}`).digest('hex');
    const headers = { 'content-type': 'application/json', 'stripe-signature': `t=${at},v1=${signature}` };
    return ask(`${url}/webhooks/stripe`, { method: 'POST', headers, body });
  };

  /** By the rule of docs/operations.md: what has an unknown outcome is repeated once, with the same bytes. */
  async function expectOnceOrRepeated(month: string): Promise<void> {
    const arrived = await company.arrivals(month);
    expect([...arrived].filter(([, copies]) => copies.length === 0)).toEqual([]);
    const unclear = await company.sql<{ message_id: string }>(
      `SELECT message_id FROM email_attempts WHERE outcome = 'unclear'`,
    );
    const repeated = new Set(unclear.map(({ message_id }) => message_id));
    const twice = [...arrived].filter(([, copies]) => copies.length > 1);
    for (const [messageId, copies] of twice) {
      expect({ messageId, copies: copies.length, known: repeated.has(messageId) }).toEqual({
        ...{ messageId, copies: 2, known: true },
      });
      expect(new Set(copies).size).toBe(1);
    }
  }
}
