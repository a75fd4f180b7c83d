/**
 * The log of jobs and servers: one JSON line per fact, on stderr. If a line cannot be written because the disk is full
 * or the reader is slow or gone, it is dropped and counted, so logging never waits and never fails.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { type DestinationStream, type Logger, pino } from 'pino';

/** The values of LOG_LEVEL, the least important first. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/** The logger of this process. Every line includes `base`, such as the name of a job. */
export function openLog(
  base: Readonly<Record<string, string>> | null,
  destination: DestinationStream = stderrLog(),
): Logger {
  // readEnvironment refuses a wrong level. This log must work to report that.
  const level = LOG_LEVELS.find((each) => each === process.env['LOG_LEVEL']) ?? 'info';
  return pino(
    {
      base,
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // No line logs headers or credentials today; this redacts them if one ever does.
      redact: ['*.headers.authorization', '*.headers.cookie', '*.client_secret', '*.access_token'],
    },
    destination,
  );
}

/** Lines of this process that were dropped. */
export const droppedLogLines = (): number => stderr?.dropped() ?? 0;

let stderr: LogDestination | undefined;
function stderrLog(): LogDestination {
  stderr ??= dropping(sinkOf(2, process.stderr));
  return stderr;
}

/** Accepts a line, or returns false if there is no room now. Calls back if an accepted line is lost later. */
type Sink = (line: string, lost: () => void) => boolean;

interface LogDestination extends DestinationStream {
  readonly dropped: () => number;
}

/** Drops and counts what the sink rejects. When the sink accepts lines again, the first states how many are missing. */
export function dropping(sink: Sink): LogDestination {
  let dropped = 0;
  let told = 0;
  const lost = () => {
    dropped += 1;
  };
  return {
    dropped: () => dropped,
    write(line) {
      if (dropped > told) {
        const now = dropped;
        const time = new Date().toISOString();
        const gap = { level: 'warn', time, dropped: now - told, msg: 'log lines were dropped here' };
        if (sink(`${JSON.stringify(gap)}\n`, () => {})) told = now;
      }
      if (!sink(line, lost)) lost();
    },
  };
}

/** How far a slow reader may be behind. */
const QUEUE_BYTES = 1024 * 1024;

function sinkOf(fd: number, stream: NodeJS.WriteStream): Sink {
  const file = fstatSync(fd);
  return file.isFIFO() || file.isSocket() ? streamSink(stream) : fileSink(unblocked(fd));
}

/**
 * If a user stops a terminal with Ctrl-S, the process would stop as well. Opened a second time, the terminal can answer
 * EAGAIN.
 */
function unblocked(fd: number): number {
  if (!isatty(fd)) return fd;
  try {
    return openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return fd; // It is a terminal of a different user.
  }
}

/** Pipes and sockets: Node writes to them without blocking and keeps what the reader has not read. */
function streamSink(stream: NodeJS.WriteStream): Sink {
  let closed = false;
  stream.on('error', () => {
    closed = true;
  });
  return (line, lost) => {
    if (closed || stream.writableLength + line.length > QUEUE_BYTES) return false;
    stream.write(line, (error) => error && lost());
    return true;
  };
}

/** Files and terminals. */
export function fileSink(fd: number): Sink {
  /** True if the last line was cut because the disk was full. */
  let cut = false;
  return (line) => {
    const bytes = Buffer.from(cut ? `\n${line}` : line);
    try {
      const written = writeSync(fd, bytes);
      if (written > 0) cut = written < bytes.length;
      return written === bytes.length;
    } catch {
      return false;
    }
  };
}
