import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Half a minute of CPU each, and more: begun last, they would keep one worker busy while the others had nothing left to do. */
const LONGEST_FIRST = [
  'crash/failpoints',
  'close/conservation',
  'crash/random-kills',
  'cli/refusals',
  'database/backup',
  'crash/random-histories',
  'crash/splits',
  'delivery/deliver-processes',
  'database/embedded',
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

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/server.ts'],
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
