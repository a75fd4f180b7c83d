/** A real mail server inside the test. It accepts mail, or fails in the way that the test requests. */
import type { AddressInfo } from 'node:net';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server';

/** What the server does with the next message. It can be changed at any time. */
export type Behaviour =
  | 'accept'
  /** Greets with 554 and hangs up. */
  | 'refuse_greeting'
  /** Accepts the connection and sends nothing. */
  | 'never_greet'
  | 'refuse_sender'
  | 'defer_recipients'
  | 'refuse_recipients'
  /** Never answers RCPT TO. */
  | 'hang_before_data'
  | 'drop_before_data'
  /** Cuts the connection in the middle of the message. */
  | 'drop_during_data'
  /** Stops reading in the middle of the message. */
  | 'hang_during_data'
  | 'refuse_message'
  | 'defer_message'
  /** Answers 421 to the whole message and closes. */
  | 'close_after_data'
  /** Takes the whole message, keeps it, and cuts the connection without an answer. */
  | 'drop_after_data'
  /** Takes the whole message, keeps it, and never answers. */
  | 'hang_after_data';

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** The bytes between DATA and its end. */
  readonly raw: Buffer;
  readonly parsed: ParsedMail;
}

export interface MailServer {
  behaviour: Behaviour;
  /** Replies to RCPT TO for single addresses, such as `550` for one that does not exist. */
  readonly replies: Map<string, number>;
  /** Whole messages received, oldest first, whether or not the server answered for them. */
  readonly mails: ReceivedMail[];
  /** `smtp://ADDRESS:PORT`, without credentials. */
  readonly url: string;
  readonly port: number;
  /** Connections so far. */
  connections: number;
  /** Ends every connection, as servers do with idle connections. */
  dropConnections(): void;
  close(): Promise<void>;
}

export interface MailServerOptions {
  /** Credentials that it requires before it accepts mail. */
  readonly auth?: { readonly user: string; readonly password: string };
  /** Offers STARTTLS with a certificate that nobody signed. */
  readonly selfSignedTls?: boolean;
  /** The largest message in bytes, announced to clients. */
  readonly size?: number;
  /** The address at which it listens. */
  readonly address?: string;
}

class SmtpError extends Error {
  readonly responseCode: number;

  constructor(responseCode: number, message: string) {
    super(message);
    this.responseCode = responseCode;
  }
}

export async function startMailServer(options: MailServerOptions = {}): Promise<MailServer> {
  const smtp = new SMTPServer({
    name: 'mail.test',
    logger: false,
    disableReverseLookup: true,
    authOptional: options.auth === undefined,
    allowInsecureAuth: true,
    disabledCommands: [
      ...(options.auth === undefined ? ['AUTH'] : []),
      ...(options.selfSignedTls === true ? [] : ['STARTTLS']),
    ],
    ...(options.size === undefined ? {} : { size: options.size }),
    closeTimeout: 0,
    onConnect(_session, next) {
      server.connections += 1;
      if (server.behaviour === 'refuse_greeting') next(new SmtpError(554, 'no mail from your network'));
      else if (server.behaviour !== 'never_greet') next();
    },
    onAuth({ username, password }, _session, next) {
      if (username === options.auth?.user && password === options.auth?.password) next(null, { user: username });
      else next(new SmtpError(535, '5.7.8 authentication failed'));
    },
    onMailFrom(_address, _session, next) {
      if (server.behaviour === 'refuse_sender') next(new SmtpError(550, '5.1.8 sender not allowed'));
      else next();
    },
    onRcptTo({ address }, session, next) {
      const code = server.replies.get(address);
      if (code !== undefined) next(new SmtpError(code, `no thanks, ${address}`));
      else if (server.behaviour === 'defer_recipients') next(new SmtpError(451, '4.7.1 greylisted, try again later'));
      else if (server.behaviour === 'refuse_recipients') next(new SmtpError(550, '5.1.1 no such user'));
      else if (server.behaviour === 'drop_before_data') drop(session);
      else if (server.behaviour !== 'hang_before_data') next();
    },
    onData(stream, session, next) {
      if (server.behaviour === 'hang_during_data') return; // unread, the stream fills up
      if (server.behaviour === 'drop_during_data') {
        stream.once('data', () => drop(session));
        return;
      }
      void receive(stream, session).then(() => {
        if (server.behaviour === 'refuse_message') next(new SmtpError(554, '5.6.0 message refused'));
        else if (server.behaviour === 'defer_message') next(new SmtpError(452, '4.3.1 no space left'));
        else if (server.behaviour === 'close_after_data') next(new SmtpError(421, '4.3.2 shutting down'));
        else if (server.behaviour === 'drop_after_data') drop(session);
        else if (server.behaviour !== 'hang_after_data') next(null, `2.0.0 queued as ${server.mails.length}`);
      }, next); // the client was killed in the middle of its message: nothing was received
    },
  });
  smtp.on('error', () => {}); // clients that go away in the middle are what these tests are about

  const drop = (session: SMTPServerSession) => {
    for (const connection of smtp.connections) if (connection.session === session) connection._socket.destroy();
  };

  async function receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of stream) pieces.push(piece as Buffer);
    const raw = Buffer.concat(pieces);
    server.mails.push({
      from: session.envelope.mailFrom === false ? '' : session.envelope.mailFrom.address,
      to: session.envelope.rcptTo.map(({ address }) => address),
      raw,
      parsed: await simpleParser(raw),
    });
  }

  const { address = '127.0.0.1' } = options;
  await new Promise<void>((listening) => smtp.listen(0, address, listening));
  const { port } = smtp.server.address() as AddressInfo;
  const server: MailServer = {
    behaviour: 'accept',
    replies: new Map(),
    mails: [],
    // On another machine it would have to offer TLS.
    url: `smtp://${address}:${port}${address === '127.0.0.1' ? '' : '?requireTLS=false'}`,
    port,
    connections: 0,
    dropConnections() {
      for (const connection of smtp.connections) connection._socket.destroy();
    },
    async close() {
      this.dropConnections();
      await new Promise<void>((closed) => smtp.close(() => closed()));
    },
  };
  return server;
}
