/**
 * The security log: refused callers by kind, network and client. In each hour, the 1st, 10th, 100th and 1000th try of a
 * caller write a row with the tries since the previous row, and the rest is written at the next refusal or when the
 * server stops. An attack is visible at once, but cannot fill the disk. A killed server loses fewer than nine times the
 * tries written.
 */
import { hostname } from 'node:os';
import { reasonOf } from '#errors/refusals';
import { IDENTIFIER } from '#partners/file';
import { networkOf, SIGN_IN } from './limits.ts';
import { insertSecurityEvents } from './server.sql.ts';
import { Service } from './service.ts';

type Kind =
  | 'exchange_refused'
  | 'exchange_locked'
  | 'webhook_refused'
  | 'webhook_locked'
  | 'sign_in_refused'
  | 'sign_in_locked'
  | 'requests_limited';

interface Tries {
  readonly kind: Kind;
  readonly network: string;
  readonly client_id: string | null;
  total: number;
  unwritten: number;
  first_at: string;
  last_at: string;
}

const MOST_CALLERS = 1000;
const WRITE_MILLISECONDS = 1000;

export class SecurityLog {
  private readonly service: Pick<Service, 'database' | 'environment' | 'log'>;
  private tries = new Map<string, Tries>();
  private hour = '';
  private due: Tries[] = [];
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<unknown> = Promise.resolve();

  constructor(service: Pick<Service, 'database' | 'environment' | 'log'>) {
    this.service = service;
  }

  record(kind: Kind, address: string, clientId?: string) {
    const now = this.service.environment.now().toISO();
    if (now.slice(0, 13) !== this.hour) {
      this.takeAll();
      this.tries = new Map();
      this.hour = now.slice(0, 13);
    }
    const client_id = clientId !== undefined && IDENTIFIER.test(clientId) ? clientId : null;
    const isFull = this.tries.size >= MOST_CALLERS;
    const own = `${kind} ${networkOf(address)} ${client_id ?? ''}`;
    const [key, network, client] =
      isFull && !this.tries.has(own)
        ? ([`${kind} others`, 'others', null] as const)
        : ([own, networkOf(address).slice(0, 64), client_id] as const);
    const each = this.tries.get(key) ?? {
      ...{ kind, network, client_id: client },
      ...{ total: 0, unwritten: 0, first_at: now, last_at: now },
    };
    this.tries.set(key, each);
    if (each.unwritten === 0) each.first_at = now;
    // If the clock was set back, the row must stay valid.
    each.last_at = now < each.first_at ? each.first_at : now;
    each.total += 1;
    each.unwritten += 1;
    if (/^10*$/.test(String(each.total))) this.due.push(taken(each));
    if (this.due.length > 0) this.timer ??= setTimeout(() => void this.write(), WRITE_MILLISECONDS).unref();
  }

  /** Records that a network, or a client within a network, reached a limit. */
  limited(kind: string, key: string) {
    const [network = '', clientId] = key.split(' ');
    const locked = { secret: 'exchange_locked', signature: 'webhook_locked' } as const;
    if (kind === 'secret' && clientId === SIGN_IN) {
      this.record('sign_in_locked', network);
      return;
    }
    const isClient = kind === 'call' && !/[.:]/.test(network);
    this.record(
      locked[kind as 'secret'] ?? 'requests_limited',
      isClient ? 'any' : network,
      isClient ? network : clientId,
    );
  }

  private takeAll() {
    this.due.push(...[...this.tries.values()].filter(({ unwritten }) => unwritten > 0).map(taken));
  }

  async flush() {
    this.takeAll();
    void this.write();
    await this.writing;
  }

  private async write() {
    clearTimeout(this.timer);
    this.timer = undefined;
    const rows = this.due.splice(0);
    if (rows.length === 0) return;
    const written = this.service.database
      .transaction((tx) => insertSecurityEvents(tx, { host: hostname(), rows: JSON.stringify(rows) }))
      .catch((error: unknown) => this.service.log.error({ reason: reasonOf(error), rows }, 'security log not written'));
    this.writing = Promise.all([this.writing, written]);
    await written;
  }
}

function taken(each: Tries) {
  const row = { ...each };
  each.unwritten = 0;
  return row;
}
