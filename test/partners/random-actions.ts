/**
 * API clients and webhooks in random histories. Beside the ledger each history keeps the secrets that it was shown and when
 * each ends by plain arithmetic; after each action every one of them opens the API, or does not, as that says.
 */
import { expect } from 'vitest';
import type { Action as LedgerAction } from '../../src/actions/action.ts';
import { clientCreate, clientRevoke, clientRotate } from '../../src/actions/client.ts';
import { webhookRemove, webhookResume, webhookRotate, webhookSet } from '../../src/actions/webhook.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { authenticate } from '../../src/partners/clients.ts';
import type { Action, History } from '../property/actions.ts';
import { confirmed } from '../property/confirmed.ts';

const DAY = 86_400_000;
const PARTNERS = ['p-1', 'p-2', 'p-3'] as const;
const WEBHOOK_KEY = 'a key of random histories'.padEnd(64, '.');

interface Secret {
  readonly text: string;
  /** In milliseconds. */
  endsAt: number;
}
interface Client {
  readonly id: string;
  readonly partnerId: string;
  /** Oldest first. */
  readonly secrets: Secret[];
  revoked: boolean;
}
interface Known {
  readonly clients: Client[];
  /** By partner; undefined: removed, or never set. */
  readonly webhooks: Map<string, { readonly url: string; readonly secrets: Set<string> }>;
}

const known = new WeakMap<History, Known>();
const knownTo = (history: History): Known => {
  const there = known.get(history) ?? { clients: [], webhooks: new Map() };
  known.set(history, there);
  return there;
};

const pick = <Value>({ random }: History, values: readonly Value[]): Value | undefined =>
  values[Math.floor(random() * values.length)];
const nowOf = ({ world }: History): number => world.environment.now().toMillis();

/** What the action reports as JSON, or the code of its refusal. */
async function doing<Input>(
  { world }: History,
  action: LedgerAction<Input, never, never>,
  input: Input,
): Promise<{ readonly code: string; readonly json: Readonly<Record<string, unknown>> }> {
  const environment = { ...world.environment, webhookKey: WEBHOOK_KEY };
  const { database, settings, actor } = world;
  try {
    const json = await confirmed({ database, settings, actor, environment }, action, input);
    return { code: 'done', json: json as Readonly<Record<string, unknown>> };
  } catch (error) {
    if (error instanceof Refusal) return { code: error.code, json: {} };
    throw error;
  }
}

/** Of the last two secrets those that have not ended. */
const live = ({ secrets, revoked }: Client, now: number): Secret[] =>
  revoked ? [] : secrets.slice(-2).filter(({ endsAt }) => endsAt > now);

async function expectClients(history: History): Promise<void> {
  const { world } = history;
  const now = world.environment.now();
  for (const client of knownTo(history).clients) {
    const opens = live(client, nowOf(history));
    for (const secret of client.secrets) {
      const given = { clientId: client.id, secret: secret.text, now };
      const found = await world.database.reading((tx) => authenticate(tx, given));
      const expected = opens.includes(secret) ? { clientId: client.id, partnerId: client.partnerId } : undefined;
      expect([client.id, client.secrets.indexOf(secret), found]).toEqual([
        ...[client.id, client.secrets.indexOf(secret), expected],
      ]);
    }
  }
}

const validity = (history: History) => pick(history, [undefined, undefined, 1, 30]);
const endOf = (history: History, validDays: number | undefined): number =>
  validDays === undefined ? Number.POSITIVE_INFINITY : nowOf(history) + validDays * DAY;

async function createClient(history: History): Promise<boolean> {
  const partnerId = pick(history, [...PARTNERS, 'p-unknown']) as string;
  const validDays = validity(history);
  const { code, json } = await doing(history, clientCreate as never, { partnerId, validDays });
  expect([partnerId, code]).toEqual([partnerId, partnerId === 'p-unknown' ? 'partner_unknown' : 'done']);
  if (code !== 'done') return false;
  const secret = { text: String(json['client_secret']), endsAt: endOf(history, validDays) };
  const client = { id: String(json['client_id']), partnerId, secrets: [secret], revoked: false };
  knownTo(history).clients.push(client);
  await expectClients(history);
  return true;
}

/** A client to do something to: made now where there is none, for the most part one that lives. */
async function someClient(history: History): Promise<Client | undefined> {
  const { clients } = knownTo(history);
  if (clients.length === 0) await createClient(history);
  const living = clients.filter(({ revoked }) => !revoked);
  return pick(history, living.length > 0 && history.random() < 0.8 ? living : clients);
}

async function rotateClient(history: History): Promise<boolean> {
  const client = await someClient(history);
  if (client === undefined) return false;
  const overlapDays = pick(history, [0, 1, 7]) as number;
  const validDays = validity(history);
  const isFull = live(client, nowOf(history)).length === 2 && overlapDays > 0;
  const expected = client.revoked ? 'client_revoked' : isFull ? 'client_secrets_live' : 'done';
  const { code, json } = await doing(history, clientRotate as never, { clientId: client.id, overlapDays, validDays });
  expect([client.id, code]).toEqual([client.id, expected]);
  if (code === 'done') {
    const previous = client.secrets.at(-1) as Secret;
    previous.endsAt = Math.min(previous.endsAt, nowOf(history) + overlapDays * DAY);
    client.secrets.push({ text: String(json['client_secret']), endsAt: endOf(history, validDays) });
  }
  await expectClients(history);
  return code === 'done';
}

async function revokeClient(history: History): Promise<boolean> {
  const client = await someClient(history);
  if (client === undefined) return false;
  // Again is the same as once.
  expect((await doing(history, clientRevoke as never, { clientId: client.id })).code).toBe('done');
  client.revoked = true;
  await expectClients(history);
  return true;
}

/** The webhooks of the ledger are those of the list, and a secret is shown when it is new alone. */
async function expectWebhooks(history: History): Promise<void> {
  const found = await history.world.sql(
    'SELECT partner_id, url FROM webhooks WHERE url IS NOT NULL ORDER BY partner_id',
  );
  const expected = [...knownTo(history).webhooks].map(([partner_id, { url }]) => ({ partner_id, url }));
  expect(found).toEqual(expected.sort((one, other) => (one.partner_id < other.partner_id ? -1 : 1)));
}

async function setWebhook(history: History): Promise<boolean> {
  const { webhooks } = knownTo(history);
  const partnerId = pick(history, PARTNERS) as string;
  const url = `https://partner.example/${partnerId}/${Math.floor(history.random() * 3)}`;
  const { code, json } = await doing(history, webhookSet as never, {
    ...{ partnerId, url },
    after: pick(history, [undefined, 0, 1_000_000]),
  });
  const present = webhooks.get(partnerId);
  if (code !== 'done') expect(code).toBe('webhook_position_unknown');
  else {
    const secrets = present?.secrets ?? new Set();
    if (present !== undefined) expect(json['secret']).toBeNull();
    else secrets.add(String(json['secret']));
    webhooks.set(partnerId, { url, secrets });
  }
  await expectWebhooks(history);
  return code === 'done';
}

const NEXT = { rotate: webhookRotate, resume: webhookResume, remove: webhookRemove } as const;

/** A webhook gets another secret, is resumed, or removed; where there is none, that is refused. */
const changeWebhook = (how: keyof typeof NEXT) => async (history: History) => {
  const { webhooks } = knownTo(history);
  if (webhooks.size === 0) await setWebhook(history);
  const partnerId = pick(history, history.random() < 0.8 ? [...webhooks.keys()] : PARTNERS) ?? 'p-1';
  const present = webhooks.get(partnerId);
  const { code, json } = await doing(history, NEXT[how] as never, { partnerId });
  expect([how, partnerId, code]).toEqual([how, partnerId, present === undefined ? 'webhook_missing' : 'done']);
  if (present !== undefined && how === 'rotate') {
    const secret = String(json['secret']);
    expect([secret.length > 20, present.secrets.has(secret)]).toEqual([true, false]);
    present.secrets.add(secret);
  }
  if (how === 'remove') webhooks.delete(partnerId);
  await expectWebhooks(history);
  return code === 'done';
};

export const API_ACTS: readonly Action[] = [
  { name: 'an API client is made', weight: 0.5, run: createClient },
  { name: 'a client gets another secret', weight: 1, run: rotateClient },
  { name: 'a client is revoked', weight: 0.5, run: revokeClient },
  { name: 'a webhook is set', weight: 0.5, run: setWebhook },
  { name: 'a webhook gets another secret', weight: 0.5, run: changeWebhook('rotate') },
  { name: 'a webhook is resumed', weight: 0.5, run: changeWebhook('resume') },
  { name: 'a webhook is removed', weight: 0.5, run: changeWebhook('remove') },
];
