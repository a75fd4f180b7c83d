/**
 * The contents of an input's files. Each is read once, in a separate process, when a step of the action first needs it.
 */
import { type FileReader, type GivenFile, readAllAside, readAside } from '../reading/aside.ts';
import type { FileInput } from './fields.ts';

const contents = new WeakMap<FileInput, Promise<unknown>>();

/** `task`: what the reader needs besides the file. */
export const contentOf = <Task extends GivenFile, Content>(
  file: FileInput,
  reader: FileReader<Task, Content>,
  task: Omit<Task, keyof GivenFile>,
): Promise<Content> => contentBy(file, () => readAside(reader, { ...file, ...task } as unknown as Task));

/** The same for all files of one input, read in one process. */
export function contentsOf<Content>(
  files: readonly FileInput[],
  reader: FileReader<GivenFile, Content>,
): Promise<Content[]> {
  let reading: Promise<readonly Content[]> | undefined;
  const contentAt = async (index: number) => {
    reading ??= readAllAside(reader, files);
    return (await reading)[index] as Content;
  };
  return Promise.all(files.map((file, index) => contentBy(file, () => contentAt(index))));
}

/** The same for a reader that queries the database first. */
export function contentBy<Content>(file: FileInput, read: () => Promise<Content>): Promise<Content> {
  const content = (contents.get(file) as Promise<Content> | undefined) ?? read();
  contents.set(file, content);
  return content;
}
