/** Declares the routes of the partner's place. The session is checked before a page is read. */

import { FastifyInstance, FastifyRequest } from 'fastify';
import { ActionContext } from '#actions/action';
import { Settings } from '#config/settings';
import { todayOf } from '#config/today';
import { endCookie, Place, placeOf, readCookie, refuseForeignForm, refuseOtherOrigin } from '#console/cookies';
import { fieldsOfForm, formOf, PartnerReader, partnerPage, Screen } from '#console/parts';
import { outerOf } from '#console/problem';
import { addressParts, ConsoleFile, SHEETS, sendFile, settingsNow } from '#console/route';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { BoundName } from '#http/gates';
import { Shared } from '#http/shared';
import { canMail } from '#mail/sign-in-link';
import { contactAsActor } from '#partners/sign-in';
import { PartnerSession, readPartnerSession, touchPartnerSession } from '#partners/sign-in.sql';
import { formTokenOf } from '#people/secrets';
import { liveAt } from '#people/sessions';
import { settingsInForce } from '#people/settings-in-force';
import { Sheet } from '#sheet';

export type PartnerVisit = Readonly<{
  contact: PartnerSession;
  /** The only partner whose data the contact may see. */
  partnerId: string;
  secret: string;
  /** Its actor is the contact's address. */
  context: ActionContext;
  reader: PartnerReader;
  today: string;
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  place: Place;
  request: FastifyRequest;
}>;

export type PartnerScreen = Omit<Screen, 'place'>;
export type PartnerAnswer =
  | Readonly<{ to: string; signedOut?: boolean }>
  | Readonly<{ screen: PartnerScreen; status: number }>;

type ViewReader<View> = (tx: Transaction, visit: PartnerVisit) => Promise<View>;

/** Whether contacts can sign in from payment pages, for which e-mailing links must be possible. */
export const hasPartnerPlace = ({ environment }: Pick<Shared, 'environment'>, settings: Settings) =>
  settings.console.partner_place && canMail({ environment, settings });

export type PartnerRoutes = Readonly<{
  screen: <View>(
    path: string,
    read: ViewReader<View>,
    view: (view: View, visit: PartnerVisit) => PartnerScreen,
    sheet?: (view: View) => Sheet,
  ) => void;
  /** A page that calls the payment processor. `read` runs outside a transaction. */
  asked: <View>(
    path: string,
    bound: BoundName,
    read: (visit: PartnerVisit) => Promise<View>,
    view: (view: View, visit: PartnerVisit) => PartnerScreen,
  ) => void;
  file: (path: string, bound: BoundName, read: ViewReader<ConsoleFile | undefined>) => void;
  form: (
    path: string,
    work: (visit: PartnerVisit, fields: ReadonlyMap<string, string>) => Promise<PartnerAnswer>,
    bound?: BoundName,
  ) => void;
}>;

const SEEN_SECONDS = 60;
const LARGEST_FORM = 16 * 1024;

export function partnerRoutes(app: FastifyInstance, shared: Shared): PartnerRoutes {
  const { database, limits } = shared;
  const visits = new WeakMap<FastifyRequest, PartnerVisit>();
  const visitAt = (request: FastifyRequest) => visits.get(request) as PartnerVisit;
  const options = (bound: BoundName) => ({
    onRequest: async (request: FastifyRequest) => {
      limits.request('console', request.ip);
      visits.set(request, await visitOf(shared, request));
    },
    config: { bound },
    bodyLimit: LARGEST_FORM,
  });
  return {
    screen(path, read, view, sheet) {
      app.get(path, options('screens'), async (request, reply) => {
        const visit = visitAt(request);
        const found = await database.reading((tx) => read(tx, visit));
        return reply.type('text/html; charset=utf-8').send(partnerPage(visit.reader, view(found, visit)));
      });
      if (sheet === undefined) return;
      for (const [format, { type, write }] of Object.entries(SHEETS)) {
        app.get(`${path}.${format}`, options('files'), async (request, reply) => {
          const found = await database.reading((tx) => read(tx, visitAt(request)));
          const name = `${path.slice(1)}.${format}`;
          return sendFile(reply, { type, name, content: await write(sheet(found)), download: true });
        });
      }
    },
    asked(path, bound, read, view) {
      app.get(path, options(bound), async (request, reply) => {
        const visit = visitAt(request);
        const html = partnerPage(visit.reader, view(await read(visit), visit));
        return reply.type('text/html; charset=utf-8').send(html);
      });
    },
    file(path, bound, read) {
      app.get(path, options(bound), async (request, reply) => {
        const found = await database.reading((tx) => read(tx, visitAt(request)));
        if (found === undefined) throw refuse('page_unknown', { path: request.url });
        return sendFile(reply, found);
      });
    },
    form(path, work, bound = 'console') {
      app.post(path, options(bound), async (request, reply) => {
        const visit = visitAt(request);
        const fields = fieldsOfForm(formOf(request.body, request.headers['content-type']));
        refuseForeignForm(visit.secret, fields?.get('form_token'));
        const answer = await work(visit, fields as ReadonlyMap<string, string>);
        if ('to' in answer) {
          if (answer.signedOut) endCookie(reply, visit.place, 'reckoner-partner');
          return reply.redirect(answer.to, 303);
        }
        const html = partnerPage(visit.reader, answer.screen);
        return reply.code(answer.status).type('text/html; charset=utf-8').send(html);
      });
    },
  };
}

/** Admits a request. Only this function checks the session, and the origin of requests that change something. */
async function visitOf(shared: Shared, request: FastifyRequest): Promise<PartnerVisit> {
  const { environment, database } = shared;
  const place = placeOf(shared, request);
  if (request.method !== 'GET') refuseOtherOrigin(request, place);
  const settings = settingsNow(shared);
  const secret = readCookie(request, place, 'reckoner-partner') ?? '';
  const at = liveAt({ environment, settings });
  const contact = secret === '' ? undefined : await database.reading((tx) => readPartnerSession(tx, { secret, ...at }));
  if (contact === undefined) throw refuse('session_missing', {});
  if (Date.parse(at.now) - Date.parse(contact.last_seen_at) > SEEN_SECONDS * 1000) {
    await database.transaction((tx) => touchPartnerSession(tx, { secret, now: at.now }));
  }
  return {
    ...{ contact, secret, place, request, partnerId: contact.partner_id },
    context: {
      ...{ environment, database, actor: contactAsActor(contact) },
      settings: await settingsInForce(database, settings),
    },
    reader: {
      ...outerOf(shared, request),
      ...{ formToken: formTokenOf(secret), partner: contact.partner_name, contact: contact.contact_email },
    },
    today: todayOf({ environment, settings }),
    ...addressParts(request),
  };
}
