/**
 * Fields of an input, named in sentences. Each interface has its own names for them: the command line its options, the
 * console the labels of its form.
 */

/** A field in a sentence, or a value of the field: `fieldName('kind', 'duplicate')`. */
export const fieldName = (name: string, value = ''): string => `⟦${name} ${value}⟧`;

export type NameOf = (field: string, value: string) => string;

/** A sentence with an interface's names for the fields. */
export const inNames = (sentence: string, nameOf: NameOf): string =>
  sentence.replaceAll(/⟦(\w+) ([^⟧]*)⟧/g, (_, name: string, value: string) => nameOf(name, value));

/** `creditNote` is `credit-note`. An id is named after its object: `partnerId` is `partner`. */
export const inKebab = (name: string): string =>
  name
    .replace(/Id$/, '')
    .replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    .replaceAll('_', '-');

/** `--as duplicate` */
export const withValue = (option: string, value: string): string => (value === '' ? option : `${option} ${value}`);

/** Names a field by the option that has its name. */
export const asOption: NameOf = (name, value) => withValue(`--${inKebab(name)}`, value);
