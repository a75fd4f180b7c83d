/** Settings as the program reads them, from a file that says only what matters to the test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../src/config/environment.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import { readSettings, type Settings } from '../../src/config/settings.ts';

export function settingsWith(overrides: object): Settings {
  const home = mkdtempSync(join(tmpdir(), 'reckoner-settings-'));
  try {
    writeFileSync(join(home, 'settings.json'), JSON.stringify({ ...firstSettings('sandbox'), ...overrides }));
    return readSettings({ home } as Environment);
  } finally {
    rmSync(home, { recursive: true });
  }
}
