/** The failpoints of the program, found where they are passed. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './modules.ts';

export type Failpoint = string;

export const FAILPOINTS: readonly Failpoint[] = [
  ...new Set(
    readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .sort()
      .flatMap((name) => [...readFileSync(join(ROOT, 'src', name), 'utf8').matchAll(/\bfailpoint\(\s*'([a-z_.]+)'/g)])
      .map(([, failpoint = '']) => failpoint),
  ),
];
