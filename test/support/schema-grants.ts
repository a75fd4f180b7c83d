/** The privileges of the app's role in a database, as the statements that grant them. */
type Ask = <Row extends object>(sql: string) => Promise<Row[]>;

const OURS = `'public'::regnamespace AND c.relname NOT LIKE 'migrations%'`;

/**
 * The privileges of roles other than the owner. Those on functions follow from a rule, and so does reading sequences.
 * Statements on the same objects are one.
 */
const GRANTS = `
  SELECT format('GRANT %s ON %s%s TO %s;', privileges, kind, string_agg(name, ', ' ORDER BY place), grantee) AS "grant"
  FROM (
    SELECT o.place, o.name, o.kind, string_agg(g.privilege_type || o.columns, ', ' ORDER BY g.privilege_type) AS privileges,
           CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END AS grantee
    FROM (
      SELECT c.oid::int AS place, c.relname AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END AS kind,
             '' AS columns, c.relacl AS acl, c.relowner AS owner
      FROM pg_class c WHERE c.relnamespace = ${OURS}
      UNION ALL
      SELECT c.oid::int, c.relname, '', format(' (%s)', a.attname), a.attacl, c.relowner
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relnamespace = ${OURS}) AS o
    CROSS JOIN LATERAL aclexplode(o.acl) AS g
    WHERE g.grantee <> o.owner AND g.grantee IS DISTINCT FROM to_regrole('reckoner_reader')
    GROUP BY o.place, o.name, o.kind, o.columns, g.grantee) AS granted
  WHERE (kind, privileges) <> ('SEQUENCE ', 'SELECT')
  GROUP BY kind, privileges, grantee
  ORDER BY grantee, kind, privileges`;

/** Breaks a line after commas, so that it has at most 120 columns. The lines after the first are indented more. */
function wrapped(line: string): string {
  const indent = `\n${/^ */.exec(line)?.[0]}  `;
  let [text = '', ...words] = line.split(/(?<=,) /);
  let columns = text.length;
  for (const word of words) {
    const fits = columns + 1 + word.length <= 120;
    text += `${fits ? ' ' : indent}${word}`;
    columns = fits ? columns + 1 + word.length : indent.length - 1 + word.length;
  }
  return `${text}\n`;
}

export async function readGrants(ask: Ask): Promise<string> {
  const grants = await ask<{ readonly grant: string }>(GRANTS);
  return grants.map(({ grant }) => wrapped(grant)).join('');
}
