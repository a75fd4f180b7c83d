/** The part of SaxonJS that the tests use; it has no types. */
declare module 'saxon-js' {
  interface Transformation {
    readonly stylesheetInternal: object;
    readonly sourceText: string;
    readonly destination: 'serialized';
  }
  const SaxonJS: { transform(options: Transformation): { readonly principalResult: string } };
  export default SaxonJS;
}
