/**
 * The contents of an input's files. Each file is read once, in a separate process, when an action first needs the file.
 */
import { FileReader, GivenFile, readAllAside, readAside } from '#reading/aside';
import { FileInput } from './fields.ts';

const contents = new WeakMap<FileInput, Promise<unknown>>();

/** Returns the content of a file. `task` has further arguments of the reader. */
export const contentOf = <Task extends GivenFile, Content>(
  file: FileInput,
  reader: FileReader<Task, Content>,
  task: Omit<Task, keyof GivenFile>,
) => contentBy(file, () => readAside(reader, { ...file, ...task } as unknown as Task));

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

/** Returns the content of a file. The file's reader queries the database first. */
export function contentBy<Content>(file: FileInput, read: () => Promise<Content>) {
  const content = (contents.get(file) as Promise<Content> | undefined) ?? read();
  contents.set(file, content);
  return content;
}
