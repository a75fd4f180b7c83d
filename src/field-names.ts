/**
 * Fields of an input, named in sentences. Each face calls them by its own names: the command line by their options, the
 * console by the labels of their form.
 */

/** A field in a sentence; with a value, that value of it: `fieldName('kind', 'duplicate')`. */
export const fieldName = (name: string, value = ''): string => `⟦${name} ${value}⟧`;

export type NameOf = (field: string, value: string) => string;

/** A sentence with the names of a face. */
export const inNames = (sentence: string, nameOf: NameOf): string =>
  sentence.replaceAll(/⟦(\w+) ([^⟧]*)⟧/g, (_, name: string, value: string) => nameOf(name, value));

/** `creditNote` is `credit-note`. An id is asked for by what it is of: `partnerId` is `partner`. */
export const inKebab = (name: string): string =>
  name
    .replace(/Id$/, '')
    .replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    .replaceAll('_', '-');

/** `--as duplicate` */
export const withValue = (option: string, value: string): string => (value === '' ? option : `${option} ${value}`);

/** As an option that is called as its field. */
export const asOption: NameOf = (name, value) => withValue(`--${inKebab(name)}`, value);
