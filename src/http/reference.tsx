/** The API description as `/openapi.json`, and as the self-contained page `/reference`. */
import { FastifyInstance } from 'fastify';
import { CALL_REFUSAL_CODES, httpStatusOf } from '#errors/refusals';
import { writeExactJson } from '#json';
import { countOther } from './limits.ts';
import { describeApi } from './openapi.ts';
import { Operation } from './operation.ts';
import { OPERATIONS } from './operations.ts';
import { pageOf, sendPage } from './page.tsx';
import { issuerOf, Shared } from './shared.ts';

export function addReference(app: FastifyInstance, shared: Shared) {
  const { settings, environment, limits } = shared;
  const options = { onRequest: countOther(limits), config: { bound: 'fixed' } } as const;
  const description = Buffer.from(JSON.stringify(describeApi(settings, issuerOf(shared)), null, 2));
  app.get('/openapi.json', options, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').header('Cache-Control', 'public, max-age=300').send(description),
  );

  const html = pageOf(
    { title: 'API reference', sandbox: environment.name === 'sandbox' },
    <Reference base={issuerOf(shared)} header={settings.partner_id_header} />,
  );
  app.get('/reference', options, async (_request, reply) => sendPage(reply, html));
}

const Reference = ({ base, header }: { base: string; header: string }) => (
  <>
    <header>
      <h1>API reference</h1>
      <p>
        Base address: <code>{base}</code>. For programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).
      </p>
      <p>
        Every call needs <code>Authorization: Bearer TOKEN</code>. Send your partner id as <code>{header}</code>; each
        call below states whether it is optional. Amounts are decimals in major units. Errors are problem documents (RFC
        9457): <code>code</code> is for programs, <code>detail</code> for people.
      </p>
    </header>
    <section aria-labelledby="token">
      <h2 id="token">POST /api/oauth/token</h2>
      <p>
        Exchanges <code>client_id</code> and <code>client_secret</code> (JSON, form, or HTTP Basic) for an access token,
        valid for <code>expires_in</code> seconds.
      </p>
      <pre>{pretty({ access_token: 'eyJ…', expires_in: 3600, token_type: 'Bearer' })}</pre>
    </section>
    {OPERATIONS.map((operation) => (
      <Call operation={operation} />
    ))}
    <section aria-labelledby="codes">
      <h2 id="codes">Refusal codes</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Code</th>
            <th scope="col" class="number">
              Status
            </th>
          </tr>
        </thead>
        <tbody>
          {CALL_REFUSAL_CODES.map((code) => (
            <tr id={code}>
              <th scope="row">
                <code>{code}</code>
              </th>
              <td class="number">{httpStatusOf(code)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  </>
);

const fieldsOf = (schema: unknown) => Object.keys((schema as { shape?: object } | undefined)?.shape ?? {}).join(', ');

const Takes = ({ what, code }: { what: string; code: string | undefined }) =>
  code ? (
    <p>
      {what} <code>{code}</code>
    </p>
  ) : null;

const Call = ({ operation }: { operation: Operation }) => {
  const { id, methods, path, origin, body, file, status, otherwise, query, answer, example, refusals } = operation;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{`${methods.join(' or ')} ${path}`}</h2>
      <p>
        <strong>{operation.summary}.</strong> {operation.description}
      </p>
      <p class="soft">
        {origin === 'own' ? 'Specific to this system.' : 'Documented by the service.'}{' '}
        {operation.partnerHeader === 'required'
          ? 'The partner’s header is required.'
          : 'The partner’s header is optional and checked when present.'}
      </p>
      <Takes what="Body:" code={fieldsOf(body)} />
      <Takes what="Body: a file," code={file?.type} />
      <Takes what="Parameters:" code={fieldsOf(query)} />
      <p>
        Answers {status}
        {otherwise && ` (${otherwise.status}: ${otherwise.description})`}
        {typeof answer === 'string' ? (
          <>
            {' '}
            with a file, <code>{answer}</code>.
          </>
        ) : (
          ':'
        )}
      </p>
      {example !== undefined && <pre>{pretty(example)}</pre>}
      {refusals.length > 0 && (
        <p>
          Refuses with{' '}
          {refusals.map((code, at) => (
            <>
              {at > 0 && ', '}
              <code>{code}</code> ({httpStatusOf(code)})
            </>
          ))}
          .
        </p>
      )}
    </section>
  );
};

/** Indents JSON, and keeps numbers as written. */
function pretty(example: unknown) {
  let depth = 0;
  const line = (change: number) => {
    depth += change;
    return `\n${'  '.repeat(depth)}`;
  };
  // Strings match first, so that brackets and commas inside them stay.
  return writeExactJson(example).replace(/"(?:[^"\\]|\\.)*"|\[\]|\{\}|[[{]|[\]}]|,|:/g, (token) => {
    if (token === '{' || token === '[') return `${token}${line(1)}`;
    if (token === '}' || token === ']') return `${line(-1)}${token}`;
    if (token === ',') return `,${line(0)}`;
    return token === ':' ? ': ' : token;
  });
}
