/** HTML pages from templates that escape every value, under a content security policy that allows nothing else. */
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
  // The inline style is allowed by its hash, so injected styles never apply.
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const handlebars = Handlebars.create();
handlebars.registerPartial('layout', read('_layout.html.hbs'));

/** The page of a template; a field that the view does not have is an error. */
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
