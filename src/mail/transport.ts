/**
 * Passes a composed message to a mail server, or to a folder if there is none. Refusals: environment_invalid
 * (SMTP_URL).
 */
import { hash } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { parseConnectionUrl } from 'nodemailer/lib/shared';
import SMTPConnection, { SMTPConnectionAuth, SMTPConnectionOptions } from 'nodemailer/lib/smtp-connection';
import { Environment, isThisMachine } from '#config/environment';
import { reasonOf, refuse } from '#errors/refusals';
import { isSystemError, makeFolder, writeWhole } from '#files';
import { atMost } from '#turns';
import { bareMessageId } from './message.ts';
import { CALLED_OFF, Parcel } from './parcel.ts';
import { oneLine } from './text.ts';

export type SendOutcome =
  /**
   * The message was accepted. `reply` is the server's reply with every recipient it rejected, or `outbox/` and the name
   * of the file.
   */
  | { outcome: 'sent'; reply: string }
  /** Refused for good, so there is no point in trying again. */
  | { outcome: 'refused'; reply: string }
  /** Certainly not accepted; another attempt may succeed. */
  | { outcome: 'deferred'; reply: string }
  /** The end of the message may have reached the server, but no answer reached us. */
  | { outcome: 'unclear'; reply: string };

export type OutgoingMessage = Readonly<{
  messageId: string;
  envelope: Readonly<{ from: string; to: readonly string[] }>;
  raw: Buffer;
  /** Called at most once, right before the first byte is sent. False if the message should not be sent after all. */
  offer?: () => Promise<boolean>;
}>;

export interface Transport {
  readonly name: 'smtp' | 'outbox';
  send(message: OutgoingMessage): Promise<SendOutcome>;
  /**
   * Ends idle connections, and defers messages that wait for one. Those in progress are finished, or cut off after this
   * time.
   */
  close(graceMilliseconds?: number): void;
}

/** In milliseconds. */
export type Patience = Readonly<{
  /** The time limit from the look-up of the server's name to an established connection. */
  connection: number;
  greeting: number;
  /** How long the connection may be silent. */
  socket: number;
  /**
   * For a silent connection after the end of the message, while the server examines it. RFC 5321 (4.5.3.2.6) asks for
   * ten minutes, because a message would be sent twice if the client gave up early. Five are a compromise.
   */
  answer: number;
  /** The time limit for one message, even if the server keeps the connection busy without progress. */
  message: number;
}>;

const PATIENCE: Patience = {
  connection: 15_000,
  greeting: 15_000,
  socket: 45_000,
  answer: 300_000,
  message: 900_000,
};

export type TransportOptions = Readonly<{
  smtpUrl?: string | undefined;
  outbox: string;
  patience?: Partial<Patience> | undefined;
  connections?: number | undefined;
}>;

/** The environment's mail server, otherwise the outbox under its home. */
export function transportOf({ smtpUrl, home }: Environment): Transport {
  return openTransport({ smtpUrl, outbox: join(home, 'outbox') });
}

export function openTransport(options: TransportOptions): Transport {
  if (options.smtpUrl === undefined) return new Outbox(options.outbox);
  const patience = { ...PATIENCE, ...options.patience };
  return new Smtp(serverOf(options.smtpUrl), patience, options.connections ?? 4);
}

const always = () => Promise.resolve(true);

// --- Outbox ---

/** A folder of `.eml` files named by Message-ID. An existing file is complete and survives a crash. */
class Outbox implements Transport {
  readonly name = 'outbox';
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = resolve(folder);
  }

  async send({ messageId, raw, offer = always }: OutgoingMessage): Promise<SendOutcome> {
    const name = `${fileName(messageId)}.eml`;
    if (!(await offer())) return { outcome: 'deferred', reply: CALLED_OFF };
    try {
      await makeFolder(this.folder);
      await writeWhole(join(this.folder, name), raw, 'replace');
    } catch (error) {
      // A person can fix a disk (full, read-only, not permitted). Any other error is a bug.
      if (!isSystemError(error)) throw error;
      return { outcome: 'deferred', reply: oneLine(reasonOf(error)) };
    }
    // The reply omits the full path, because every reader of the document's history sees the reply.
    return { outcome: 'sent', reply: `outbox/${name}` };
  }

  close() {}
}

/** The Message-ID, unchanged if it can be a file name. Otherwise, its hash keeps names unique. */
function fileName(messageId: string) {
  const bare = bareMessageId(messageId);
  const safe = bare.replace(/[^A-Za-z0-9@._+-]/g, '_').replace(/^[.-]/, '_');
  if (safe === bare && bare.length <= 200) return bare;
  return `${safe.slice(0, 180)}-${hash('sha256', bare).slice(0, 16)}`;
}

// --- Mail server ---

type MailServer = Readonly<{
  connection: SMTPConnectionOptions;
  auth: SMTPConnectionAuth | undefined;
}>;

/**
 * SMTP_URL is `smtp://user:password@host:587` (STARTTLS) or `smtps://…` (TLS from the start), with nodemailer's options
 * as parameters, such as `?tls.rejectUnauthorized=false`. Mail goes to another machine over TLS only, unless it has
 * `requireTLS=false`: otherwise an attacker could put another bank account into an invoice.
 */
export function serverOf(smtpUrl: string): MailServer {
  const { auth, ...options } = parsed(smtpUrl);
  const host = options.host ?? '';
  if (host === '') throw badUrl('names no host');
  const guarded = !options.secure && !isThisMachine(host);
  return {
    // nodemailer's own logging would show addresses and texts on the console.
    connection: { requireTLS: guarded, ...options, logger: false, debug: false, transactionLog: false },
    auth: auth === undefined ? undefined : { user: auth.user ?? '', pass: auth.pass ?? '' },
  };
}

function parsed(smtpUrl: string): SMTPConnectionOptions & { auth?: SMTPConnectionAuth | undefined } {
  try {
    // This check comes first, because nodemailer parses an invalid URL with an older parser, which prints the text and
    // its password to stderr.
    if (URL.canParse(smtpUrl)) return parseConnectionUrl(smtpUrl);
  } catch {
    // The error has no cause, because the error of a URL parser repeats the URL with the password.
  }
  throw badUrl('cannot be read as a URL (special characters in a user name or password must be percent-encoded)');
}

const badUrl = (reason: string) => refuse('environment_invalid', { variable: 'SMTP_URL', reason });

type SmtpError = Error &
  Readonly<{
    code?: string | undefined;
    command?: string | undefined;
    responseCode?: number | undefined;
    response?: string | undefined;
    recipient?: string | undefined;
    rejectedErrors?: readonly SmtpError[] | undefined;
  }>;

interface Session {
  readonly connection: SMTPConnection;
  sent: number;
  idleTimer: NodeJS.Timeout | undefined;
}

type Attempt = Readonly<{
  outcome: SendOutcome;
  /** Whether the connection was lost or silent. */
  lost: boolean;
  /** Whether it was lost before any part of the message was sent. */
  untouched: boolean;
}>;

/** Servers drop idle connections anyway, and an open one would keep the process alive. */
const IDLE_MILLISECONDS = 20_000;

/**
 * When as many messages in a row as there are connections got no answer, the server is not tried for this time.
 * Otherwise each attempt would take its whole timeout, and a few hundred documents a quarter of an hour.
 */
const AWAY_MILLISECONDS = 60_000;
const awayServers = new Map<string, Readonly<{ until: number; reply: string }>>();

/**
 * Looked up as by other programs on this machine: nodemailer's DNS queries never end for a name that is only in
 * /etc/hosts.
 */
async function addressesOf(host: string, milliseconds: number) {
  if (isIP(host) !== 0) return [host];
  const late = new AbortController();
  const timeout = wait(milliseconds, undefined, { signal: late.signal, ref: false }).then(() => {
    throw new Error(`the look-up of ${host} took longer than ${milliseconds / 1000} s`);
  });
  timeout.catch(() => {}); // The timeout is aborted if the look-up is faster.
  try {
    const found = await Promise.race([lookup(host.replace(/^\[(.*)\]$/, '$1'), { all: true }), timeout]);
    return found.map(({ address }) => address);
  } finally {
    late.abort();
  }
}

/** Some servers end a session with an error after about this many messages. */
const MESSAGES_PER_CONNECTION = 100;

/**
 * A few connections, each used for one message after another.
 *
 * nodemailer's own pool is not used. After a lost connection, the pool's errors do not tell whether the message's end
 * was sent (all have `command: 'CONN'`). The pool also resends a message by itself when a connection closes. Whether a
 * message may have arrived must never be guessed, so this class uses single connections and tracks each message as it
 * is sent (`Parcel`).
 */
class Smtp implements Transport {
  readonly name = 'smtp';
  private readonly server: MailServer;
  private readonly patience: Patience;
  private readonly connections: number;
  private readonly inTurn: ReturnType<typeof atMost>;
  private readonly idle: Session[] = [];
  private closed = false;
  /** These end the connections in progress. */
  private readonly cutOffs = new Set<(reason: Error) => void>();
  private failures = 0;

  constructor(server: MailServer, patience: Patience, connections: number) {
    this.server = server;
    this.patience = patience;
    this.connections = connections;
    this.inTurn = atMost(connections);
  }

  send(message: OutgoingMessage): Promise<SendOutcome> {
    return this.inTurn(() => this.sendNow(message));
  }

  close(graceMilliseconds?: number) {
    this.closed = true;
    for (const session of this.idle.splice(0)) this.hangUp(session);
    if (graceMilliseconds === undefined) return;
    const cutOff = () => {
      for (const each of this.cutOffs) each(new Error('the program is ending'));
    };
    setTimeout(cutOff, graceMilliseconds).unref();
  }

  private async sendNow(message: OutgoingMessage): Promise<SendOutcome> {
    if (this.closed) return { outcome: 'deferred', reply: 'the program is ending' };
    const used = this.idle.pop();
    if (used !== undefined) {
      const attempt = await this.sendOver(used, message);
      // The server had dropped the idle connection, so a new one is tried.
      if (!attempt.untouched) return this.counted(attempt);
    }
    const away = awayServers.get(this.address);
    if (away !== undefined && Date.now() < away.until) return { outcome: 'deferred', reply: away.reply };
    let connection: SMTPConnection;
    try {
      connection = await this.connect();
    } catch (error) {
      return this.counted({ outcome: { outcome: 'deferred', reply: told(error as SmtpError) }, lost: true });
    }
    return this.counted(await this.sendOver({ connection, sent: 0, idleTimer: undefined }, message));
  }

  private get address() {
    const { host, port } = this.server.connection;
    return `${host}:${port}`;
  }

  private counted({ outcome, lost }: Pick<Attempt, 'outcome' | 'lost'>) {
    this.failures = lost ? this.failures + 1 : 0;
    if (this.failures >= this.connections)
      awayServers.set(this.address, { until: Date.now() + AWAY_MILLISECONDS, reply: outcome.reply });
    return outcome;
  }

  /** Tries the addresses of the server one after another, all within the time limit for one connection. */
  private async connect() {
    const deadline = Date.now() + this.patience.connection;
    const { host = '' } = this.server.connection;
    const addresses = await addressesOf(host, this.patience.connection);
    let failure: unknown;
    for (const [index, address] of addresses.entries()) {
      const share = (deadline - Date.now()) / (addresses.length - index);
      try {
        return await this.connectTo(host, address, Math.max(share, 10));
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  private connectTo(host: string, address: string, milliseconds: number) {
    const { connection: options, auth } = this.server;
    const connection = new SMTPConnection({
      ...options,
      host: address,
      // The certificate is issued for the name, not the address.
      ...(address !== host && { servername: options.servername ?? host }),
      connectionTimeout: milliseconds,
      greetingTimeout: this.patience.greeting,
      socketTimeout: this.patience.socket,
      socketCloseTimeout: 2000,
    });
    let cutOff: (reason: Error) => void = () => {};
    return new Promise<SMTPConnection>((done, fail) => {
      cutOff = fail;
      this.cutOffs.add(cutOff);
      // This listener stays for the life of the connection. Once connected, the callback of `send` reports errors.
      connection.on('error', fail);
      connection.once('end', () => fail(new Error('the mail server ended the connection')));
      connection.connect((error) => {
        if (error) fail(error);
        else if (auth === undefined || !connection.allowsAuth) done(connection);
        else connection.login(auth, (refused) => (refused ? fail(refused) : done(connection)));
      });
    })
      .catch((error: unknown) => {
        connection.close();
        throw error;
      })
      .finally(() => this.cutOffs.delete(cutOff));
  }

  /** The connection is reused only after a success. */
  private async sendOver(session: Session, { envelope, raw, offer = always }: OutgoingMessage): Promise<Attempt> {
    const { connection } = session;
    clearTimeout(session.idleTimer);
    const parcel = new Parcel(raw, offer, () => this.waitLonger(connection));
    let deadline: NodeJS.Timeout | undefined;
    let cutOff: (reason: Error) => void = () => {};
    const result = await new Promise<SendOutcome | SmtpError>((done) => {
      cutOff = done;
      this.cutOffs.add(cutOff);
      deadline = setTimeout(
        () => done(new Error(`the mail server did not accept the message within ${this.patience.message / 1000} s`)),
        this.patience.message,
      );
      // The callback reports more than the event. If it is called at all, it is in the same turn of the event loop.
      connection.once('end', () => setImmediate(() => done(new Error('the mail server ended the connection'))));
      connection.send({ from: envelope.from, to: [...envelope.to], size: raw.length }, parcel, (error, info) =>
        done(error ?? { outcome: 'sent', reply: acceptance(info) }),
      );
    });
    clearTimeout(deadline);
    this.cutOffs.delete(cutOff);
    if (result instanceof Error) {
      connection.close();
      const lost = isLoss(result);
      return { outcome: outcomeOf(result, parcel), lost, untouched: lost && !parcel.begun };
    }
    session.sent += 1;
    await this.keep(session);
    return { outcome: result, lost: false, untouched: false };
  }

  private waitLonger({ _socket: socket }: SMTPConnection) {
    if (socket) socket.setTimeout(this.patience.answer);
  }

  private async keep(session: Session) {
    const { connection } = session;
    // A server that sends more than its answer is out of sync. The next turn would show the surplus as an error.
    await nextTurn();
    if (connection.destroyed) return;
    if (this.closed || session.sent >= MESSAGES_PER_CONNECTION) {
      this.hangUp(session);
      return;
    }
    if (connection._socket) connection._socket.setTimeout(this.patience.socket);
    const forget = () => {
      const index = this.idle.indexOf(session);
      if (index >= 0) this.idle.splice(index, 1);
    };
    connection.removeAllListeners('end');
    connection.once('end', forget);
    session.idleTimer = setTimeout(() => {
      forget();
      this.hangUp(session);
    }, IDLE_MILLISECONDS);
    this.idle.push(session);
  }

  /** Politely, but without waiting long for the server's answer. */
  private hangUp({ connection, idleTimer }: Session) {
    clearTimeout(idleTimer);
    connection.quit();
    setTimeout(() => connection.close(), 2000).unref();
  }
}

const AUTHENTICATION_CODES: ReadonlySet<number> = new Set([
  530, // authentication required
  534, // mechanism too weak
  535, // credentials invalid
  538, // encryption required
]);

/**
 * Replies to this message have the code `EENVELOPE` or `EMESSAGE`. Other errors concern the connection, even if part of
 * a reply was read.
 */
function outcomeOf(error: SmtpError, parcel: Parcel): SendOutcome {
  const reply = told(error);
  const code = error.responseCode ?? 0;
  const answered = error.code === 'EMESSAGE' && code >= 400 && code <= 599;
  if (parcel.ended && !answered) return { outcome: 'unclear', reply };
  return { outcome: isForGood(error) ? 'refused' : 'deferred', reply };
}

function isForGood({ code, command, responseCode }: SmtpError) {
  if (code !== 'EENVELOPE' && code !== 'EMESSAGE') return false; // the connection, TLS or our login, not the message
  // If there is no reply, the error is nodemailer's own: no valid address, or a message larger than the server's
  // announced limit.
  if (responseCode === undefined) return true;
  if (responseCode < 500 || responseCode > 599) return false;
  // A session out of sync or a missing login is a matter of the settings or temporary, not of the recipient.
  if (responseCode === 503 || AUTHENTICATION_CODES.has(responseCode)) return false;
  // If the sender is refused, the settings are wrong, and every invoice would fail. Only 552 (size) concerns the
  // message.
  return command !== 'MAIL FROM' || responseCode === 552;
}

const isLoss = ({ code, responseCode }: SmtpError) =>
  responseCode === 421 || code === undefined || code === 'ECONNECTION' || code === 'ESOCKET' || code === 'ETIMEDOUT';

const REPLY_LENGTH = 1000;

function told(error: SmtpError) {
  const rejections = error.rejectedErrors ?? [];
  const text = rejections.length > 0 ? rejections.map(rejection).join('; ') : reasonOf(error);
  const hint = error.command === 'STARTTLS' ? ' (to send without TLS, add ?requireTLS=false to SMTP_URL)' : '';
  return oneLine(text + hint).slice(0, REPLY_LENGTH);
}

const rejection = ({ recipient, response, message }: SmtpError) =>
  `${recipient ?? 'a recipient'} was rejected: ${response ?? message}`;

/**
 * A message that was accepted for only some recipients counts as sent, because resending would give them a second copy.
 * Rejected ones come first, where people see them.
 */
function acceptance(info: { response: string; rejectedErrors?: readonly SmtpError[] | undefined }) {
  const rejections = (info.rejectedErrors ?? []).map(rejection);
  return oneLine([...rejections, info.response].join('; ')).slice(0, REPLY_LENGTH);
}
