import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { projects } from './test/support/projects.ts';
import { SEED } from './test/support/random.ts';

/** The longest by CPU: begun last, they would keep one worker busy while the others had nothing left to do. */
const LONGEST_FIRST = [
  'crash/failpoints',
  'hosts/four-hosts',
  'crash/random-kills',
  'close/conservation',
  'database/embedded',
  'database/backup',
  'delivery/deliver-processes',
  'database/replica',
  'documents/pdf',
  'crash/server',
  'crash/random-histories',
  'property/histories',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = LONGEST_FIRST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return index === -1 ? LONGEST_FIRST.length : index;
    };
    return (await super.sort(files)).sort((one, other) => place(one) - place(other));
  }
}

const { unit, pdf, database, programs } = projects();
const globalSetup = ['test/support/server.ts'];

export default defineConfig({
  // The sources instead of the compiled files that package.json names. Compiled files import one another.
  resolve: { alias: [{ find: /^#/, replacement: `${import.meta.dirname}/src/` }] },
  test: {
    server: { deps: { external: [/\/dist\//] } },
    projects: [
      { extends: true, test: { name: 'unit', include: [...unit] } },
      { extends: true, test: { name: 'pdf', include: [...pdf] } },
      { extends: true, test: { name: 'database', include: [...database], globalSetup } },
      {
        extends: true,
        test: { name: 'programs', include: [...programs], globalSetup, setupFiles: ['test/support/last-runs.ts'] },
      },
    ],
    // One for the run, also where it is random: what a red run prints repeats it.
    env: { RECKONER_SEED: String(SEED) },
    reporters: ['default', './test/support/report.ts'],
    // Each file has a database of its own, cloned from one migrated template; two cores are enough for three files.
    maxWorkers: 3,
    // Files of one worker share what they have loaded and compiled, 1.4 s of CPU a file: what a file changes beyond its
    // own world (a module's state, the environment) it puts back.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // Of a machine that has other things to do.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
