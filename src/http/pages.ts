/** Pages for people: HTML from templates that escape all they are given, with a policy that lets nothing else run. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyReply } from 'fastify';
import Handlebars from 'handlebars';
import { packageRoot } from '../package.ts';

const FOLDER = join(packageRoot, 'templates', 'pages');
const read = (name: string): string => readFileSync(join(FOLDER, name), 'utf8');

const STYLE = read('style.css').trim();
const POLICY = [
  "default-src 'none'",
  // The page's one style stands in it, known by its hash: nothing that a name could smuggle in is ever applied.
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const handlebars = Handlebars.create();
handlebars.registerPartial('layout', read('_layout.html.hbs'));

/** The page of a template; a field that it names and the view lacks is an error. */
export function page<View extends object>(name: string): (view: View & { title: string; sandbox: boolean }) => string {
  const render = handlebars.compile<object>(read(`${name}.html.hbs`), { strict: true, knownHelpersOnly: true });
  return (view) => render({ ...view, style: new Handlebars.SafeString(STYLE) });
}

export function sendPage(reply: FastifyReply, html: string, status = 200): FastifyReply {
  return reply
    .code(status)
    .headers({ 'Content-Security-Policy': POLICY, 'X-Robots-Tag': 'noindex, nofollow', 'Cache-Control': 'no-store' })
    .type('text/html; charset=utf-8')
    .send(html);
}
