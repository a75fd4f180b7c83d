/** Thrown if something that a document needs is missing and must be supplied. */
export class HoldReason extends Error {}

/** Thrown if something that a document needs will be available later. */
export class NotYet extends Error {}
