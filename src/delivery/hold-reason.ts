/** Why a document is not sent now. */

/** Something that the document needs is missing and must be supplied. */
export class HoldReason extends Error {}

/** Something that the document needs will be available in a while. */
export class NotYet extends Error {}
