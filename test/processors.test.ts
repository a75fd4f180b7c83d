/** The processors' port: nothing outside a processor's folder, the lists and the environment's names knows Stripe. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../src/package.ts';
import { NEEDED } from '../src/processors/stripe/events.ts';

/** The fields of the environment that are read from its variables STRIPE_…. */
const FIELDS = 'stripe(Key|Base|WebhookSecrets)\\b';

/** By file, the lines that may name it. */
const MAY: Readonly<Record<string, RegExp>> = {
  'src/processors/processors.ts': /^(import|export)\b/,
  'src/processors/links/providers.ts': new RegExp(`^import|^const PROVIDERS = |${FIELDS}`),
  'src/processors/processor.ts': new RegExp(FIELDS),
  'src/config/secret-files.ts': /'STRIPE_/,
  'src/config/environment.ts': new RegExp(`${FIELDS}|STRIPE_|key of Stripe`),
  'src/splits/poll.ts': new RegExp(FIELDS),
};

test('only its own folder names Stripe', () => {
  const files = ['src', 'migrations']
    .flatMap((folder) =>
      readdirSync(join(packageRoot, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
    )
    .filter((file) => /\.(ts|sql)$/.test(file) && !file.startsWith('src/processors/stripe/'));
  const named = files.flatMap((file) =>
    readFileSync(join(packageRoot, file), 'utf8')
      .split('\n')
      .filter((line) => /stripe/i.test(line) && !MAY[file]?.test(line))
      .map((line) => `${file}: ${line}`),
  );
  expect(named).toEqual([]);
  expect(files.length).toBeGreaterThan(100);
});

test('the settings name every event that the endpoint must send, and no other', () => {
  const [, section = ''] = readFileSync(join(packageRoot, 'docs/settings.md'), 'utf8').split(
    '### Events of the payment',
  );
  const named = section.split('\n## ')[0]?.match(/`[a-z_]+\.[a-z_.]+`/g) ?? [];
  expect(named.map((each) => each.slice(1, -1)).sort()).toEqual([...NEEDED.keys()].sort());
});
