/** Self-contained public pages, whose content security policy allows only their own style. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FastifyReply } from 'fastify';
import { ComponentChildren } from 'preact';
import { render } from 'preact-render-to-string';
import { packageRoot } from '#package';

const STYLE = readFileSync(join(packageRoot, 'templates', 'pages', 'style.css'), 'utf8').trim();
const POLICY = [
  "default-src 'none'",
  // The hash allows only this inline style, so an injected style has no effect.
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

export const pageOf = ({ title, sandbox }: { title: string; sandbox: boolean }, content: ComponentChildren) =>
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
${render(<title>{title}</title>)}
<style>${STYLE}</style>
</head>
${render(
  <body>
    <main>
      {sandbox && <p class="sandbox">SANDBOX: a test, not a real document. Do not pay.</p>}
      {content}
    </main>
  </body>,
)}
</html>
`;

export function sendPage(reply: FastifyReply, html: string, status = 200) {
  return reply
    .code(status)
    .headers({ 'Content-Security-Policy': POLICY, 'X-Robots-Tag': 'noindex, nofollow', 'Cache-Control': 'no-store' })
    .type('text/html; charset=utf-8')
    .send(html);
}
