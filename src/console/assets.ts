/** Stylesheets, scripts and fonts at URLs with a content hash, which browsers may cache forever. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { FastifyInstance, FastifyRequest } from 'fastify';
import { Shared } from '#http/shared';
import { packageRoot } from '#package';

const { resolve } = createRequire(import.meta.url);
const FONT = dirname(resolve('@fontsource-variable/inter/package.json'));
const own = (name: string) => readFileSync(join(packageRoot, 'templates', 'console', name), 'utf8');

type Asset = Readonly<{
  url: string;
  type: string;
  content: Buffer | string;
}>;

const assets = new Map<string, Asset>();

function add(name: string, type: string, content: Buffer | string) {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 12);
  const url = `/console/assets/${name.replace(/(?=\.\w+$)/, `.${hash}`)}`;
  assets.set(name, { url, type, content });
  return url;
}

function addFont() {
  const css = readFileSync(join(FONT, 'index.css'), 'utf8').replaceAll(
    /url\(\.\/files\/([\w-]+\.woff2)\)/g,
    (_, file: string) => `url(${add(file, 'font/woff2', readFileSync(join(FONT, 'files', file)))})`,
  );
  add('fonts.css', 'text/css; charset=utf-8', css);
}

addFont();
add('console.css', 'text/css; charset=utf-8', own('console.css'));
add('icon.svg', 'image/svg+xml', own('icon.svg'));
const SCRIPT = 'text/javascript; charset=utf-8';
for (const name of ['passkeys.js', 'link.js', 'keys.js', 'current.js', 'sum.js', 'upload.js'])
  add(name, SCRIPT, own(name));
add('htmx.js', SCRIPT, readFileSync(resolve('htmx.org/dist/htmx.min.js')));

export function assetUrl(name: string): string {
  const asset = assets.get(name);
  if (asset === undefined) throw new Error(`there is no asset ${name}`);
  return asset.url;
}

export function addAssets(app: FastifyInstance, { limits }: Pick<Shared, 'limits'>): void {
  const onRequest = async (request: FastifyRequest) => void limits.request('console', request.ip);
  for (const { url, type, content } of assets.values()) {
    app.get(url, { onRequest, config: { bound: 'fixed' } }, async (_, reply) =>
      reply.headers({ 'Cache-Control': 'public, max-age=31536000, immutable' }).type(type).send(content),
    );
  }
}
