/**
 * Reads uploaded files in a separate process that has none of our secrets. Other requests do not wait for that process.
 * A file that needs too much memory or time ends only that process. If a thread ran out of memory, the whole program
 * could end.
 *
 * A reader returns the content, or yields it in pieces: then neither process ever has a copy of the whole content to
 * send, and the reader needs memory only for what it reads at a time.
 *
 * Each format defines its reader: `export const partnerFile = readerOf(import.meta.url, 'partnerFile', ({ name, bytes
 * }) => …)`. Tasks and contents are plain values. A reader refuses a file that has problems, and lists the first of
 * them. A reader also refuses a file with more items than MOST_ITEMS. Refusals: file_items_too_many, file_memory,
 * file_takes_too_long, and those of the reader.
 */
import { ChildProcess, fork } from 'node:child_process';
import { COMPILED } from '#compiled';
import { COMMAND_SECONDS, someOf } from '#errors/definition';
import { Refusal, RefusalCode, refuse } from '#errors/refusals';

export interface GivenFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

export type FileReader<Task extends GivenFile, Content> = Readonly<{
  module: string;
  /** The reader's name among the exports of `module`. */
  name: string;
  read: (task: Task) => Content | Promise<Content> | Generator<Piece<Content>>;
}>;

/** A piece of a content that is a list, with the number of bytes that were read. */
export type Piece<Content> = Readonly<{ piece: Content; at: number }>;

export const readerOf = <Task extends GivenFile, Content>(
  module: string,
  name: string,
  read: FileReader<Task, Content>['read'],
): FileReader<Task, Content> => ({ module, name, read });

/**
 * Starting a process takes a fifth of a second. Smaller files are read in less time, whatever their content, so the
 * main process reads them.
 */
const LARGE_BYTES = 64 * 1024;
/** The process may use this amount of memory, plus TIMES_THE_FILE bytes for each byte of the files. */
const LEAST_MEBIBYTES = 128;
const TIMES_THE_FILE = 32;

/**
 * The time limit for reading the files of one request, including the wait for a turn. This limit is shorter than the
 * limit for a request (http/gates.ts), so that the request can answer with the refusal.
 */
export const SERVER_SECONDS = 20;
let longestSeconds = COMMAND_SECONDS;

/** Sets the time limit for reading the files of one input. */
export function setReadingSeconds(seconds: number) {
  longestSeconds = seconds;
}

type Progress = Readonly<{ label: string; done: number; total: number; unit: 'bytes' | 'lines' }>;
let onProgress: (progress: Progress) => void = () => undefined;

/** Sets the listener for the progress of large files. */
export function setFileProgress(listener: typeof onProgress) {
  onProgress = listener;
}

export const tellProgress = (progress: Progress) => onProgress(progress);

export type Outcome =
  | { readonly contents: readonly unknown[] }
  | { readonly refused: { code: RefusalCode; facts: Record<string, unknown>; message: string } }
  | { readonly failed: Error };

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export async function readAside<Task extends GivenFile, Content>(reader: FileReader<Task, Content>, task: Task) {
  const [content] = await readAllAside(reader, [task]);
  return content as Content;
}

/** Reads the files of one input in one process. */
export async function readAllAside<Task extends GivenFile, Content>(
  reader: FileReader<Task, Content>,
  tasks: readonly Task[],
) {
  const bytes = tasks.reduce((sum, task) => sum + task.bytes.length, 0);
  if (!COMPILED || bytes < LARGE_BYTES) {
    const contents: Content[] = [];
    for (const task of tasks) contents.push(await collectContent(reader.read(task)));
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

/** Collects the pieces of a content, which is a list. */
export async function collectContent<Content>(
  read: Content | Promise<Content> | Generator<Piece<Content>>,
  take?: (piece: Piece<Content>) => Promise<void>,
) {
  if (!isGenerator(read)) return read;
  const pieces: unknown[] = [];
  for (const each of read) {
    if (take !== undefined) await take(each);
    else for (const item of each.piece as readonly unknown[]) pieces.push(item);
  }
  return pieces as Content;
}

const isGenerator = <Content>(read: unknown): read is Generator<Piece<Content>> =>
  typeof read === 'object' && read !== null && 'next' in read;

const filesOf = (tasks: readonly GivenFile[]) => someOf(tasks.map(({ name }) => name));

let last: Promise<unknown> = Promise.resolve();

/** Runs only one process at a time, because its memory must fit beside the memory of this process. */
function inTurn<Result>(work: () => Promise<Result>) {
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
    // If `process.execArgv` contains a limit too, Node uses the last one.
    execArgv: [...process.execArgv, `--max-old-space-size=${mebibytes}`, ...SMALL_HEAP],
    env: {},
    serialization: 'advanced',
    stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
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

/**
 * Young objects: less than the default of 16 MiB, which took 30 MB more and saved no time. Old objects: collected when
 * the heap has grown by a fifth, which takes 70 to 90 MB less for a bank file of 100 MB, and an eighth more time.
 */
const SMALL_HEAP = ['--max-semi-space-size=4', '--heap-growing-percent=20'];

/** V8 aborts if its heap is full, and stops with a trap if an array would exceed the maximum size. */
const isOutOfMemory = ({ code, signal }: End) =>
  code === 134 || signal === 'SIGABRT' || signal === 'SIGTRAP' || signal === 'SIGILL';

/**
 * Sends the tasks, and the files on stdin, where no copy is made of them. Collects the pieces of the only content that is in
 * pieces.
 */
function answerOf(child: ChildProcess, tasks: readonly GivenFile[]): Promise<Outcome | End> {
  const pieces: unknown[] = [];
  const total = tasks.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const answer = new Promise<Outcome | End>((resolve, reject) => {
    child.on('message', (message: Outcome | Piece<readonly unknown[]>) => {
      if (!('piece' in message)) {
        const whole = 'contents' in message && pieces.length > 0 ? { contents: [pieces] } : message;
        resolve(whole);
        return;
      }
      for (const each of message.piece) pieces.push(each);
      tellProgress({ label: `Reading ${filesOf(tasks)}`, done: message.at, total, unit: 'bytes' });
    });
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', reject);
  });
  // The event `exit` reports a child that exits early.
  child.stdin?.on('error', () => undefined);
  child.send(
    tasks.map(({ bytes, ...task }) => ({ ...task, length: bytes.length })),
    () => undefined,
  );
  for (const { bytes } of tasks) child.stdin?.write(bytes);
  return answer;
}
