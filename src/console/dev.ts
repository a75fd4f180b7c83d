import Fastify from 'fastify';
import { readEnvironment } from '../config/environment.ts';
import { readSettings } from '../config/settings.ts';
import { openDatabase } from '../database/database.ts';
import { addAssets } from './assets.ts';
import { page, type Reader } from './page.tsx';
import { closeScreen, readClose } from './screens/close.tsx';
import type { Month } from '../month.ts';
const environment = readEnvironment();
const settings = readSettings(environment);
const database = await openDatabase(environment, { readOnly: true });
const app = Fastify();
addAssets(app);
const reader = (theme: string | undefined): Reader => ({ name: 'Mara Lindqvist', role: 'finance', issuer: settings.issuer.legal_name, sandbox: true, version: '0.1.0', theme: theme === 'dark' ? 'dark' : 'light' });
app.get<{ Params: { month?: string }; Querystring: { theme?: string } }>('/console/close/:month?', async (request, reply) => {
  const view = await database.reading((tx) => readClose(tx, { environment, settings }, request.params.month as Month | undefined));
  return reply.type('text/html; charset=utf-8').header('Content-Security-Policy', "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'").send(page(reader(request.query.theme), closeScreen(view)));
});
await app.listen({ port: 8099 });
