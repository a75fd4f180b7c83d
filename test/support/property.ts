/** fast-check with the seed of the run (random.ts). A failing property prints its seed and its smallest example. */
import fc from 'fast-check';
import { SEED } from './random.ts';

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED });

export default fc;
