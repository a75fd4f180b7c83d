/** The GET addresses of the console, each with the filters that people use, over objects of the ledger. */
import type pg from 'pg';
import { pino } from 'pino';
import { type Field, fieldsOf } from '../../src/actions/fields.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import { readEnvironment } from '../../src/config/environment.ts';
import { readSettings } from '../../src/config/settings.ts';
import { addConsole } from '../../src/console/plugin.ts';
import { openDatabase } from '../../src/database/database.ts';
import { buildServer } from '../../src/http/server.ts';

/** What stands in addresses. All are of the partner that sells most, whose viewer reads them too. */
export interface Objects {
  readonly partner: string;
  readonly number: string;
  readonly open: string;
  readonly currency: string;
  readonly amount: string;
  readonly payment: string;
  readonly exception: string;
  readonly reference: string;
  readonly quote: string;
  readonly month: string;
  readonly running: string;
  /** The keys after which the second and the hundredth page begin. */
  readonly pages: Readonly<Record<'documents' | 'payments' | 'events', readonly number[]>>;
}

/** The paths of the GET routes behind the sign-in, below /console, as the server knows them. */
export async function readRoutes(home: string): Promise<string[]> {
  const environment = readEnvironment({ ...process.env, RECKONER_HOME: home, DATABASE_URL: '' });
  const database = await openDatabase(environment, { readOnly: true });
  const paths: string[] = [];
  const app = await buildServer({
    ...{ environment, settings: readSettings(environment), database, log: pino({ level: 'silent' }) },
    addPages(server, shared) {
      server.addHook('onRoute', ({ method, url }) => {
        const path = /^\/console(\/.*)/.exec(url)?.[1];
        if ([method].flat().includes('GET') && path !== undefined) paths.push(path);
      });
      addConsole(server, shared);
    },
  });
  await app.close();
  await database.close();
  return paths.filter((path) => !/^\/(assets|sign-in)(\/|$)/.test(path));
}

export async function readObjects(client: pg.Client): Promise<Objects> {
  const { rows } = await client.query<Objects>(
    `WITH largest AS (SELECT partner_id FROM documents GROUP BY 1 ORDER BY sum(entries) DESC, 1 LIMIT 1),
     own AS (SELECT d.*, b.balance, b.status FROM documents d JOIN largest USING (partner_id)
             JOIN document_balances b USING (document_id) WHERE d.document = 'invoice'),
     waiting AS (SELECT payment_id FROM payment_balances b
                 WHERE b.unapplied > 0 ORDER BY b.partner_id = (SELECT partner_id FROM largest) DESC NULLS LAST, 1 LIMIT 1),
     applied AS (SELECT payment_id, b.amount, p.reference FROM payment_balances b JOIN payments p USING (payment_id)
                 WHERE b.partner_id = (SELECT partner_id FROM largest) AND b.applied > 0 ORDER BY 1 DESC LIMIT 1)
     SELECT l.partner_id AS partner, paid.number, paid.currency, applied.amount::text AS amount,
            coalesce(owed.number, paid.number) AS open, applied.payment_id::text AS payment, applied.reference,
            'payment-' || waiting.payment_id AS exception,
            (SELECT max(quote_id) FROM ledger_rows e WHERE e.partner_id = l.partner_id) AS quote,
            (SELECT max(month) FROM closed_months) AS month, month_after((SELECT max(month) FROM closed_months)) AS running,
            json_build_object(
              'documents', (SELECT json_agg(max_id - n) FROM unnest(ARRAY[50, 4950]) AS n,
                            (SELECT max(document_id) AS max_id FROM documents) AS m),
              'payments', (SELECT json_agg(max_id - n) FROM unnest(ARRAY[50, 4950]) AS n,
                           (SELECT max(payment_id) AS max_id FROM payments) AS m),
              'events', (SELECT json_agg(max_id - n) FROM unnest(ARRAY[50, 4950]) AS n,
                         (SELECT max(event_id) AS max_id FROM audit_events) AS m)) AS pages
     FROM largest l
     LEFT JOIN LATERAL (SELECT number, currency FROM own WHERE status = 'paid' ORDER BY document_id DESC LIMIT 1) AS paid
       ON true
     LEFT JOIN LATERAL (SELECT number FROM own WHERE status = 'open' ORDER BY document_id DESC LIMIT 1) AS owed ON true
     CROSS JOIN waiting CROSS JOIN applied`,
  );
  return rows[0] as Objects;
}

const each = (path: string, names: readonly string[]): string[] => names.map((name) => `${path}?${name}`);

/** What is asked of a path beside itself. */
function questionsOf(path: string, objects: Objects): readonly string[] {
  const { partner, number, currency, amount, reference, quote, month } = objects;
  const after = (key: string, of: keyof Objects['pages']) => objects.pages[of].map((at) => `${key}=${at}`);
  const questions: Readonly<Record<string, readonly string[]>> = {
    '/invoices': [
      ...['open', 'paid', 'void'].map((status) => `status=${status}`),
      ...['due_on', '-balance'].flatMap((sort) => [`status=open&sort=${sort}`, `sort=${sort}`]),
      ...['overdue=yes', `partner=${partner}`, `month=${month}`, 'month=2024-03'],
      ...['partner+12', number, 'nowhere'].map((text) => `text=${text}`),
      ...after('after', 'documents'),
      ...after('after', 'documents').map((at) => `status=open&${at}`),
      `status=open&partner=${partner}`,
    ],
    '/search': [number, partner, amount, reference, quote, 'nowhere', '7'].map((q) => `q=${encodeURIComponent(q)}`),
    '/payments/all': [
      ...['unapplied', 'partly_applied', 'applied', 'reversed'].map((status) => `status=${status}`),
      ...[
        `partner=${partner}`,
        `amount=${amount}`,
        'from=2026-10-01&to=2026-10-31',
        `text=${reference}`,
        'text=nowhere',
      ],
      ...after('after', 'payments'),
    ],
    '/queue': ['receipts', 'e-mails', 'documents', 'disputes', 'approvals'].map((queue) => `queue=${queue}`),
    '/aging': ['as_of=2025-06-30', `partner=${partner}`, `currency=${currency}&bucket=over_90`, 'after=200'],
    '/partners': ['text=partner+12', 'status=active', 'status=contact', 'after=partner-00250'],
    '/partners/:id/statement': ['from=2024-01-01&as_of=2026-06-30'],
    '/accounts': [`month=${month}`, 'month=2024-03', 'show=all'],
    '/audit': [
      ...[
        'action=invoice',
        'action=quote.accept',
        'action=partner.import',
        'by=bench',
        'by=nobody',
        `subject=${number}`,
      ],
      ...['from=2026-10-01&to=2026-10-31', 'from=2024-01-01&to=2024-01-31', 'action=ledger.import&to=2024-01-31'],
      ...after('after', 'events'),
    ],
    '/audit/checkpoints': ['kind=daily', 'kind=month'],
    '/reports/coverage': ['as_of=2026-06-30', 'gaps=yes', 'after=200'],
    '/reports/close': [`month=${month}`, 'month=2024-03'],
    '/reports/trial-balance': ['as_of=2025-06-15', 'detail=yes'],
  };
  return questions[path] ?? [];
}

function actionQuestion(path: string, objects: Objects): string {
  const name = /^\/actions\/(.*)$/.exec(path)?.[1] ?? '';
  const value = (field: Field): string | undefined => {
    if (/number|invoice|document/i.test(field.name)) return objects.open;
    if (/partner/i.test(field.name)) return objects.partner;
    if (/payment/i.test(field.name)) return objects.payment;
    return /month/i.test(field.name) ? objects.running : undefined;
  };
  const action = ACTIONS.get(name);
  const given = action === undefined ? [] : fieldsOf(action.input).map((field) => [field.name, value(field)] as const);
  return new URLSearchParams(given.flatMap(([key, text]) => (text === undefined ? [] : [[key, text]]))).toString();
}

/** The addresses of a path. Throws for a parameter that nobody has given a value: say it here. */
export function addressesOf(path: string, objects: Objects): string[] {
  const { number, open, partner, payment, exception, month, running } = objects;
  // The ledger has no request of approval, no file of a task and no month exported for a general ledger; the
  // size of its checkpoints is not known here.
  if (/^\/approvals\/|:(task|gl|size)\b/.test(path)) return [];
  const values: Readonly<Record<string, readonly string[]>> = {
    ...{ number: [number, open], exception: [exception, payment], id: [partner] },
    month: path === '/close/:month' ? [running, month, '2024-03'] : [month],
  };
  const parameter = /:(\w+)/.exec(path)?.[1];
  const own =
    parameter === undefined
      ? [path]
      : (values[parameter] ?? []).map((value) => path.replace(`:${parameter}`, encodeURIComponent(value)));
  if (own.length === 0) throw new Error(`say in addressesOf what :${parameter} of ${path} is`);
  if (path.startsWith('/actions/')) return [path, `${path}?${actionQuestion(path, objects)}`];
  return [...own, ...own.flatMap((address) => each(address, questionsOf(path, objects)))];
}
