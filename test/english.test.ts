/**
 * Phrases that make a reader stop: docs/style.md says what to write instead. They are counted in the comments and texts of the
 * source and in everything that is read: templates, documentation, examples of a deployment.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './support/modules.ts';
import { CODE, proseOf } from './support/prose.ts';

/** Only ever lowered. */
const MOST = 4;

const PHRASES: readonly RegExp[] = [
  /\bwhom?(?:so)?ever\b/,
  /\bnobody\b/,
  /\b(?:un)?told\b/,
  /\bthe system before\b/,
  /\b(?:is|are|was|were) of\b(?! course| no use)/,
  /\b(?:say|says|said) so\b/,
  /\bof which\b/,
  /\b(?:stands?|stood)\b(?! (?:in )?for\b| out\b| alone\b|-)/,
  /\b(?:anew|befalls?|befell|thereof|whence|lest|hither|whereof)\b/,
  /(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|one\b|later\b|less\b|earlier\b|older\b|bigger\b|different\b)\w+/,
  /\b(?:summaris|recognis|organis|authoris|normalis|colour|behaviour|favour)\w*/,
  /(?<=[.:;] )(?:refused|counted|listed|checked|held|named|left|sent|given|asked|shown) (?:is|are)\b/,
];

/** `file: phrase` */
const RIGHT: Readonly<Record<string, string>> = {
  'docs/reviews.md: is no alarm': 'the name of a test',
  'docs/reviews.md: nobody': 'the name of a test',
  'docs/reviews.md: says so': 'the name of a test',
  'docs/reviews.md: whoever': 'the name of a test',
  'migrations/010_payments.sql: of which': 'a text in SQL',
  'migrations/014_approvals.sql: is no approver': 'a text in SQL',
  'src/console/screens/queue.tsx: nobody': 'a value in addresses',
  'src/database/cluster.ts: nobody': 'a user of the system',
  'src/findings/payments.ts: told': 'the name of a file',
  'src/payments/remind.sql.ts: told': 'a name in SQL',
  'src/reports/status-text.ts: told': 'the name of a file',
  'src/splits/payouts.sql.ts: told': 'a name in SQL',
};

const FOLDERS = ['src', 'jobs', 'migrations', 'templates', 'docs', 'deploy'];
const PAGES = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md'];
const READ = /\.(?:tsx?|m?js|sql|py|md|hbs|txt|json|yml)$/;
/** Generated, the words of others, or the page that quotes the phrases. */
const OF_OTHERS = /^migrations\/schema\.sql$|^src\/demo\/data\/|^templates\/fonts\/|^docs\/style\.md$/;

const files = [
  ...FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  ),
  ...PAGES,
].filter((file) => READ.test(file) && !OF_OTHERS.test(file));

interface Hit {
  readonly file: string;
  readonly phrase: string;
  readonly line: number;
  readonly text: string;
}

function hitsIn(file: string): Hit[] {
  const prose = proseOf(file);
  return PHRASES.flatMap((phrase) => {
    const pattern = new RegExp(phrase.source.replaceAll(' ', '\\s+'), 'gi');
    return [...prose.matchAll(pattern)].map(({ 0: found, index }) => ({
      file,
      phrase: found.toLowerCase().replace(/\s+/g, ' '),
      line: prose.slice(0, index).split('\n').length,
      text: prose
        .slice(Math.max(0, index - 40), index + 60)
        .replaceAll(CODE, ' ')
        .replace(/\s+/g, ' ')
        .trim(),
    }));
  });
}

test('comments, texts and documentation have almost none of the phrases that make a reader stop', () => {
  const hits = files.flatMap(hitsIn);
  const names = new Set(hits.map(({ file, phrase }) => `${file}: ${phrase}`));
  expect(files.length).toBeGreaterThan(500);
  expect(Object.keys(RIGHT).filter((name) => !names.has(name))).toEqual([]);
  const wrong = hits.filter(({ file, phrase }) => !Object.hasOwn(RIGHT, `${file}: ${phrase}`));
  const list = wrong.map(({ file, line, phrase, text }) => `${file}:${line} ${phrase}: … ${text} …`).join('\n');
  expect(wrong.length, `${wrong.length} phrases:\n${list}\n`).toBeLessThanOrEqual(MOST);
});
