import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/server.ts'],
    // Each file has a database of its own, cloned from one migrated template; two cores are enough for three files.
    maxWorkers: 3,
    // Of a machine that has other things to do.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
