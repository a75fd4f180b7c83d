/**
 * An identity provider: the certified one of the package oidc-provider, run as in an installation. Its sign-in page
 * asks no questions, and its pages are requested without a browser. forging-provider.ts issues what no real provider
 * does.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { DateTime } from 'luxon';
import { Provider } from 'oidc-provider';
import { consoleSchema } from '../../src/config/console.ts';
import { ADMINISTRATOR, invite, serveConsole } from './console.ts';
import type { Served } from './service.ts';
import { openWorld, type World } from './world.ts';

export interface Person {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly name?: string;
  readonly groups?: readonly string[] | string;
}

/** The settings that an operator of the provider chooses. */
export interface ProviderSettings {
  /** How the client proves itself at the token endpoint. */
  readonly authentication: 'client_secret_post' | 'client_secret_basic';
  /** If false, claims are in the ID token; if true, only at the userinfo endpoint. */
  readonly claimsAtUserinfo: boolean;
  readonly logout: boolean;
}

export const CLIENT_SECRET = 'a-secret-of-the-tests';
const USUAL: ProviderSettings = { authentication: 'client_secret_post', claimsAtUserinfo: false, logout: true };
const SIGN_IN_PAGE = /^\/interaction\//;

export class IdentityProvider {
  issuer = '';
  /** The person who signs in next; null if the person cancels. */
  person: Person | null = { sub: 'nobody' };
  /** How often each thing was requested. */
  readonly asked = new Map<string, number>();
  #down = false;
  #handle: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) => response.end();
  #settings = USUAL;
  #keys: JWK[] = [];
  #clientUrl = '';
  #provider: Provider | undefined;
  /** Accounts are kept after the next sign-in, because a token remains about the person for whom it was issued. */
  readonly #people = new Map<string, Person>();
  readonly #server = createServer((request, response) => {
    const path = (request.url ?? '').replace(/\?.*/, '');
    this.asked.set(path, (this.asked.get(path) ?? 0) + 1);
    if (this.#down) response.writeHead(503).end('<h1>Down for maintenance</h1>');
    else if (SIGN_IN_PAGE.test(path)) void this.#signIn(request, response);
    else this.#handle(request, response);
  });

  static async open(): Promise<IdentityProvider> {
    const provider = new IdentityProvider();
    await new Promise<void>((resolve) => provider.#server.listen(0, '127.0.0.1', resolve));
    provider.issuer = `http://127.0.0.1:${(provider.#server.address() as AddressInfo).port}`;
    await provider.rotateKeys();
    return provider;
  }

  /** Registers the console, which is served at this address. */
  register(clientUrl: string): void {
    this.#clientUrl = clientUrl;
    this.set({});
  }

  /** Restarts with changed settings. Signed-in users stay signed in. */
  set(changed: Partial<ProviderSettings>): void {
    this.#settings = { ...USUAL, ...changed };
    this.#down = false;
    const { authentication, claimsAtUserinfo, logout } = this.#settings;
    const provider = new Provider(this.issuer, {
      adapter: Kept,
      clients: [
        {
          client_id: 'reckoner',
          client_secret: CLIENT_SECRET,
          token_endpoint_auth_method: authentication,
          redirect_uris: [`${this.#clientUrl}/console/sign-in/provider/callback`],
          post_logout_redirect_uris: [`${this.#clientUrl}/console/sign-in`],
          id_token_signed_response_alg: 'ES256',
        },
      ],
      clientAuthMethods: [authentication],
      jwks: { keys: this.#keys },
      cookies: { keys: ['a key of the tests'] },
      scopes: ['openid', 'email', 'profile', 'groups'],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
      conformIdTokenClaims: claimsAtUserinfo,
      enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: logout } },
      interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Interaction: 600, Session: 3600, Grant: 3600 },
      findAccount: (_context: unknown, sub: string) => {
        const person = this.#people.get(sub);
        return person && { accountId: sub, claims: () => person };
      },
      loadExistingGrant: async ({ oidc }: { oidc: { session: { accountId: string } } }) => {
        const grant = new provider.Grant({ clientId: 'reckoner', accountId: oidc.session.accountId });
        grant.addOIDCScope('openid email profile groups');
        await grant.save();
        return grant;
      },
    });
    this.#provider = provider;
    this.#handle = provider.callback();
  }

  /** Signs with a new key from now on. The old one is no longer published. */
  async rotateKeys(): Promise<void> {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    this.#keys = [{ ...(await exportJWK(privateKey)), kid: randomUUID(), use: 'sig', alg: 'ES256' }];
    if (this.#clientUrl !== '') this.set(this.#settings);
  }

  /** Everything is answered by a proxy's page of maintenance. */
  stop(): void {
    this.#down = true;
  }

  async #signIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { person } = this;
    if (person !== null) this.#people.set(person.sub, person);
    const result = person === null ? { error: 'access_denied' } : { login: { accountId: person.sub } };
    await this.#provider?.interactionFinished(request, response, result);
  }

  end(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

type Content = Record<string, unknown>;

/** The provider's store of grants and sessions, which lasts while the tests of a file run. */
class Kept {
  static readonly #all = new Map<string, Content>();
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }
  #key(id: string): string {
    return `${this.#name}:${id}`;
  }
  async upsert(id: string, content: Content): Promise<void> {
    Kept.#all.set(this.#key(id), content);
  }
  async find(id: string): Promise<Content | undefined> {
    return Kept.#all.get(this.#key(id));
  }
  async findByUid(uid: string): Promise<Content | undefined> {
    return [...Kept.#all].find(([key, content]) => key.startsWith(this.#key('')) && content['uid'] === uid)?.[1];
  }
  async consume(id: string): Promise<void> {
    const content = Kept.#all.get(this.#key(id));
    if (content) content['consumed'] = Math.floor(Date.now() / 1000);
  }
  async destroy(id: string): Promise<void> {
    Kept.#all.delete(this.#key(id));
  }
  async revokeByGrantId(grantId: string): Promise<void> {
    for (const [key, content] of Kept.#all) if (content['grantId'] === grantId) Kept.#all.delete(key);
  }
}

/** A browser at the provider, which follows redirects and keeps cookies. */
export class ProviderVisitor {
  readonly #cookies = new Map<string, string>();
  readonly #provider: IdentityProvider;

  constructor(provider: IdentityProvider) {
    this.#provider = provider;
  }

  /** The address to which the provider sends the browser back, or the page at which it stays. */
  async follow(address: string, init: RequestInit = {}): Promise<{ to: string } | { status: number; text: string }> {
    let at = address;
    let asking = init;
    for (let step = 0; step < 10; step += 1) {
      const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
      const headers = { ...(asking.headers as Record<string, string> | undefined), cookie };
      const answer = await fetch(at, { redirect: 'manual', ...asking, headers });
      for (const line of answer.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (/expires=Thu, 01 Jan 1970/i.test(line)) this.#cookies.delete(name);
        else this.#cookies.set(name, value);
      }
      const text = await answer.text();
      const to = answer.headers.get('location');
      if (to === null) return { status: answer.status, text };
      at = new URL(to, at).href;
      asking = {};
      if (new URL(at).origin !== this.#provider.issuer) return { to: at };
    }
    throw new Error(`led in a circle: ${at}`);
  }
}

export interface ProvidedConsole {
  readonly world: World;
  readonly served: Served;
  /** Advances the clock, because a network is blocked after wrong answers within a quarter of an hour. */
  nextHour(): void;
  end(): Promise<void>;
}

/** A console whose users sign in with this provider. */
export async function serveProvided(
  oidc: { readonly issuer: string } & Record<string, unknown>,
): Promise<ProvidedConsole> {
  const world = await openWorld();
  world.environment = { ...world.environment, oidcSecret: CLIENT_SECRET };
  await invite(world, ADMINISTRATOR);
  const served = await serveConsole(world, { console: consoleSchema.parse({ oidc }) });
  let hours = 0;
  return {
    ...{ world, served },
    nextHour() {
      hours += 1;
      world.at(DateTime.utc(2026, 8, 2).plus({ hours }).toISO() as string);
    },
    async end() {
      await served.end();
      await world.end();
    },
  };
}
