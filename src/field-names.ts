/** Names of input fields in sentences. The command line names a field's option, and the console names its label. */

/** Marks a field, or a value of the field, in a sentence: `fieldName('kind', 'duplicate')`. */
export const fieldName = (name: string, value = '') => `⟦${name} ${value}⟧`;

export type NameOf = (field: string, value: string) => string;

/** Replaces the marked fields of a sentence with an interface's names. */
export const inNames = (sentence: string, nameOf: NameOf) =>
  sentence.replaceAll(/⟦(\w+) ([^⟧]*)⟧/g, (_, name: string, value: string) => nameOf(name, value));

/** `creditNote` becomes `credit-note`. An id is named after its object: `partnerId` becomes `partner`. */
export const inKebab = (name: string) =>
  name
    .replace(/Id$/, '')
    .replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    .replaceAll('_', '-');

/** `--as duplicate` */
export const withValue = (option: string, value: string) => (value === '' ? option : `${option} ${value}`);

export const asOption: NameOf = (name, value) => withValue(`--${inKebab(name)}`, value);
