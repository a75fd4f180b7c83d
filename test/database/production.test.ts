/** Production keeps its one ledger where it was told to, and starts no other. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import { openDatabase } from '../../src/database/database.ts';

const production = { RECKONER_ENVIRONMENT: 'production' };

test('production without DATABASE_URL starts no second ledger, unless the settings say that it is the embedded one', async () => {
  const home = mkdtempSync(join(tmpdir(), 'reckoner-production-'));
  const settings = (more: object) =>
    writeFileSync(join(home, 'settings.json'), JSON.stringify({ ...firstSettings('production'), ...more }));
  try {
    settings({});
    const environment = readEnvironment({ ...production, RECKONER_HOME: home });
    await expect(openDatabase(environment)).rejects.toThrow(
      /DATABASE_URL is not set, and this is production: set it, or say "database": "embedded" in settings\.json/,
    );
    settings({ database: 'embedded' });
    const database = await openDatabase(environment, { unmigrated: true });
    await database.close();
  } finally {
    rmSync(home, { recursive: true });
  }
});
