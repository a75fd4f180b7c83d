/**
 * The log of jobs and servers, with one JSON line per fact on stderr. Logging never waits and never fails. If the disk
 * is full, or if the reader is slow or has gone, lines are dropped and counted.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { DestinationStream, Logger, pino } from 'pino';

/** The levels in ascending order. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/** Opens the logger of this process. Every line includes the fields of `base`, such as the name of a job. */
export function openLog(
  base: Readonly<Record<string, string>> | null,
  destination: DestinationStream = stderrLog(),
): Logger {
  // readEnvironment refuses an invalid log level, and needs a log to report it.
  const level = LOG_LEVELS.find((each) => each === process.env['LOG_LEVEL']) ?? 'info';
  return pino(
    {
      base,
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // A safeguard only: no line contains headers or credentials.
      redact: ['*.headers.authorization', '*.headers.cookie', '*.client_secret', '*.access_token'],
    },
    destination,
  );
}

export const droppedLogLines = () => stderr?.dropped() ?? 0;

let stderr: LogDestination | undefined;
function stderrLog() {
  stderr ??= dropping(sinkOf(2, process.stderr));
  return stderr;
}

/**
 * Accepts a line, or returns false if there is no room for the line. Calls `lost` if a line is lost after it was
 * accepted.
 */
type Sink = (line: string, lost: () => void) => boolean;

interface LogDestination extends DestinationStream {
  readonly dropped: () => number;
}

/**
 * Drops and counts the lines that the sink rejects. The first line accepted afterwards states the number of dropped
 * lines.
 */
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

/** If the unread lines exceed this number of bytes, further lines are dropped. */
const QUEUE_BYTES = 1024 * 1024;

function sinkOf(fd: number, stream: NodeJS.WriteStream) {
  const file = fstatSync(fd);
  return file.isFIFO() || file.isSocket() ? streamSink(stream) : fileSink(unblocked(fd));
}

/** Opens the terminal again in nonblocking mode. In blocking mode, Ctrl-S in the terminal would stop the process. */
function unblocked(fd: number) {
  if (!isatty(fd)) return fd;
  try {
    return openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return fd; // The terminal belongs to a different user.
  }
}

/**
 * The sink for pipes and sockets, to which Node writes without blocking. Node buffers the lines that the reader has not
 * read yet.
 */
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

/** The sink for files and terminals. */
export function fileSink(fd: number): Sink {
  /** Whether the last line was cut because the disk was full. */
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
