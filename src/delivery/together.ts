/**
 * What several deliveries ask of the database, asked in one transaction. A document's delivery reads twice and writes
 * five times; each alone, these were most of what PostgreSQL did for it: 7 ms went into planning what a document is, 0.2
 * into reading it, and every write waited for the disk by itself.
 */
import pg from 'pg';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { type DocumentRow, readDocuments } from '../documents/queries.ts';
import {
  type Claim,
  claimSendings,
  type DrawingFacts,
  type InstructionUse,
  type KeptDrawing,
  type LinkToKeep,
  readDrawings,
  readRowsOfDocuments,
  readSendings,
  recordDrawings,
  recordInstructionVersions,
  recordPaymentLinks,
  type SendingRow,
  type Settlement,
  settleSendings,
} from './queries.ts';

/** More rows than this are read apart from those of other documents. */
const MANY_ROWS = 1000;

/** Whoever has asked waits no longer than this for the others: a mail server may keep one of them for minutes. */
const PATIENCE_MILLISECONDS = 2000;

/** What was sent is soon recorded: until then nobody knows, should this process be killed, that it arrived. */
const SENT_PATIENCE_MILLISECONDS = 100;

/** Deliveries that go step by step together: what they ask is asked when each of them waits, or has left. */
class Gathering {
  private working = 0;
  private asking: (() => void)[] = [];
  private timers: NodeJS.Timeout[] = [];
  private checking = false;

  /** Does a member's work. */
  async member<Result>(work: () => Promise<Result>): Promise<Result> {
    this.working += 1;
    try {
      return await work();
    } finally {
      this.working -= 1;
      this.check();
    }
  }

  /** A member waits for an answer; `ask` is called when it is time. */
  wait(ask: () => void, patienceMilliseconds: number): void {
    this.working -= 1;
    this.asking.push(ask);
    this.timers.push(setTimeout(() => this.askAll(), patienceMilliseconds));
    this.check();
  }

  /** So many members have their answer. */
  goOn(members: number): void {
    this.working += members;
  }

  private check(): void {
    if (this.working > 0 || this.asking.length === 0 || this.checking) return;
    this.checking = true;
    // In the next turn, so that those who begin in this one come along.
    setImmediate(() => {
      this.checking = false;
      if (this.working <= 0) this.askAll();
    });
  }

  private askAll(): void {
    for (const timer of this.timers.splice(0)) clearTimeout(timer);
    const asking = this.asking;
    this.asking = [];
    for (const ask of asking) ask();
  }
}

interface Asked<Question, Answer> {
  readonly question: Question;
  readonly answer: (answer: Answer) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Answers questions of a kind together. Where the database refuses several, each is tried alone, so that what is wrong
 * with one is told of that one.
 */
function together<Question, Answer>(
  gathering: Gathering,
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
  patienceMilliseconds = PATIENCE_MILLISECONDS,
): (question: Question) => Promise<Answer> {
  let waiting: Asked<Question, Answer>[] = [];
  const answerSome = async (asked: readonly Asked<Question, Answer>[]): Promise<void> => {
    try {
      const answers = await answerAll(asked.map(({ question }) => question));
      gathering.goOn(asked.length);
      for (const [index, { answer }] of asked.entries()) answer(answers[index] as Answer);
    } catch (error) {
      if (asked.length > 1 && error instanceof pg.DatabaseError) {
        for (const each of asked) await answerSome([each]);
        return;
      }
      gathering.goOn(asked.length);
      for (const { fail } of asked) fail(error);
    }
  };
  return (question) =>
    new Promise((answer, fail) => {
      waiting.push({ question, answer, fail });
      gathering.wait(() => {
        // The first to be called asks for all.
        const asked = waiting;
        waiting = [];
        if (asked.length > 0) void answerSome(asked);
      }, patienceMilliseconds);
    });
}

export interface Looked {
  readonly document: DocumentRow | undefined;
  readonly sending: SendingRow | undefined;
}

/** The database's part in the delivery of one document, each step in a transaction that others may share. */
export interface DeliverySteps {
  /** Goes through the steps of one document. */
  readonly through: <Result>(work: () => Promise<Result>) => Promise<Result>;
  readonly look: (documentId: number) => Promise<Looked>;
  /** The URL of the link that is kept. */
  readonly keepLink: (link: LinkToKeep) => Promise<string>;
  readonly useInstructions: (use: InstructionUse) => Promise<{ id: number; changed: boolean }>;
  /** False where another worker kept one first. */
  readonly keepDrawing: (drawing: DrawingFacts) => Promise<boolean>;
  readonly readDrawing: (documentId: number) => Promise<KeptDrawing | undefined>;
  readonly readRows: (document: { id: number; entries: number }) => Promise<Record<string, string | null>[]>;
  readonly claim: (claim: Claim) => Promise<boolean>;
  readonly settle: (settlement: Settlement) => Promise<boolean>;
}

export function stepsTogether(database: Database): DeliverySteps {
  const gathering = new Gathering();
  const reading = <Question, Answer>(
    answer: (tx: Transaction, questions: readonly Question[]) => Promise<readonly Answer[]>,
  ) => together(gathering, (questions: readonly Question[]) => database.reading((tx) => answer(tx, questions)));
  const writing = <Question, Answer>(
    answer: (tx: Transaction, questions: readonly Question[]) => Promise<readonly Answer[]>,
    patience?: number,
  ) =>
    together(
      gathering,
      (questions: readonly Question[]) => database.transaction((tx) => answer(tx, questions)),
      patience,
    );
  const readRows = reading(async (tx, ids: readonly number[]) => {
    const rows = await readRowsOfDocuments(tx, ids);
    return ids.map((id) => rows.get(id) ?? []);
  });
  return {
    through: (work) => gathering.member(work),
    look: reading(async (tx, ids) => {
      const documents = new Map(
        (await readDocuments(tx, { ids, withLogos: true })).map((row) => [row.document_id, row]),
      );
      const sendings = await readSendings(tx, ids);
      return ids.map((id) => ({ document: documents.get(id), sending: sendings.get(id) }));
    }),
    keepLink: writing(recordPaymentLinks),
    useInstructions: writing(recordInstructionVersions),
    keepDrawing: writing(recordDrawings),
    readDrawing: reading(async (tx, ids) => {
      const drawings = await readDrawings(tx, ids);
      return ids.map((id) => drawings.get(id));
    }),
    readRows: ({ id, entries }) =>
      entries <= MANY_ROWS
        ? readRows(id)
        : database.reading(async (tx) => (await readRowsOfDocuments(tx, [id])).get(id) ?? []),
    claim: writing(claimSendings),
    settle: writing(settleSendings, SENT_PATIENCE_MILLISECONDS),
  };
}
