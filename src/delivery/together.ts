/**
 * What several deliveries ask of the database, asked in one transaction and one round trip. A document's delivery has four
 * steps there: what it is, what it prints and its letter brings along, its drawing and letter before that is sent, and
 * how that ended. Each alone, these were most of what PostgreSQL did for it: every write waited for the disk by itself.
 */
import pg from 'pg';
import type { Database } from '../database/database.ts';
import { type Send, type Statement, sendWithin } from '../database/transaction.ts';
import { type DocumentRow, readDocumentsToRender } from '../documents/queries.ts';
import {
  type Claim,
  claimSendings,
  type DrawingFacts,
  type InstructionUse,
  type KeptDrawing,
  type LinkToKeep,
  type RowOfDocument,
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

/**
 * So many set out together at most. Larger groups share more; but a program that is killed leaves as many letters as it
 * had under way of which it is not known whether they arrived.
 */
export const GROUP = 8;

/** More rows than this are read apart from those of other documents. */
const MANY_ROWS = 1000;

/** Whoever is first waits no longer than this for companions. */
const COMPANIONS_MILLISECONDS = 40;

/** Whoever has asked waits no longer than this for the others: a mail server may keep one of them for minutes. */
const PATIENCE_MILLISECONDS = 2000;

/** What was sent is soon recorded: until then nobody knows, should this process be killed, that it arrived. */
const SENT_PATIENCE_MILLISECONDS = 100;

/**
 * Deliveries that set out together and go step by step: what they ask is asked when each of them waits, or has left.
 * Nobody joins them on the way: who came later would ask for the first step whenever the others ask for the second.
 */
class Group {
  private working = 0;
  private asking: (() => void)[] = [];
  private timers: NodeJS.Timeout[] = [];

  /** Does a member's work, who was counted by `goOn`. */
  async member<Result>(work: () => Promise<Result>): Promise<Result> {
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

  /** So many members set out, or have their answer. */
  goOn(members: number): void {
    this.working += members;
  }

  private check(): void {
    if (this.working <= 0 && this.asking.length > 0) this.askAll();
  }

  private askAll(): void {
    for (const timer of this.timers.splice(0)) clearTimeout(timer);
    for (const ask of this.asking.splice(0)) ask();
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
  group: Group,
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
  patienceMilliseconds = PATIENCE_MILLISECONDS,
): (question: Question) => Promise<Answer> {
  let waiting: Asked<Question, Answer>[] = [];
  const answerSome = async (asked: readonly Asked<Question, Answer>[]): Promise<void> => {
    try {
      const answers = await answerAll(asked.map(({ question }) => question));
      group.goOn(asked.length);
      for (const [index, { answer }] of asked.entries()) answer(answers[index] as Answer);
    } catch (error) {
      if (asked.length > 1 && error instanceof pg.DatabaseError) {
        for (const each of asked) await answerSome([each]);
        return;
      }
      group.goOn(asked.length);
      for (const { fail } of asked) fail(error);
    }
  };
  return (question) =>
    new Promise((answer, fail) => {
      waiting.push({ question, answer, fail });
      group.wait(() => {
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

/** What a document prints besides its frozen data, and what goes with its letter. */
export interface Preparation {
  readonly documentId: number;
  /** To be kept, where none is. */
  readonly link?: LinkToKeep | undefined;
  readonly instructions?: InstructionUse | undefined;
  /** Whether its drawing is wanted, which is kept already. */
  readonly drawing: boolean;
  /** Whether the rows are wanted that it bills; how many there are. */
  readonly rows: number | false;
}

export interface Prepared {
  /** The URL of the link that is kept. */
  readonly paymentLink: string | undefined;
  readonly instructions: { readonly id: number; readonly changed: boolean } | undefined;
  readonly drawing: KeptDrawing | undefined;
  readonly rows: readonly RowOfDocument[];
}

/** A drawing made just now, a letter to be sent, or both. */
export interface Keeping {
  readonly drawing: DrawingFacts | undefined;
  readonly claim: Claim | undefined;
}

/** The database's part in the delivery of one document, each step in a transaction that others may share. */
export interface DeliverySteps {
  readonly look: (documentId: number) => Promise<Looked>;
  readonly prepare: (preparation: Preparation) => Promise<Prepared>;
  /** Whether the letter is this worker's to send. */
  readonly keep: (keeping: Keeping) => Promise<boolean>;
  readonly settle: (settlement: Settlement) => Promise<boolean>;
}

export interface StepsTogether {
  /** Goes through the steps of one document, with those of others who come at the same time. */
  readonly through: <Result>(work: (steps: DeliverySteps) => Promise<Result>) => Promise<Result>;
}

export function stepsTogether(database: Database): StepsTogether {
  let forming: { members: number; readonly companions: Promise<Companions>; readonly setOut: () => void } | undefined;
  const form = () => {
    let setOut: () => void = () => {};
    const companions = new Promise<Companions>((resolve) => {
      setOut = () => {
        clearTimeout(patience);
        if (forming === formed) forming = undefined;
        const group = new Group();
        group.goOn(formed.members);
        resolve({ group, steps: stepsOf(group, database) });
      };
    });
    const patience = setTimeout(() => setOut(), COMPANIONS_MILLISECONDS);
    const formed = { members: 0, companions, setOut };
    return formed;
  };
  return {
    async through(work) {
      forming ??= form();
      const { companions, setOut } = forming;
      forming.members += 1;
      if (forming.members === GROUP) setOut();
      const { group, steps } = await companions;
      return group.member(() => work(steps));
    },
  };
}

interface Companions {
  readonly group: Group;
  readonly steps: DeliverySteps;
}

function stepsOf(group: Group, database: Database): DeliverySteps {
  const prepare = together(group, (wanted: readonly Preparation[]) =>
    database.inOneTrip((tx) => prepareAll(sendWithin(tx), wanted), {
      readOnly: wanted.every(({ link, instructions }) => link === undefined && instructions === undefined),
    }),
  );
  return {
    look: together(group, (ids: readonly number[]) =>
      database.inOneTrip((tx) => lookAtAll(sendWithin(tx), ids), { readOnly: true }),
    ),
    async prepare(wanted) {
      if (wanted.rows === false || wanted.rows <= MANY_ROWS) return prepare(wanted);
      const prepared = await prepare({ ...wanted, rows: false });
      const ids = [wanted.documentId];
      const rows = await database.inOneTrip((tx) => readRowsOfDocuments(sendWithin(tx), ids), { readOnly: true });
      return { ...prepared, rows: rows.get(wanted.documentId) ?? [] };
    },
    keep: together(group, (keepings: readonly Keeping[]) =>
      database.inOneTrip((tx) => keepAll(sendWithin(tx), keepings)),
    ),
    settle: together(
      group,
      (settlements: readonly Settlement[]) => database.inOneTrip((tx) => settleSendings(sendWithin(tx), settlements)),
      SENT_PATIENCE_MILLISECONDS,
    ),
  };
}

/** Left to itself, the server plans what a document is each time, 9 ms, since it expects to read more of them else. */
const PLAN_ONCE: Statement = { name: 'delivery.plan_once', text: 'SET LOCAL plan_cache_mode TO force_generic_plan' };

async function lookAtAll(send: Send, ids: readonly number[]): Promise<Looked[]> {
  const [, documents, sendings] = await Promise.all([
    send(PLAN_ONCE, []),
    readDocumentsToRender(send, ids),
    readSendings(send, ids),
  ]);
  const byId = new Map(documents.map((row) => [row.document_id, row]));
  return ids.map((id) => ({ document: byId.get(id), sending: sendings.get(id) }));
}

async function prepareAll(send: Send, wanted: readonly Preparation[]): Promise<Prepared[]> {
  const links = wanted.flatMap(({ link }) => link ?? []);
  const uses = wanted.flatMap(({ instructions }) => instructions ?? []);
  const idsOf = (those: readonly Preparation[]) => those.map(({ documentId }) => documentId);
  const drawn = idsOf(wanted.filter(({ drawing }) => drawing));
  const withRows = idsOf(wanted.filter(({ rows }) => rows !== false));
  const [paymentLinks, versions, drawings, rows] = await Promise.all([
    links.length > 0 ? recordPaymentLinks(send, links) : undefined,
    uses.length > 0 ? recordInstructionVersions(send, uses) : undefined,
    drawn.length > 0 ? readDrawings(send, drawn) : undefined,
    withRows.length > 0 ? readRowsOfDocuments(send, withRows) : undefined,
  ]);
  return wanted.map(({ documentId: id }) => ({
    paymentLink: paymentLinks?.get(id),
    instructions: versions?.get(id),
    drawing: drawings?.get(id),
    rows: rows?.get(id) ?? [],
  }));
}

async function keepAll(send: Send, keepings: readonly Keeping[]): Promise<boolean[]> {
  const drawings = keepings.flatMap(({ drawing }) => drawing ?? []);
  const claims = keepings.flatMap(({ claim }) => claim ?? []);
  const [, claimed] = await Promise.all([
    drawings.length > 0 ? recordDrawings(send, drawings) : undefined,
    claims.length > 0 ? claimSendings(send, claims) : [],
  ]);
  return keepings.map(({ claim }) => claim !== undefined && claimed[claims.indexOf(claim)] === true);
}
