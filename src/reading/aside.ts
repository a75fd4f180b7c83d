/**
 * Reads uploaded files in a separate process. No other request waits for it, it has none of our secrets, and a file
 * that needs too much memory or time ends only that process. A thread that runs out of memory could end the whole
 * program.
 *
 * A reader is next to the format that it reads: `export const partnerFile = readerOf(import.meta.url, 'partnerFile', ({
 * name, bytes }) => …)`. Its task and its content are plain values. It refuses a file with its first problems, or with
 * more items than MOST_ITEMS. Refusals: file_items_too_many, file_memory, file_takes_too_long, and those of the reader.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { COMPILED } from '../compiled.ts';
import { COMMAND_SECONDS, someOf } from '../errors/definition.ts';
import { Refusal, type RefusalCode, refuse } from '../errors/refusals.ts';

export interface GivenFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface FileReader<Task extends GivenFile, Content> {
  readonly module: string;
  /** The name under which its module exports it. */
  readonly name: string;
  readonly read: (task: Task) => Content | Promise<Content>;
}

export const readerOf = <Task extends GivenFile, Content>(
  module: string,
  name: string,
  read: FileReader<Task, Content>['read'],
): FileReader<Task, Content> => ({ module, name, read });

/** A process takes a fifth of a second to start. Smaller files are read faster than that, whatever their content. */
const LARGE_BYTES = 64 * 1024;
/** The memory of the process is this, plus a certain amount for each byte of the files. */
const LEAST_MEBIBYTES = 128;
const TIMES_THE_FILE = 32;

/**
 * Includes the wait for a turn. It is less than a request may take (http/gates.ts), so that the request can answer with
 * the refusal.
 */
export const SERVER_SECONDS = 20;
let longestSeconds = COMMAND_SECONDS;

/** How long reading the files of one input may take, from now on. */
export function setReadingSeconds(seconds: number): void {
  longestSeconds = seconds;
}

/** The answer of the process. */
export type Outcome =
  | { readonly contents: readonly unknown[] }
  | { readonly refused: { code: RefusalCode; facts: Record<string, unknown>; message: string } }
  | { readonly failed: Error };

/** How the process ended. */
interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export async function readAside<Task extends GivenFile, Content>(
  reader: FileReader<Task, Content>,
  task: Task,
): Promise<Content> {
  const [content] = await readAllAside(reader, [task]);
  return content as Content;
}

/** Reads the files of one input, in one process. */
export async function readAllAside<Task extends GivenFile, Content>(
  reader: FileReader<Task, Content>,
  tasks: readonly Task[],
): Promise<readonly Content[]> {
  const bytes = tasks.reduce((sum, task) => sum + task.bytes.length, 0);
  if (!COMPILED || bytes < LARGE_BYTES) {
    const contents: Content[] = [];
    for (const task of tasks) contents.push(await reader.read(task));
    return contents;
  }
  const mebibytes = LEAST_MEBIBYTES + Math.ceil((TIMES_THE_FILE * bytes) / 2 ** 20);
  const outcome = await inTurn(() => outcomeOf(reader, tasks, mebibytes));
  if ('contents' in outcome) return outcome.contents as readonly Content[];
  if ('failed' in outcome) {
    throw new Error(`reading ${filesOf(tasks)} failed: ${outcome.failed.message}`, { cause: outcome.failed });
  }
  const { code, facts, message } = outcome.refused;
  throw new Refusal(code, facts, message);
}

const filesOf = (tasks: readonly GivenFile[]): string => someOf(tasks.map(({ name }) => name));

let last: Promise<unknown> = Promise.resolve();

/** Only one process runs at a time, because its memory must fit beside ours. */
function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  const result = last.then(work);
  last = result.catch(() => undefined);
  return result;
}

async function outcomeOf(
  { module, name }: Pick<FileReader<never, unknown>, 'module' | 'name'>,
  tasks: readonly GivenFile[],
  mebibytes: number,
): Promise<Outcome> {
  const child = fork(new URL('./process.js', import.meta.url), [module, name], {
    // If several limits are given, the last one counts.
    execArgv: [...process.execArgv, `--max-old-space-size=${mebibytes}`],
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const end = () => void child.kill('SIGKILL');
  process.once('exit', end);
  const seconds = longestSeconds;
  let late = false;
  const patience = setTimeout(() => {
    late = true;
    end();
  }, seconds * 1000);
  try {
    const answer = await answerOf(child, tasks);
    if ('contents' in answer || 'refused' in answer || 'failed' in answer) return answer;
    const file = filesOf(tasks);
    if (late) throw refuse('file_takes_too_long', { file, seconds });
    if (isOutOfMemory(answer)) throw refuse('file_memory', { file, mebibytes });
    throw new Error(`the reading of ${file} was ended (${answer.signal ?? `exit ${answer.code}`})`);
  } finally {
    clearTimeout(patience);
    process.off('exit', end);
    end();
  }
}

/** V8 aborts if its heap is full, and traps if an array exceeds the maximum size. */
const isOutOfMemory = ({ code, signal }: End): boolean =>
  code === 134 || signal === 'SIGABRT' || signal === 'SIGTRAP' || signal === 'SIGILL';

const answerOf = (child: ChildProcess, tasks: readonly GivenFile[]): Promise<Outcome | End> =>
  new Promise((resolve, reject) => {
    child.once('message', (outcome) => resolve(outcome as Outcome));
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', reject);
    // A child that exits early is reported through its exit.
    child.send(tasks, () => undefined);
  });
