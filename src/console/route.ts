/**
 * Declares console routes. Every route behind the sign-in is added here, so session, role, scope and
 * period are checked before a page is read. Refusals: session_missing, role_needed, access_ended, access_limited,
 * form_refused, rate_limited.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions, RouteShorthandOptions } from 'fastify';
import { ActionContext } from '#actions/action';
import { readCheckedSettings } from '#actions/rules';
import { presentSettings, Settings } from '#config/settings';
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { Refusal, refuse } from '#errors/refusals';
import { BoundName } from '#http/gates';
import { Shared } from '#http/shared';
import { packageVersion } from '#package';
import { recordEvent, thisProcess } from '#people/audit-events';
import { accessInWords, periodOf, Role, refuseEnded, scopeOfEither, User } from '#people/roles';
import { Period, Scope } from '#people/scope';
import { formTokenOf } from '#people/secrets';
import { isProved, liveAt } from '#people/sessions';
import { recordSettingsChanges } from '#people/settings-changes';
import { settingsInForce } from '#people/settings-in-force';
import { endSessions, readSession, Session, touchSession, wasSession } from '#people/sign-in.sql';
import { actAs } from '#people/users';
import { csvOf, Sheet, xlsxOf } from '#sheet';
import { HOME, hasKeys, Place, placeOf, readCookie, refuseForeignForm, refuseOtherOrigin, themeOf } from './cookies.ts';
import { fieldsOfForm, formOf, LARGEST_UPLOAD, refuseNul, uploadOf } from './form.tsx';
import { labelsOf } from './labels.ts';
import { PageUser, page, Screen } from './page.tsx';

export type Access = Readonly<{
  role: Role;
  /** Admits users with this role, too. */
  otherRole?: Role | undefined;
  /** `ledger`: the role must cover all partners. `partners`: the page shows those in `Visit.scope`. */
  scope: 'ledger' | 'partners';
  /** The route shows no other months than `Visit.period`. Users who may see some months only get no other route. */
  ofPeriod?: true | undefined;
  bound?: BoundName;
  /** Allows parameters that occur several times, such as ticked rows. `asked` has all values. */
  repeats?: boolean;
  /**
   * Requires a recent sign-in, and returns to this page; true means the page at this path, with the fields of the form.
   */
  proof?: string | true | undefined;
}>;

type FormAccess = Access & { readonly files?: readonly string[] };

export type Visit = Readonly<{
  user: User;
  session: Session;
  /** What the user may see or change on this route. */
  scope: Scope;
  /** The months that the user may see. */
  period: Period;
  context: ActionContext;
  reader: PageUser;
  today: string;
  place: Place;
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  asked: URLSearchParams;
  request: FastifyRequest;
  reply: FastifyReply;
}>;

export type ConsoleFile = Readonly<{
  type: string;
  name: string;
  content: Buffer | string | NodeJS.ReadableStream;
  download?: boolean;
}>;

/** To a submitted form: a redirect, or a page such as a preview or a form with problems. */
export type Answer = { readonly to: string } | Readonly<{ screen: Screen; status?: number }>;

export type Routes = Readonly<{
  /** A page. `read` runs in one database snapshot, and `view` renders its result or redirects. */
  screen: <View>(
    path: string,
    access: Access,
    read: (tx: Transaction, visit: Visit) => Promise<View>,
    view: (view: View, visit: Visit) => Screen | { readonly to: string },
    sheet?: (view: View) => Sheet,
  ) => void;
  sheets: (path: string, access: Access, read: (tx: Transaction, visit: Visit) => Promise<Sheet>) => void;
  redirect: (path: string, access: Access, to: (visit: Visit) => string) => void;
  /** A file. If `read` returns undefined, the response is "page not found". */
  file: (
    path: string,
    access: Access,
    read: (tx: Transaction, visit: Visit) => Promise<ConsoleFile | undefined>,
  ) => void;
  /** A submitted form. `transact` attributes its transactions to the user. */
  action: (
    path: string,
    access: Access,
    work: (visit: Visit, fields: ReadonlyMap<string, string>, transact: Transact) => Promise<Answer>,
  ) => void;
  /**
   * A form with repeatable fields, for actions that manage their own transactions. The fields `files` may have files,
   * each as one value (form.tsx).
   */
  form: (path: string, access: FormAccess, work: (visit: Visit, form: URLSearchParams) => Promise<Answer>) => void;
  call: (
    path: string,
    access: Access,
    work: (visit: Visit, body: unknown, transact: Transact) => Promise<object>,
  ) => void;
}>;

/** Its audit events name the user. */
export type Transact = <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** For users who may see some months only (`Access`). */
    ofPeriod?: true | undefined;
  }
  interface FastifyRequest {
    /** The user for whom problem pages are shown. The user is null until the user is known. */
    reader: PageUser | null;
  }
}

export const SHEETS = {
  csv: { type: 'text/csv; charset=utf-8', write: async (sheet: Sheet) => csvOf(sheet) },
  xlsx: { type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', write: xlsxOf },
};

const FORMATS = ['csv', 'xlsx'] as const;

function addSheets(
  app: FastifyInstance,
  path: string,
  options: RouteShorthandOptions,
  read: (request: FastifyRequest, format: string) => Promise<Sheet>,
) {
  for (const format of FORMATS) {
    const { type, write } = SHEETS[format];
    const name = `${path.replace(/^.*\//, '')}.${format}`;
    app.get(`${path}.${format}`, options, async (request, reply) =>
      sendFile(reply, { type, name, content: await write(await read(request, format)), download: true }),
    );
  }
}

/** The pages of users who may see some months only. */
const OF_PERIOD = new Map<string, RegExp>();

/** A hook: a link may lead to the route. */
export function noteOfPeriod({ url, config }: RouteOptions) {
  if (config?.ofPeriod) OF_PERIOD.set(url, new RegExp(`^${url.replaceAll(/:\w+/g, '[^/]+')}$`));
}

/** Leaves only the text of a link whose page would be refused. */
const withoutRefused = (html: string): string =>
  html.replaceAll(/<a\b[^>]*? href="(\/console[^"?#]*)[^"]*"[^>]*>(.*?)<\/a>/gs, (link, path: string, text: string) =>
    [...OF_PERIOD.values()].some((each) => each.test(path)) ? link : text,
  );

const SEEN_SECONDS = 60;
const LARGEST_FORM = 64 * 1024;

export function routesOf(app: FastifyInstance, shared: Shared): Routes {
  const { database, limits } = shared;
  const visits = new WeakMap<FastifyRequest, Visit>();
  const admit = (access: Access) => async (request: FastifyRequest, reply: FastifyReply) => {
    limits.request('console', request.ip);
    visits.set(request, await visitOf(shared, access, request, reply));
  };
  const visitAt = (request: FastifyRequest) => visits.get(request) as Visit;
  const options = (access: Access, bound: BoundName) => ({
    onRequest: admit(access),
    config: { bound: access.bound ?? bound, ofPeriod: access.ofPeriod },
    bodyLimit: bound === 'uploads' ? LARGEST_UPLOAD : LARGEST_FORM,
  });
  const sent = <Fields extends { get(name: string): string | null | undefined }>(
    path: string,
    access: FormAccess,
    fieldsOf: (form: URLSearchParams | undefined) => Fields | undefined,
    work: (visit: Visit, fields: Fields) => Promise<Answer>,
  ) =>
    app.post(
      path,
      {
        ...options(access, access.files ? 'uploads' : 'console'),
        onRequest: admittingEnded(shared, admit(access)),
      },
      async (request, reply) => {
        const visit = visits.get(request);
        const type = request.headers['content-type'];
        const upload = access.files ? await uploadOf(request.body, type) : undefined;
        const form = upload ?? formOf(request.body, type);
        if (visit === undefined)
          throw sessionEnded(access, request, { form, isPage: app.hasRoute({ method: 'GET', url: `${HOME}${path}` }) });
        const fields = fieldsOf(form);
        refuseForeignForm(secretOf(request, visit.place), fields?.get('form_token') ?? undefined);
        refuseWithoutProof(access, visit);
        const answer = await work(visit, fields as Fields);
        if (upload) await nextTurn();
        if ('to' in answer) return reply.redirect(answer.to, 303);
        return sendScreen(reply, visit.reader, answer.screen, answer.status);
      },
    );
  const sheets: Routes['sheets'] = (path, access, read) =>
    addSheets(app, path, options(access, 'files'), (request, format) => exported(visitAt(request), format, read));
  return {
    sheets,
    screen(path, access, read, view, sheet) {
      app.get(path, options(access, 'screens'), async (request, reply) => {
        const visit = visitAt(request);
        const found = await database.reading((tx) => read(tx, visit));
        const shown = view(found, visit);
        return 'to' in shown ? reply.redirect(shown.to, 303) : sendScreen(reply, visit.reader, shown);
      });
      if (sheet !== undefined) sheets(path, access, async (tx, visit) => sheet(await read(tx, visit)));
    },
    redirect(path, access, to) {
      app.get(path, options(access, 'fixed'), async (request, reply) => reply.redirect(to(visitAt(request)), 303));
    },
    file(path, access, read) {
      app.get(path, options(access, 'files'), async (request, reply) => {
        const found = await database.reading((tx) => read(tx, visitAt(request)));
        if (found === undefined) throw refuse('page_unknown', { path: request.url });
        return sendFile(reply, found);
      });
    },
    action(path, access, work) {
      sent(path, access, fieldsOfForm, (visit, fields) => work(visit, fields, transacting(visit)));
    },
    form(path, access, work) {
      sent(path, access, (form) => form, work);
    },
    call(path, access, work) {
      app.post(path, options(access, 'console'), async (request, reply) => {
        const visit = visitAt(request);
        refuseForeignForm(secretOf(request, visit.place), request.headers['x-form-token']);
        refuseWithoutProof(access, visit);
        return reply.send(await work(visit, jsonOf(request), transacting(visit)));
      });
    },
  };
}

const transacting =
  ({ context }: Visit): Transact =>
  (work) =>
    context.database.transaction(async (tx) => {
      await actAs(tx, context.actor);
      return work(tx);
    });

/** Records the export, as commands do. The subject is the path below /console. */
async function exported(
  visit: Visit,
  format: string,
  read: (tx: Transaction, visit: Visit) => Promise<Sheet>,
): Promise<Sheet> {
  const { actor, environment, database } = visit.context;
  const sheet = await database.reading((tx) => read(tx, visit));
  const [subject = ''] = visit.request.url.slice(HOME.length + 1).split('?');
  const details = { format, rows: sheet.rows.length };
  const event = { action: 'audit.export', subject, details, now: environment.now().toISO() };
  await transacting(visit)((tx) => recordEvent(tx, actor, event));
  return sheet;
}

type Admit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/** Also admits the form of a session that has ended, so that its fields are not lost. It is not executed. */
const admittingEnded =
  (shared: Shared, admit: Admit): Admit =>
  (request, reply) =>
    admit(request, reply).catch(async (error: unknown) => {
      const isEnded = error instanceof Refusal && error.code === 'session_missing';
      const secret = secretOf(request, placeOf(shared, request));
      if (!isEnded || !(await shared.database.reading((tx) => wasSession(tx, secret)))) throw error;
    });

/** Leads back to the form of a page that takes its fields, or else to the page, if there is one. */
function sessionEnded(
  { repeats, files }: FormAccess,
  request: FastifyRequest,
  { form, isPage }: { form: URLSearchParams | undefined; isPage: boolean },
) {
  const [page = ''] = request.url.split('?');
  return refuse('session_missing', { to: repeats ? formAddress(request, form, files) : isPage ? page : HOME });
}

/** The longest query of an address to return to. Fields that do not fit must be entered again. */
const LONGEST_QUERY = 4000;

/** The page of a form, filled with what was entered. Files are left out. */
function formAddress(
  { url }: FastifyRequest,
  form: URLSearchParams | undefined,
  files: readonly string[] = [],
): string {
  const kept = new URLSearchParams();
  for (const [name, value] of form ?? []) {
    if (['form_token', 'step', 'shown', ...files].includes(name) || value === '') continue;
    if (String(kept).length + encodeURIComponent(value).length + name.length < LONGEST_QUERY) kept.append(name, value);
  }
  return `${url.split('?')[0]}?${kept}`;
}

function refuseWithoutProof({ proof }: Access, { session, context, request }: Visit) {
  if (proof === undefined || isProved(session, context)) return;
  if (proof !== true) throw refuse('proof_needed', { to: proof });
  const form = formOf(request.body, request.headers['content-type']);
  throw refuse('proof_needed', { to: formAddress(request, form) });
}

const secretOf = (request: FastifyRequest, place: Place) => readCookie(request, place, 'reckoner') ?? '';

export function jsonOf({ body, headers }: FastifyRequest): unknown {
  if (!/^application\/json\b/i.test(headers['content-type'] ?? '') || !(body instanceof Buffer)) return undefined;
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** Finds the signed-in user for a "page not found" page. */
export const knowReader = (shared: Shared, request: FastifyRequest, reply: FastifyReply): Promise<unknown> =>
  visitOf(shared, { role: 'viewer', scope: 'partners', ofPeriod: true }, request, reply).catch(() => undefined);

/** Admits a request. This function alone checks the session, the origin of changes, role, scope and period. */
async function visitOf(shared: Shared, access: Access, request: FastifyRequest, reply: FastifyReply): Promise<Visit> {
  const { environment, database } = shared;
  const place = placeOf(shared, request);
  const changes = request.method !== 'GET' && request.method !== 'HEAD';
  if (changes) refuseOtherOrigin(request, place);
  const settings = settingsNow(shared);
  const secret = secretOf(request, place);
  const at = liveAt({ environment, settings });
  const session = secret === '' ? undefined : await database.reading((tx) => readSession(tx, { secret, ...at }));
  if (session === undefined) throw refuse('session_missing', {});
  const { user } = session;
  request.userLogin = user.login;
  const reader = readerOf(shared, settings, request, user, secret);
  request.reader = reader;
  await refuseAfterLastDay(shared, user, todayOf({ environment, settings }));
  const scope = scopeOfEither(user, access.role, access.otherRole);
  const period = periodOf(user);
  if (scope === undefined || (access.scope === 'ledger' && scope !== null)) throw roleNeeded(user, access);
  if (period !== null && !access.ofPeriod) throw refuse('access_limited', period);
  if (isOfTheReader(request) && isStale(session, at.now)) {
    await database.transaction((tx) => touchSession(tx, { sessionId: session.session_id, now: at.now }));
  }
  const actor = { ...thisProcess('console', user.login), user };
  const inForce = await settingsInForce(database, settings);
  // The file with the approval rules was edited after the server started. Recorded as by every command.
  if (changes && settings !== shared.settings) {
    await recordSettingsChanges(database, { environment, actor, settings: inForce });
  }
  const context = { environment, database, actor, settings: inForce, namesOf: labelsOf };
  return {
    ...{ user, session, scope, period, reader, place, request, reply, context },
    today: todayOf({ environment, settings }),
    ...addressParts(request, access.repeats),
  };
}

async function refuseAfterLastDay({ database, environment }: Shared, user: User, today: string) {
  try {
    refuseEnded(user, today);
  } catch (refusal) {
    const ended = { userId: user.user_id, now: environment.now().toISO() };
    await database.transaction((tx) => endSessions(tx, ended));
    throw refusal;
  }
}

const roleNeeded = ({ login }: User, { role, scope }: Access) =>
  refuse('role_needed', { login, role, all_partners: scope === 'ledger' });

/** Polling must not keep a session alive. */
const isOfTheReader = ({ method, headers }: FastifyRequest) =>
  method !== 'GET' || headers['hx-request'] === undefined || headers['hx-boosted'] !== undefined;

const isStale = ({ last_seen_at }: Session, now: string) =>
  Date.parse(now) - Date.parse(last_seen_at) > SEEN_SECONDS * 1000;

const presents = new WeakMap<Shared, () => Settings>();

/** The file may have changed since the server started. */
export function settingsNow(shared: Shared): Settings {
  const present = presents.get(shared) ?? presentSettings(shared.environment, shared.settings, readCheckedSettings);
  presents.set(shared, present);
  return present();
}

function readerOf(
  { environment }: Shared,
  settings: Settings,
  request: FastifyRequest,
  user: User,
  secret: string,
): PageUser {
  return {
    ...{ name: user.name, role: accessInWords(user), issuer: settings.issuer.legal_name },
    ...{ sandbox: environment.name === 'sandbox', version: packageVersion, theme: themeOf(request) },
    ...{
      login: user.login,
      formToken: formTokenOf(secret),
      roles: user.roles,
      limits: user.limits,
      keys: hasKeys(request),
    },
  };
}

/** Refuses repeated parameters and text that PostgreSQL cannot store. */
export function addressParts(request: FastifyRequest, repeats = false): Pick<Visit, 'params' | 'query' | 'asked'> {
  const params = request.params as Record<string, string>;
  if (Object.values(params).some((each) => each.includes('\0'))) throw refuse('page_unknown', { path: request.url });
  const asked = new URLSearchParams(request.url.split('?').slice(1).join('?'));
  refuseNul([...asked]);
  return { params, query: repeats ? Object.fromEntries(asked) : queryOf(request), asked };
}

function queryOf({ query }: FastifyRequest) {
  const given = Object.entries(query as Record<string, unknown>);
  const twice = given.filter(([, value]) => typeof value !== 'string').map(([path]) => path);
  if (twice.length > 0) {
    throw refuse('request_invalid', { problems: twice.map((path) => ({ path, reason: 'is given more than once' })) });
  }
  return Object.fromEntries(given) as Record<string, string>;
}

/** A page may carry files of 4 MB. As bytes, it is encoded once. */
const sendScreen = (reply: FastifyReply, reader: PageUser, screen: Screen, status = 200) =>
  reply
    .code(status)
    .type('text/html; charset=utf-8')
    .send(Buffer.from(periodOf(reader) === null ? page(reader, screen) : withoutRefused(page(reader, screen))));

const IN_OUR_FRAME = {
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'self'",
  'X-Frame-Options': 'SAMEORIGIN',
};

/** Sends a file for viewing or download. `isFramed` allows pages of this server to frame it. */
export function sendFile(
  reply: FastifyReply,
  { type, name, content, download = false }: ConsoleFile,
  { isFramed = true } = {},
): FastifyReply {
  const safe = name.replace(/[^\w.-]/g, '_');
  return reply
    .headers({
      'Content-Disposition': `${download ? 'attachment' : 'inline'}; filename="${safe}"`,
      ...(isFramed && IN_OUR_FRAME),
    })
    .type(type)
    .send(content);
}
