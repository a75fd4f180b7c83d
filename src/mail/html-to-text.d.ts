/** The part of html-to-text that is used; the package has no types. */
declare module 'html-to-text' {
  export function compile(options: object): (html: string) => string;
}
