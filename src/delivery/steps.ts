/**
 * Records the steps of deliveries: read the document; record the printed data; store the PDF and offer the e-mail;
 * record the outcome. Concurrent steps share one transaction. Transactions of their own were most of PostgreSQL's work
 * for a document, because each write waited for the disk.
 */
import { needRows } from '#archive/rows';
import { Database } from '#database/database';
import { gather } from '#database/gather';
import { execute, isFaultOfOne, prepared, Transaction } from '#database/transaction';
import { DocumentRow, readDocumentsToRender } from '#documents/documents.sql';
import { recordOutcomes } from '#mail/log';
import { AttemptOutcome } from '#mail/log.sql';
import { Offer, offerEmails } from '#mail/outbox.sql';
import {
  DocumentEmail,
  InstructionUse,
  KeptPdf,
  LinkToKeep,
  PdfToKeep,
  PrintedInstructions,
  RowsOfDocument,
  readDocumentEmails,
  readPdfs,
  readPresentBuyers,
  readRowsOfDocuments,
  readScopeOf,
  recordInstructionVersions,
  recordPaymentLinks,
  recordPdfs,
} from './documents.sql.ts';
import { endLinkChecks, LinkCheck, readLinkChecks } from './due.sql.ts';
import { PresentBuyer } from './e-invoice.ts';

/**
 * Find and prepare start a batch only when a third of the deliveries in progress wait for the same step. Smaller
 * batches had 2.6 documents on average, and a third of PostgreSQL's work was their overhead. No step waits forever: if
 * all deliveries wait, at least a third wait for the same step. Offers and outcomes are recorded immediately, so that
 * no mail server waits and no e-mail stays uncertain.
 */
const STEPS_WITH_A_LEAST_BATCH = 3;

/** The rows of a document with more are read separately. */
const MANY_ROWS = 1000;

const NO_ROWS: RowsOfDocument = { count: 0, lines: '' };

export type DeliveryState = Readonly<{
  document: DocumentRow | undefined;
  email: DocumentEmail | undefined;
  check: LinkCheck | undefined;
}>;

/** What is printed or attached, and not frozen with the document. */
export type Preparation = Readonly<{
  documentId: number;
  link?: LinkToKeep | undefined;
  instructions?: InstructionUse | undefined;
  /** Whether the PDF is wanted and stored. */
  pdf: boolean;
  /** The number of rows that the document bills; undefined if the rows are not wanted. */
  rows: number | undefined;
  /** If an e-invoice is to be written. */
  buyer?: string | undefined;
}>;

type PreparedDocument = Readonly<{
  paymentLink: string | undefined;
  /** If they are wanted, and any are in force. */
  instructions: PrintedInstructions | undefined;
  pdf: KeptPdf | undefined;
  rows: RowsOfDocument;
  buyer: PresentBuyer | undefined;
}>;

/** A new PDF, an e-mail to offer, both of these, or the outcome of an attempt. */
type Keeping = Readonly<{
  pdf?: PdfToKeep | undefined;
  offer?: Offer | undefined;
  outcome?: AttemptOutcome | undefined;
}>;

export class DeliverySteps {
  private readonly database: Database;
  readonly find: (documentId: number) => Promise<DeliveryState>;
  /**
   * Whether this worker should still send the e-mail or, for an outcome, whether the attempt was still this worker's.
   */
  readonly keep: (keeping: Keeping) => Promise<boolean>;
  readonly endCheck: (check: LinkCheck) => Promise<unknown>;
  private readonly prepareTogether: (preparation: Preparation) => Promise<PreparedDocument>;
  private readonly lookAgain: (() => void)[];
  private underWay = 0;

  constructor(database: Database) {
    this.database = database;
    const least = () => Math.ceil(this.underWay / STEPS_WITH_A_LEAST_BATCH);
    const find = together<number, DeliveryState>(
      (ids) => database.inOneTrip((tx) => findAll(tx, ids), { readOnly: true }),
      least,
    );
    const prepare = together<Preparation, PreparedDocument>((wanted) => {
      const readOnly = wanted.every(({ link, instructions }) => link === undefined && instructions === undefined);
      return database.inOneTrip((tx) => prepareAll(tx, wanted), { readOnly });
    }, least);
    const keep = together<Keeping, boolean>((keepings) => database.inOneTrip((tx) => keepAll(tx, keepings)));
    const endCheck = together<LinkCheck, unknown>(async (checks) => {
      await database.inOneTrip((tx) => endLinkChecks(tx, { checks }));
      return checks;
    });
    [this.find, this.prepareTogether, this.keep] = [find.ask, prepare.ask, keep.ask];
    this.endCheck = endCheck.ask;
    this.lookAgain = [find.look, prepare.look];
  }

  /** Runs a delivery, in progress until it ends. */
  async underWayWith<Result>(delivery: () => Promise<Result>) {
    this.underWay += 1;
    try {
      return await delivery();
    } finally {
      this.letGo();
    }
  }

  /** Calls a mail server or a processor, which may take minutes. The delivery does not count as in progress then. */
  async outside<Result>(call: () => Promise<Result>) {
    this.letGo();
    try {
      return await call();
    } finally {
      this.underWay += 1;
    }
  }

  private letGo() {
    this.underWay -= 1;
    for (const look of this.lookAgain) look();
  }

  async prepare(wanted: Preparation): Promise<PreparedDocument> {
    const { documentId, rows: most = 0 } = wanted;
    const prepared = await this.prepareTogether({ ...wanted, rows: most > MANY_ROWS ? undefined : wanted.rows });
    if (prepared.rows.count >= most) return prepared;
    // There are many rows, or they are archived.
    const rows = await this.database.reading(async (tx) => {
      await needRows(tx, await readScopeOf(tx, { documentIds: [documentId] }));
      return readRowsOfDocuments(tx, [documentId]);
    });
    return { ...prepared, rows: rows.get(documentId) ?? NO_ROWS };
  }
}

/** Answers all waiting questions in one transaction. If it fails because of one, each is retried alone. */
function together<Question, Answer>(
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
  least?: () => number,
): Readonly<{ ask: (question: Question) => Promise<Answer>; look: () => void }> {
  type Asked = Readonly<{
    question: Question;
    resolve: (answer: Answer) => void;
    reject: (error: unknown) => void;
  }>;
  const answer = async (asked: readonly Asked[]) => {
    try {
      const answers = await answerAll(asked.map(({ question }) => question));
      for (const [index, { resolve }] of asked.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      if (asked.length > 1 && isFaultOfOne(error)) await Promise.all(asked.map((each) => answer([each])));
      else for (const { reject } of asked) reject(error);
    }
  };
  const { add, look } = gather<Asked>(answer, least);
  return { ask: (question) => new Promise((resolve, reject) => add({ question, resolve, reject })), look };
}

/**
 * By default, the server plans this query each time, which takes 9 ms: it estimates that a generic plan reads more
 * documents.
 */
const PLAN_ONCE = prepared('delivery.plan_once', 'SET LOCAL plan_cache_mode TO force_generic_plan');

async function findAll(tx: Transaction, ids: readonly number[]): Promise<DeliveryState[]> {
  const [, documents, emails, checks] = await Promise.all([
    execute(tx, PLAN_ONCE),
    readDocumentsToRender(tx, { ids }),
    readDocumentEmails(tx, ids),
    readLinkChecks(tx, { documentIds: ids }),
  ]);
  const byId = new Map(documents.map((row) => [row.document_id, row]));
  const checkOf = (id: number) => checks.find(({ document_id }) => document_id === id);
  return ids.map((id) => ({ document: byId.get(id), email: emails.get(id), check: checkOf(id) }));
}

async function prepareAll(tx: Transaction, wanted: readonly Preparation[]): Promise<PreparedDocument[]> {
  const links = wanted.flatMap(({ link }) => link ?? []);
  const uses = wanted.flatMap(({ instructions }) => instructions ?? []);
  const idsOf = (those: readonly Preparation[]) => those.map(({ documentId }) => documentId);
  const withPdf = idsOf(wanted.filter(({ pdf }) => pdf));
  const withRows = idsOf(wanted.filter(({ rows }) => rows !== undefined));
  const partnerIds = [...new Set(wanted.flatMap(({ buyer }) => buyer ?? []))];
  const [paymentLinks, versions, pdfs, rows, buyers] = await Promise.all([
    links.length > 0 ? recordPaymentLinks(tx, links) : undefined,
    uses.length > 0 ? recordInstructionVersions(tx, uses) : undefined,
    withPdf.length > 0 ? readPdfs(tx, withPdf) : undefined,
    withRows.length > 0 ? readRowsOfDocuments(tx, withRows) : undefined,
    partnerIds.length > 0 ? readPresentBuyers(tx, { partnerIds }) : undefined,
  ]);
  return wanted.map(({ documentId: id, buyer }) => ({
    paymentLink: paymentLinks?.get(id),
    instructions: versions?.get(id),
    pdf: pdfs?.get(id),
    rows: rows?.get(id) ?? NO_ROWS,
    buyer: buyers?.find(({ partner_id }) => partner_id === buyer),
  }));
}

async function keepAll(tx: Transaction, keepings: readonly Keeping[]) {
  const pdfs = keepings.flatMap(({ pdf }) => pdf ?? []);
  const offers = keepings.flatMap(({ offer }) => offer ?? []);
  const outcomes = keepings.flatMap(({ outcome }) => outcome ?? []);
  const [, offered, recorded] = await Promise.all([
    pdfs.length > 0 ? recordPdfs(tx, pdfs) : undefined,
    offers.length > 0 ? offerEmails(tx, offers) : [],
    outcomes.length > 0 ? recordOutcomes(tx, outcomes) : [],
  ]);
  return keepings.map(({ offer, outcome }) =>
    outcome === undefined
      ? offer !== undefined && offered[offers.indexOf(offer)] === true
      : recorded[outcomes.indexOf(outcome)] === true,
  );
}
