/** SQL for what a host remembers of the ledger, and for the servers that the ledger has been on. */
import { executing, querying, queryingOne } from '#database/transaction';

/** What a host has seen committed. Each value identifies the content of a fact. */
export type Seen = Readonly<{
  /** The latest pause after a restore that was resumed, or 0. What was seen before it may rightly be missing. */
  resumed: number;
  /** The last document of each series. */
  documents: Readonly<Record<string, Readonly<{ number: string; sequence: number; content: string }>>>;
  /** By id, the latest events. */
  events: Readonly<Record<string, string>>;
}>;

export type Present = Seen &
  Readonly<{
    installation_id: string;
    system_identifier: string;
    /** Null on a standby. */
    timeline: string | null;
    /** Whether the ledger has been on this server and timeline, or on no server that it knows. */
    known: boolean;
    /** Whether a pause after a restore is open. */
    restored: boolean;
    /** The time of the latest event. */
    state_of: string | null;
  }>;

const SERVER = `
  SELECT system_identifier::text,
         CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline
  FROM pg_control_system()`;

const OF_EVENT = `md5(concat_ws('|', e.occurred_at, e.action, e.via, e.log_no))`;
const OF_DOCUMENT = `md5(concat_ws('|', d.partner_id, d.month, d.currency, d.gross, d.log_no))`;

/** An import that is committed after later events must still be among those that are remembered. */
export const EVENTS_KEPT = 64;

/** What the database has now. */
export const readPresent = queryingOne<Present>(`
  WITH RECURSIVE server AS (${SERVER}), series (name) AS (
    SELECT min(series) FROM documents
    UNION ALL
    SELECT (SELECT min(d.series) FROM documents d WHERE d.series > s.name) FROM series s WHERE s.name IS NOT NULL),
  latest AS (SELECT * FROM audit_events ORDER BY event_id DESC LIMIT ${EVENTS_KEPT})
  SELECT installation_id, server.*,
    NOT EXISTS (SELECT FROM servers) OR EXISTS (SELECT FROM servers s WHERE (s.system_identifier, s.timeline) =
      (server.system_identifier, server.timeline)) AS known,
    EXISTS (SELECT FROM open_pauses WHERE cause = 'restore') AS restored,
    (SELECT coalesce(max(pause_id), 0) FROM resumptions JOIN pauses USING (pause_id)
     WHERE cause = 'restore') AS resumed,
    (SELECT coalesce(json_object_agg(s.name, json_build_object(
       'number', d.number, 'sequence', d.sequence, 'content', ${OF_DOCUMENT})), '{}')
     FROM series s CROSS JOIN LATERAL (
       SELECT * FROM documents WHERE series = s.name ORDER BY sequence DESC LIMIT 1) AS d) AS documents,
    (SELECT coalesce(json_object_agg(e.event_id, ${OF_EVENT}), '{}') FROM latest e) AS events,
    (SELECT max(occurred_at) FROM latest) AS state_of
  FROM installation CROSS JOIN server`);

/** What of this the database lacks or has with other content: the numbers of documents, and NULL for an event. */
export const readMissing = querying<{ number: string | null }, Omit<Seen, 'resumed'>>(`
  SELECT value ->> 'number' AS number FROM json_each(:documents::json)
  WHERE NOT EXISTS (SELECT FROM documents d WHERE (d.series, d.sequence) = (key, (value ->> 'sequence')::integer)
                    AND ${OF_DOCUMENT} = value ->> 'content')
  UNION ALL
  SELECT NULL FROM json_each_text(:events::json)
  WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.event_id = key::bigint AND ${OF_EVENT} = value)`);

/** Records the server and timeline that the ledger is on. */
export const insertServer = executing(
  `INSERT INTO servers (system_identifier, timeline) ${SERVER} ON CONFLICT DO NOTHING`,
);

export type Move = Readonly<{
  timeline: string;
  seen_at: string;
}>;

/** The server that the ledger came to last, if it has been on more than one. */
export const readMove = querying<Move>(
  `SELECT timeline, seen_at FROM servers WHERE (SELECT count(*) FROM servers) > 1 ORDER BY seen_at DESC LIMIT 1`,
);
